"""`claimgate test --watch` runs the tests again after each change of a file, and only then."""

from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.commands import test
from webhook.commands.test import files_with_times, wait_for_change
from webhook.errors import ConfigurationError


class Editor:
    """Makes its next change whenever the command sleeps. A sleep after the last change raises KeyboardInterrupt, like
    Ctrl-C.
    """

    def __init__(self, *changes: object) -> None:
        self.changes = [*changes]

    def sleep(self, _: float) -> None:
        if not self.changes:
            raise KeyboardInterrupt
        if (change := self.changes.pop(0)) is not None:
            change()  # type: ignore[operator]


@pytest.mark.parametrize("name", ["new.yaml", "old.yaml", "folder/new.json"])
def test_a_file_that_is_added_or_changed_ends_the_wait(name: str, tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text("a: 1")
    (tmp_path / "folder").mkdir()
    before = files_with_times([tmp_path])
    editor = Editor(None, lambda: (tmp_path / name).write_text("a: 12"), None)
    wait_for_change([tmp_path], before, editor.sleep)
    assert editor.changes == []


def test_a_removed_file_ends_the_wait_after_the_last_of_several_changes(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text("a: 1")
    before = files_with_times([tmp_path])
    editor = Editor(*((tmp_path / f"{name}.yaml").unlink for name in "abc"), None)
    wait_for_change([tmp_path], before, editor.sleep)
    assert editor.changes == []


def test_only_a_change_of_a_watched_file_ends_the_wait(tmp_path: Path) -> None:
    before = files_with_times([tmp_path])
    with pytest.raises(KeyboardInterrupt):
        wait_for_change([tmp_path], before, Editor(lambda: (tmp_path / "notes.txt").write_text("a")).sleep)


def test_very_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test, "MOST_FILES", 1)
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text("a: 1")
    with pytest.raises(ConfigurationError, match="name a folder with fewer"):
        files_with_times([tmp_path])


def test_suites_run_again_until_ctrl_c(tmp_path, capsys, monkeypatch) -> None:
    run_command_line(["policies", "new", "team", "--in", str(tmp_path)])
    policy = tmp_path / "team" / "policy.yaml"
    written = policy.read_text()
    editor = Editor(
        lambda: policy.write_text(written.replace("'team' in", "'tea' in")),
        None,
        lambda: policy.write_text("kind: ["),
        None,
        lambda: policy.write_text(written.replace("pays", "pays a")),
        None,
    )
    monkeypatch.setattr("webhook.commands.test.time.sleep", editor.sleep)
    capsys.readouterr()
    assert run_command_line(["test", "--watch", str(tmp_path / "team")]) == 1
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if " cases: " in f" {line}"] != []
    assert err.count("note: waiting for a change of 3 files; Ctrl-C ends") == 4
    assert out.count("0 failed") == 2
