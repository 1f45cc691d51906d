"""Finds objects of files that differ from a git revision: new ones, and those with another value."""

from __future__ import annotations

import json
import subprocess
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Final

from webhook import documents
from webhook.attributes import JSON
from webhook.errors import ConfigurationError

_TIMEOUT_S: Final = 60.0


class GitChanges:
    """Compares the files of a work tree with a revision.

    An object is unchanged where its file had an equal one at that revision, wherever it stood in it. A file that moved
    is new.

    Args:
        revision: a commit, branch or tag, such as `origin/main`.
        named: what is audited, all of it in work trees of git.

    Raises:
        ConfigurationError: git is not there, a folder is in no work tree, or the revision does not exist.
    """

    def __init__(self, revision: str, named: list[str]) -> None:
        self._revision = revision
        self._roots: dict[Path, str] = {}
        self._before: tuple[str, frozenset[bytes]] = ("", frozenset())
        for name in named:
            if name == "-":
                raise ConfigurationError("--changed-since: standard input has no revisions; name files or folders")
            self._commit_of_revision(Path(name) if Path(name).is_dir() else Path(name).parent)

    def is_changed(self, each: documents.InputDocument) -> bool:
        """Return whether an object is new or differs from the revision."""
        if self._before[0] != each.source:
            self._before = each.source, self._digests_at_revision(each.source)
        return _digest_of_value(each.value) not in self._before[1]

    def _commit_of_revision(self, folder: Path) -> str:
        """Return the commit of the revision in the work tree of a folder."""
        if folder not in self._roots:
            if self._revision.startswith("-"):
                raise ConfigurationError(f"--changed-since: `{self._revision}` is not a revision")
            asked = _git_output(
                folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{self._revision}^{{commit}}"
            )
            if asked is None:
                told = f"`{self._revision}` is not a revision of a git work tree at {folder}"
                raise ConfigurationError(f"--changed-since: {told}; fetch it, or name another one")
            self._roots[folder] = asked.decode().strip()
        return self._roots[folder]

    def _digests_at_revision(self, source: str) -> frozenset[bytes]:
        """Return the digests of the objects that a file had at the revision; none if it did not exist."""
        file = Path(source)
        if not file.is_file():
            return frozenset()
        text = _git_output(
            file.parent, "show", "--end-of-options", f"{self._commit_of_revision(file.parent)}:./{file.name}"
        )
        if text is None:
            return frozenset()
        read = documents.documents_of_text(text.decode(errors="replace"), source)
        return frozenset(_digest_of_value(each.value) for each in read.documents)


def _git_output(folder: Path, *arguments: str) -> bytes | None:
    """Return the output of git; None if it failed.

    Raises:
        ConfigurationError: git is not installed.
    """
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603 - a list, no shell
    except FileNotFoundError:
        raise ConfigurationError("--changed-since: `git` is not installed or not in PATH") from None
    return done.stdout if done.returncode == 0 else None


def _digest_of_value(value: JSON) -> bytes:
    return sha256(json.dumps(value, sort_keys=True, default=attrgetter("text")).encode()).digest()
