"""Finds objects in files that are new or changed since a git revision. Also returns the checked-out commit.

git runs only at the top of the work tree of files that the user named. A repository can contain configuration that
starts programs. So git runs only `rev-parse`, `ls-tree` and `cat-file`, which print stored objects.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.commands.external_programs import ExternalPrograms, Invocation, Output, enclosing_work_tree
from webhook.errors import ConfigurationError, ProgramError
from webhook.input import documents

_TIMEOUT_S: Final = 60.0
_MAX_BYTES: Final = 128 * 1024 * 1024
"""The most bytes that git may print: the text of a file, or the list of all files."""
_OVERRIDES: Final = {
    "safe.bareRepository": "explicit",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.alternateRefsCommand": "false",
    "core.askPass": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.attributesFile": os.devnull,
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "core.bigFileThreshold": "64m",
    "core.packedGitLimit": "512m",
    "core.packedGitWindowSize": "32m",
}
"""Overrides settings with which a repository could start a program, or exceed the bounds of a program."""
_ENVIRONMENT: Final = {
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}
_OWN_CONFIGURATION: Final = frozenset(
    ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
)
"""Variables by which git finds the user's configuration."""
_OBJECT_ID: Final = re.compile(r"[0-9a-f]{40,64}")
_FILE_OF_TREE: Final = re.compile(rb"100(?:644|755|664) blob ([0-9a-f]+)\t(.+)", re.DOTALL)
_OWNER: Final = "dubious ownership"
_IN_OTHER_TREE: Final = "it is in a work tree of git that was not named"
_NOT_STORED: Final = "git does not have its text at the revision"


class _WorkTree(Struct, frozen=True):
    """A work tree at a revision: the ids of the files by path below the top."""

    top: str
    files: Mapping[bytes, str]


def checked_out_commit(named: Sequence[str]) -> str:
    """Return the commit that is checked out in the work tree of the named files; "" if unknown.

    The commit is unknown without git. It is also unknown for standard input, object stores, several work trees, and a
    work tree of another user.
    """
    folders = [_folder_of_name(each) for each in named if each != "-" and "://" not in each]
    tops = {enclosing_work_tree(os.path.realpath(each)) for each in folders}
    if len(tops) != 1 or len(folders) < len(named) or "" in tops:
        return ""
    try:
        return _Git(folders).id_of_commit(tops.pop(), "HEAD")[0]
    except ConfigurationError:
        return ""


class _Git:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._programs = ExternalPrograms(folders)
        self._trusted: Sequence[str] | None = None

    def id_of_commit(self, top: str, revision: str) -> tuple[str, Output]:
        """The commit id is "" if the revision does not exist."""
        command = ("rev-parse", "--verify", "--quiet")
        output = self.run(top, command, [f"{revision}^{{commit}}"], "--end-of-options")
        commit = output.stdout.decode(errors="replace").strip()
        return commit if not output.code and _OBJECT_ID.fullmatch(commit) else "", output

    def run(self, top: str, command: Sequence[str], operands: Sequence[str] = (), separator: str = "--") -> Output:
        """Return the output of git at the top of a work tree.

        Raises:
            ConfigurationError: git is not installed, or exceeded a bound.
        """
        settings = [f"{name}={value}" for name, value in _OVERRIDES.items()]
        settings += [f"safe.directory={each}" for each in self._trusted_folders(top)]
        options = [part for each in settings for part in ("-c", each)]
        return self._run(
            Invocation(
                program="git",
                options=("--no-pager", *options, "-C", top, *command),
                operands=operands,
                separator=separator,
                environment={**_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(Path(top).parent)},
                timeout_s=_TIMEOUT_S,
                max_bytes=_MAX_BYTES,
            )
        )

    def _trusted_folders(self, top: str) -> Sequence[str]:
        """Return the user's values of safe.directory; () for a work tree of the user.

        Without these values, git refuses a work tree of another user.
        """
        if {os.stat(top).st_uid, os.lstat(f"{top}/.git").st_uid} == {os.geteuid()}:  # noqa: PTH116 - texts
            return ()
        if self._trusted is None:
            environment = {name: os.environ.get(name) for name in _OWN_CONFIGURATION}
            output = self._run(
                Invocation(
                    program="git",
                    options=("config", "-z", "--path", "--get-all", "safe.directory"),
                    environment={**environment, "GIT_DIR": os.devnull},
                    timeout_s=_TIMEOUT_S,
                    max_bytes=_MAX_BYTES,
                )
            )
            self._trusted = [os.fsdecode(each) for each in output.stdout.split(b"\0")[:-1]]
        return self._trusted

    def _run(self, invocation: Invocation) -> Output:
        try:
            return self._programs.run(invocation)
        except ProgramError as error:
            raise ConfigurationError(f"--changed-since: {error}") from None


