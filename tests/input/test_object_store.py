"""Addresses of stores: which are accepted, and which are refused."""

import pytest

from webhook.input import object_store


@pytest.mark.parametrize(
    "address", ["file://{}", "local://{}", "FILE://{}", "dir::file://{}", "simplecache::file://{}"]
)
def test_a_folder_of_this_machine_is_named_by_its_path(tmp_path, address):
    """The store would walk the folder, and follow each link to any place."""
    (tmp_path / "secret.yaml").write_text("token: hunter2")
    folder = tmp_path / "audited"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    listed = object_store.list_manifest_files([address.format(folder)])
    assert listed.files == ()
    assert "write the path alone" in listed.problems[0].message
    assert len(object_store.list_manifest_files([folder]).files) == 0
