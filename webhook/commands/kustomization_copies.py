"""Copies a kustomization with the folders that it uses. Refuses a kustomization that uses a file outside the audited
folder.

kustomize enters each folder that a kustomization names, also outside of the audited folder, and clones what looks like
an address. It reads keys as Go reads JSON: in any case, and the last of equal ones. So each kustomization is replaced
in the copy by the value that was checked. Source: sigs.k8s.io/kustomize api v0.20 internal/target/kusttarget.go.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.cluster import kustomizations
from webhook.commands.folder_copies import FolderCopies
from webhook.errors import ProgramError
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import InputFile

_RESOURCES: Final = ("resources", "bases", "components")
_PLUGINS: Final = ("generators", "transformers", "validators")
"""Fields with entries that may be folders; entries of plugins may also be the text of an object."""
_FIELDS: Final = {each.casefold(): each for each in (*_RESOURCES, *_PLUGINS)}


def copy_kustomization(copies: FolderCopies, folder: str, *, with_remote: bool) -> None:
    """Copy a kustomization and all folders that it uses, itself or through others.

    Args:
        copies: where to.
        folder: without links.
        with_remote: entries other than paths of a copied folder are left to kustomize, which fetches them.

    Raises:
        ProgramError: a kustomization cannot be read, or names something outside of the named folders.
        OSError: a file cannot be read.
    """
    waiting, seen = [folder], set[str]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        copies.add(at)
        for name in sorted(kustomizations.FILES):
            copy = Path(copies.copy_path(at)) / name
            if copy.is_file():
                value = _value_of_kustomization(copies, copy, posixpath.join(at, name))
                waiting += _folders_of_kustomization(copies, at, value, with_remote=with_remote)
                copy.unlink()
                copy.write_bytes(_json_of_kustomization(value, posixpath.join(at, name)))


def _json_of_kustomization(value: dict[str, JSON], file: str) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):  # a part that was not decoded, or not a number
        raise ProgramError(f"`{file}` has a value that cannot be copied") from None


def _value_of_kustomization(copies: FolderCopies, copy: Path, file: str) -> dict[str, JSON]:
    read = yamlfile.read_parts(InputFile(str(copy), copies.copy_path("/")))
    if read.problems:
        raise ProgramError(f"`{file}` cannot be read: {read.problems[0].message}")
    value = read.documents[0].value if read.documents else {}
    if len(read.documents) > 1 or not isinstance(value, dict):
        raise ProgramError(f"`{file}` is not a kustomization: expected one object")
    for key in value:
        if (field := _FIELDS.get(key.casefold(), key)) != key:
            raise ProgramError(f"`{file}` has the key `{key}`, which kustomize reads as `{field}`: write `{field}`")
    return value


def _folders_of_kustomization(
    copies: FolderCopies, folder: str, value: dict[str, JSON], *, with_remote: bool
) -> Iterator[str]:
    """Yield the folders that a kustomization names, without links."""
    for field in _FIELDS.values():
        entries = value.get(field)
        for entry in entries if isinstance(entries, list) else ():
            if not isinstance(entry, str):
                continue
            path = posixpath.normpath(posixpath.join(folder, entry))  # as Go joins: `a/../b` is `b` for any `a`
            target = os.path.realpath(path)
            if not (copies.root_of(path) and copies.root_of(target)):
                raise ProgramError(
                    f"`{folder}` uses `{entry}`, which is outside of the audited folder; name a folder that holds both"
                )
            if os.path.isdir(target):  # noqa: PTH112 - a text
                yield target
            elif not (os.path.lexists(path) or with_remote or (field in _PLUGINS and _is_object_text(entry))):
                raise ProgramError(
                    f"`{folder}` uses `{entry}`, which the folder does not have; "
                    "--render-remote lets kustomize fetch remote resources"
                )


def _is_object_text(entry: str) -> bool:
    """Return whether an entry is the text of an object instead of a path."""
    read = yamlfile.read_parts_of_text(entry)
    return bool(read.documents) and all(isinstance(each.value, dict) for each in read.documents)
