"""Which manifests of a folder podman runs on one machine, and no cluster: files that a script or a quadlet gives to it.

Podman reads Pods more loosely than an API server, such as variables with numbers. Only scripts and quadlets next to a
manifest are read, as text and never run.
Source: podman-kube-play(1) and podman-systemd.unit(5) of podman 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Final

from webhook.yamltext.input_files import FoundFile, InputFile, read_start

_MAX_BYTES: Final = 1 << 16
"""Bytes of a script or a quadlet that are read."""
_PLAYS: Final = ("podman play kube ", "podman kube play ")
_YAML_OF_QUADLET: Final = "Yaml="


def find_files_for_podman(files: Iterable[InputFile]) -> Iterator[FoundFile]:
    """Yield the files of folders that podman runs, with the reason. Files that a person named are none of these."""
    by_folder: dict[tuple[str, str], dict[str, InputFile]] = {}
    for file in files:
        if not file.is_named and "://" not in file.name:
            path = PurePath(file.name)
            by_folder.setdefault((str(path.parent), file.root), {})[path.name] = file
    for (folder, root), named in by_folder.items():
        for script in _scripts_of_folder(folder):
            for name in named.keys() & set(_names_played_by(InputFile(str(PurePath(folder, script)), root))):
                yield FoundFile(
                    named.pop(name), f"podman runs it, as `{script}` says, and no cluster; name it to read it"
                )


def _scripts_of_folder(folder: str) -> list[str]:
    try:
        return sorted(path.name for path in Path(folder).iterdir() if path.suffix in (".sh", ".kube"))
    except OSError:
        return []


def _names_played_by(script: InputFile) -> Iterator[str]:
    """Yield the last parts of the paths that a script or a quadlet gives to podman."""
    try:
        text = read_start(script, max_bytes=_MAX_BYTES).decode(errors="replace")
    except OSError:
        return
    for line in map(str.strip, text.splitlines()):
        if script.name.endswith(".kube"):
            yield from [PurePath(line.removeprefix(_YAML_OF_QUADLET)).name] if line.startswith(_YAML_OF_QUADLET) else ()
        elif not line.startswith("#"):
            words = (word for each in _PLAYS for word in line.partition(each)[2].split())
            yield from (PurePath(word.strip("\"'")).name for word in words)
