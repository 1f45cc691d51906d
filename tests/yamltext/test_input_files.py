"""A file of a folder is read only if it is a regular file inside of the folder, also through links."""

import os
import socket

import pytest

from webhook.errors import InputError
from webhook.input.document_stream import RereadableFiles
from webhook.yamltext import input_files
from webhook.yamltext.input_files import (
    InputFile,
    NotReadError,
    is_regular_file,
    open_file,
    read_start,
    read_whole,
    walk_folder,
    write_file_of_folder,
)

SECRET = "the-token-of-the-job"


@pytest.fixture
def folder(tmp_path):
    """Return a folder in which links may lead to a secret outside of the folder."""
    (tmp_path / "secret.yaml").write_text(SECRET)
    made = tmp_path / "tree"
    (made / "sub").mkdir(parents=True)
    (made / "sub" / "inside.yaml").write_text("inside")
    (tmp_path / "tree-beside").mkdir()
    (tmp_path / "tree-beside" / "x.yaml").write_text(SECRET)
    return made


def read(folder, name):
    with open_file(InputFile(str(folder / name), str(folder))) as stream:
        return stream.read().decode()


INSIDE = {
    "a relative link": "sub/inside.yaml",
    "a link through a folder above it": "sub/../sub/./inside.yaml",
    "a link out of the folder and back": "../tree/sub/inside.yaml",
    "an absolute link": "{folder}/sub/inside.yaml",
    "a link through a link": "by-folder/inside.yaml",
    "a link with two slashes": "sub//inside.yaml",
}
OUTSIDE = {
    "a relative link": "../secret.yaml",
    "an absolute link": "{folder}/../secret.yaml",
    "a link to the environment": "/proc/self/environ",
    "a link to a device": "/dev/zero",
    "a link to a full device": "/dev/full",
    "a link to standard input": "/dev/stdin",
    "a folder with a longer name": "../tree-beside/x.yaml",
    "a link through a folder outside": "up/secret.yaml",
    "a link to an absent file outside": "../../absent",
    "a link to the root": "/",
}


@pytest.mark.parametrize("target", INSIDE.values(), ids=INSIDE)
def test_a_link_that_stays_in_the_folder_is_followed(folder, target):
    (folder / "by-folder").symlink_to("sub")
    (folder / "link.yaml").symlink_to(target.format(folder=folder))
    assert read(folder, "link.yaml") == "inside"
    assert is_regular_file(InputFile(str(folder / "link.yaml"), str(folder)))


@pytest.mark.parametrize("target", OUTSIDE.values(), ids=OUTSIDE)
def test_a_link_that_leaves_the_folder_is_not_followed(folder, target):
    (folder / "up").symlink_to("..")
    (folder / "link.yaml").symlink_to(target.format(folder=folder))
    with pytest.raises(NotReadError, match="outside"):
        read(folder, "link.yaml")
    assert not is_regular_file(InputFile(str(folder / "link.yaml"), str(folder)))


@pytest.mark.parametrize("name", ["../secret.yaml", "sub/../../secret.yaml"])
def test_a_name_that_leaves_the_folder_is_not_followed(folder, name):
    with pytest.raises(NotReadError):
        read(folder, name)


def test_links_in_a_circle_are_followed_to_a_bound(folder):
    (folder / "a.yaml").symlink_to("b.yaml")
    (folder / "b.yaml").symlink_to("a.yaml")
    with pytest.raises(OSError, match="symbolic links"):
        read(folder, "a.yaml")