class GitChanges:
    """Compares the files of a work tree with a revision.

    An object is unchanged if its file had an equal object at the revision, anywhere in the file. A file that moved is
    new. A file that cannot be compared counts as new, and is reported.

    Args:
        revision: a commit, branch or tag, such as `origin/main`.
        named: the audited files and folders, all in git work trees.

    Raises:
        ConfigurationError: git does not exist, a folder is in no work tree, or the revision does not exist.
    """

    def __init__(self, revision: str, named: Sequence[str]) -> None:
        if revision.startswith("-"):
            raise ConfigurationError(f"--changed-since: `{revision}` is not a revision")
        if "-" in named:
            raise ConfigurationError("--changed-since: standard input has no revisions; name files or folders")
        folders = [_folder_of_name(each) for each in named]
        self._git = _Git(folders)
        self._tops: dict[str, str] = {}
        self._before: tuple[str, frozenset[bytes]] = ("", frozenset())
        self._not_compared: dict[str, str] = {}
        paths: dict[str, list[str]] = {}
        for name, folder in zip(named, folders, strict=True):
            if not (top := self._top_of_folder(os.path.realpath(folder))):
                raise ConfigurationError(f"--changed-since: {folder} is in no git work tree")
            path = os.path.realpath(folder) if Path(name).is_dir() else _path_of_file(name)
            paths.setdefault(top, []).append(os.path.relpath(path, top))
        self._trees = {top: self._read_tree(top, revision, each) for top, each in paths.items()}

    def is_changed(self, each: documents.InputDocument) -> bool:
        """Return whether an object is new, differs from the revision, or cannot be compared."""
        if self._before[0] != each.source:
            self._before = each.source, self._digests_at_revision(each.source)
        return _digest_of_value(each.value) not in self._before[1]

    def pop_files_not_compared(self) -> Mapping[str, str]:
        """Return the files that could not be compared since the last call, with the reasons."""
        popped, self._not_compared = self._not_compared, {}
        return popped

    def _top_of_folder(self, folder: str) -> str:
        """Return "" if the folder is in no work tree."""
        if folder not in self._tops:
            self._tops[folder] = enclosing_work_tree(folder)
        return self._tops[folder]

    def _read_tree(self, top: str, revision: str, paths: Sequence[str]) -> _WorkTree:
        commit, output = self._git.id_of_commit(top, revision)
        if _OWNER in output.message:
            raise ConfigurationError(
                f"--changed-since: {top} belongs to another user, so git does not read it; "
                f"`git config --global --add safe.directory {top}` trusts it"
            )
        if output.code and output.message:
            raise ConfigurationError(f"--changed-since: git cannot read {top}: {output.message}")
        if not commit:
            message = f"`{revision}` is not a revision of a git work tree at {top}"
            raise ConfigurationError(f"--changed-since: {message}; fetch it, or name another revision")
        named = [] if "." in paths else [f"./{each}" if each.startswith("-") else each for each in paths]
        listed = self._git.run(top, ("ls-tree", "-r", "-z", "--full-tree", commit), named)
        if listed.code:
            raise ConfigurationError(f"--changed-since: git cannot list {top}: {listed.message}")
        entries = filter(None, map(_FILE_OF_TREE.fullmatch, listed.stdout.split(b"\0")))
        return _WorkTree(top, {each[2]: each[1].decode() for each in entries})

    def _digests_at_revision(self, source: str) -> frozenset[bytes]:
        """Return the digests of a file's objects at the revision; empty if the file did not exist."""
        if not Path(source).is_file():  # the folder of a rendered chart
            return frozenset()
        path = _path_of_file(source)
        tree = self._trees.get(self._top_of_folder(os.path.dirname(path)))  # noqa: PTH120 - a text
        if tree is None:
            self._not_compared[source] = _IN_OTHER_TREE
            return frozenset()
        blob = tree.files.get(os.fsencode(os.path.relpath(path, tree.top)))
        if blob is None:
            return frozenset()
        try:
            printed = self._git.run(tree.top, ("cat-file", "blob", blob))
        except ConfigurationError as error:
            self._not_compared[source] = str(error)
            return frozenset()
        if printed.code:
            self._not_compared[source] = _NOT_STORED
            return frozenset()
        read = documents.documents_of_text(printed.stdout.decode(errors="replace"), source)
        return frozenset(_digest_of_value(each.value) for each in read.documents)


def _folder_of_name(name: str) -> Path:
    return Path(name) if Path(name).is_dir() else Path(name).parent


def _path_of_file(file: str) -> str:
    """The path has no links among its folders. The file itself may be a link."""
    return os.path.join(os.path.realpath(os.path.dirname(file)), os.path.basename(file))  # noqa: PTH118, PTH119, PTH120


def _digest_of_value(value: JSON) -> bytes:
    return sha256(json.dumps(value, sort_keys=True, default=attrgetter("text")).encode()).digest()
