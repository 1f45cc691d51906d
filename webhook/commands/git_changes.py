"""Finds objects of files that differ from a git revision: new ones, and those with another value.

git reads the work tree that the user named, and no repository inside it. It is asked for commits and for the bytes of
files alone, so that no hook, filter, pager, helper or transport that a configuration names has a part in it.
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Final

from webhook import documents
from webhook.attributes import JSON
from webhook.commands.external_programs import ExternalProgram, find_program
from webhook.errors import ConfigurationError, ProgramError

_TIMEOUT_S: Final = 60.0
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # a list of protocols, of which git has none by that name
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_CONFIGURATION: Final = (
    "safe.bareRepository=explicit",
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.pager=cat",
    "credential.helper=",
    "protocol.allow=never",
)
"""What counts whatever the configuration of the repository says."""


class GitChanges:
    """Compares the files of a work tree with a revision.

    An object is unchanged where its file had an equal one at that revision, wherever it stood in it. A file that moved
    is new, and so is every file that the work tree has from a repository inside it.

    Args:
        revision: a commit, branch or tag, such as `origin/main`.
        named: what is audited, all of it in work trees of git.

    Raises:
        ConfigurationError: git is not there, a folder is in no work tree, or the revision does not exist.
    """

    def __init__(self, revision: str, named: list[str]) -> None:
        self._revision = revision
        self._commits: dict[Path, str] = {}
        self._before: tuple[str, frozenset[bytes]] = ("", frozenset())
        if "-" in named:
            raise ConfigurationError("--changed-since: standard input has no revisions; name files or folders")
        if revision.startswith("-"):
            raise ConfigurationError(f"--changed-since: `{revision}` is not a revision")
        try:
            self._git = find_program("git", named, has_network=True)  # which `_ENVIRONMENT` keeps it from
        except ProgramError as error:
            raise ConfigurationError(f"--changed-since: {error}") from None
        for name in named:
            top = self._work_tree_of_path(Path(name).absolute())
            if top not in self._commits:
                self._commits[top] = self._commit_in(top, name)

    def is_changed(self, each: documents.InputDocument) -> bool:
        """Return whether an object is new or differs from the revision."""
        if self._before[0] != each.source:
            self._before = each.source, self._digests_at_revision(each.source)
        return _digest_of_value(each.value) not in self._before[1]

    def _work_tree_of_path(self, path: Path) -> Path:
        """Return the top of the work tree that a named path is in: the nearest folder with `.git`."""
        for folder in (path, *path.parents):
            if os.path.lexists(folder / ".git"):
                return folder
        raise ConfigurationError(f"--changed-since: {path} is in no git work tree; name a folder of one")

    def _commit_in(self, top: Path, name: str) -> str:
        """Return the commit of the revision in a work tree."""
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{self._revision}^{{commit}}")
        output = _output_of_git(self._git, top, *asked)
        if output is None:
            told = f"`{self._revision}` is not a revision of a git work tree at {name}"
            raise ConfigurationError(f"--changed-since: {told}; fetch it, or name another one")
        return output.decode().strip()

    def _digests_at_revision(self, source: str) -> frozenset[bytes]:
        """Return the digests of the objects that a file had at the revision; none if it did not exist."""
        file = Path(source).absolute()
        above = (each for each in self._commits if file.is_relative_to(each))
        top = max(above, key=lambda each: len(each.parts), default=None)
        if top is None or not file.is_file():
            return frozenset()
        blob = f"{self._commits[top]}:{file.relative_to(top).as_posix()}"
        text = _output_of_git(self._git, top, "cat-file", "blob", blob)
        if text is None:
            return frozenset()
        read = documents.documents_of_text(text.decode(errors="replace"), source)
        return frozenset(_digest_of_value(each.value) for each in read.documents)


def _output_of_git(git: ExternalProgram, top: Path, *arguments: str) -> bytes | None:
    """Return the output of git in a work tree; None if it failed.

    The repository is named, so git looks for none and asks for no owner (`safe.directory`).
    """
    settings = [part for each in _CONFIGURATION for part in ("-c", each)]
    try:
        return git.run(
            *(f"--git-dir={top / '.git'}", f"--work-tree={top}", "--no-pager", *settings, *arguments),
            timeout_s=_TIMEOUT_S,
            environment=_ENVIRONMENT,
        )
    except ProgramError:
        return None


def _digest_of_value(value: JSON) -> bytes:
    return sha256(json.dumps(value, sort_keys=True, default=attrgetter("text")).encode()).digest()