def test_a_special_file_is_not_opened(folder, monkeypatch):
    os.mkfifo(folder / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as bound:
        monkeypatch.chdir(folder)  # the path of a socket is short
        bound.bind("socket.yaml")
        for name in ("pipe.yaml", "socket.yaml"):
            with pytest.raises(NotReadError, match="not a regular file"):
                read(folder, name)
        with pytest.raises(IsADirectoryError):
            read(folder, "sub")
        with pytest.raises(NotADirectoryError):
            read(folder, "sub/inside.yaml/x")


@pytest.mark.parametrize("other", ["link", "pipe"])
def test_a_file_that_is_replaced_after_the_check_is_not_read(folder, monkeypatch, other):
    """The check sees a regular file. When the file is opened, it is a link or a pipe."""
    file = folder / "sub" / "inside.yaml"
    really_open = os.open

    def open_after_exchange(path, flags, *args, **named):
        if path == "inside.yaml":
            file.unlink()
            file.symlink_to(folder.parent / "secret.yaml") if other == "link" else os.mkfifo(file)
        return really_open(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", open_after_exchange)
    with pytest.raises(OSError, match=r"symbolic links|not a regular file"):
        read(folder, "sub/inside.yaml")


def test_a_folder_that_becomes_a_link_after_the_check_is_not_entered(folder, monkeypatch):
    (folder.parent / "inside.yaml").write_text(SECRET)
    really_open = os.open

    def open_after_exchange(path, flags, *args, **named):
        if path == "sub":
            (folder / "sub").rename(folder / "old")
            (folder / "sub").symlink_to(folder.parent)
        return really_open(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", open_after_exchange)
    with pytest.raises(OSError, match=r"(?i)not a directory|symbolic links"):
        read(folder, "sub/inside.yaml")


def test_a_walk_reports_what_is_not_read(folder):
    (folder / "out.yaml").symlink_to("../secret.yaml")
    (folder / "in.yaml").symlink_to("sub/inside.yaml")
    (folder / "gone.yaml").symlink_to("absent.yaml")
    (folder / "away").symlink_to("../tree-beside")
    (folder / "again").symlink_to("sub")
    (folder / "notes.txt").symlink_to("../secret.yaml")
    os.mkfifo(folder / "pipe.yaml")
    found = list(walk_folder(folder, lambda name: name.endswith(".yaml"), lambda _: True))
    told = {each.file.path.relative_to(folder).as_posix(): (bool(each.reason), each.is_folder) for each in found}
    assert told == {
        "away": (True, True),
        "gone.yaml": (True, False),
        "in.yaml": (False, False),
        "out.yaml": (True, False),
        "pipe.yaml": (True, False),
        "sub/inside.yaml": (False, False),
    }


def test_a_file_that_a_person_named_may_be_a_link_or_a_pipe(folder):
    (folder / "link.yaml").symlink_to("../secret.yaml")
    assert read_whole(folder / "link.yaml").decode() == SECRET
    reading, writing = os.pipe()
    os.write(writing, b"a: 1")
    os.close(writing)
    try:
        assert read_whole(f"/dev/fd/{reading}") == b"a: 1"
    finally:
        os.close(reading)


def test_a_device_without_an_end_is_read_up_to_the_bound():
    assert len(read_start("/dev/zero", max_bytes=5 << 20)) <= 6 << 20
    with pytest.raises(OSError, match="larger than 1,024 KiB"):
        read_whole("/dev/zero", max_bytes=1 << 20)


def test_a_pipe_without_an_end_is_copied_up_to_the_bound(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, b"# \n" * 1000)
    os.close(writing)
    files = RereadableFiles(max_copied_bytes=2000)
    with pytest.raises(InputError, match="the input is larger than"):
        list(files.read_parts(f"/dev/fd/{reading}"))
    os.close(reading)
    (tmp_path / "a.yaml").write_text("# \n" * 1000)
    assert [part.size_bytes for part in files.read_parts(str(tmp_path / "a.yaml"))] == [3000]


def test_writing_replaces_a_link_and_does_not_change_its_target(folder):
    (folder / "link.yaml").symlink_to("../secret.yaml")
    write_file_of_folder(folder / "link.yaml", "new")
    assert (folder / "link.yaml").read_text() == "new"
    assert not (folder / "link.yaml").is_symlink()
    assert (folder.parent / "secret.yaml").read_text() == SECRET
    assert sorted(each.name for each in folder.iterdir()) == ["link.yaml", "sub"]


def test_a_name_below_a_root_may_be_absolute_or_relative(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    for name, root in (
        (folder / "sub/inside.yaml", "tree"),
        ("tree/sub/inside.yaml", str(folder)),
        ("tree/sub/inside.yaml", "."),
    ):
        assert read_start(InputFile(str(name), root)) == b"inside"
    assert input_files.as_input_file("-").is_named
