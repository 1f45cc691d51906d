"""Renders charts and kustomizations to objects, with the installed `helm` and `kubectl kustomize`.

Both run with the files of the folder alone: no values are given, and kustomize runs no plugin. What a kustomization
takes from an address is fetched by kubectl, so nothing is rendered unless somebody asks for it.
"""

from __future__ import annotations

import posixpath
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from webhook import yamlfile
from webhook.cluster import kustomizations
from webhook.document_stream import DocumentStream
from webhook.errors import Problem
from webhook.input_files import InputFile

_TIMEOUT_S: Final = 120.0
_CHART: Final = "Chart.yaml"


@dataclass(frozen=True, slots=True)
class RenderableFolder:
    """A folder to render, the command for that, and the folders and files that it is rendered from."""

    folder: str
    command: tuple[str, ...]
    parts: frozenset[str]

    def is_rendered_from(self, source: str) -> bool:
        """Return whether the folder is rendered from a file."""
        path = PurePath(posixpath.normpath(source))
        return any(str(each) in self.parts for each in (path, *path.parents))


def find_renderables(named: Sequence[str]) -> list[RenderableFolder]:
    """Return the outermost charts of folders, and the kustomizations that no other one uses, in the order of their
    paths.
    """
    chart_folders, kustomized = list[str](), list[kustomizations.Kustomization]()
    for name in map(Path, named):
        for file in sorted(name.rglob("*")) if name.is_dir() else ():
            if file.name == _CHART and not any(file.is_relative_to(chart) for chart in chart_folders):
                chart_folders.append(str(file.parent))
            elif file.name in kustomizations.FILES:
                kustomized += _kustomization_of_file(InputFile(str(file), str(name)))
    made = [RenderableFolder(each, ("helm", "template", "release", each), frozenset((each,))) for each in chart_folders]
    by_folder = {each.folder: each for each in kustomized}
    taken = {path for each in kustomized for path in each.taken}
    made += [
        RenderableFolder(root, ("kubectl", "kustomize", root), frozenset(_parts_of_kustomization(root, by_folder)))
        for root in by_folder.keys() - taken
        if not any(Path(root).is_relative_to(chart) for chart in chart_folders)
    ]
    return sorted(made, key=lambda each: each.folder)


def _parts_of_kustomization(root: str, by_folder: Mapping[str, kustomizations.Kustomization]) -> set[str]:
    """Return the folders and files that a kustomization uses, itself or through others, and its own folder."""
    parts, waiting = {root}, [root]
    while waiting:
        of = by_folder.get(waiting.pop())
        new = {*of.taken, *of.patches} - parts if of else set()
        parts |= new
        waiting += new
    return parts


def _kustomization_of_file(file: InputFile) -> Iterator[kustomizations.Kustomization]:
    """Yield the kustomization of a file; one that cannot be read is reported when it is rendered."""
    path = posixpath.normpath(file.path.as_posix())
    for document in yamlfile.read_parts(file).documents[:1]:
        if (read := kustomizations.read_kustomization(path, document.value)) and document.value.get(
            "kind"
        ) != "Component":
            yield read


def replace_by_rendered_objects(stream: DocumentStream, named: Sequence[str]) -> tuple[Problem, ...]:
    """Replace the files of each chart and kustomization by its rendered objects; return the problems."""
    problems: list[Problem] = []
    for each in find_renderables(named):
        try:
            stream.replace_with_rendered(each.folder, _render_folder(each), each.is_rendered_from)
        except RuntimeError as error:
            problems.append(Problem(message=str(error), file=each.folder))
    return tuple(problems)


def _render_folder(each: RenderableFolder) -> bytes:
    program = each.command[0]
    if shutil.which(program) is None:
        raise RuntimeError(f"cannot be rendered: `{program}` is not installed or not in PATH")
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            each.command, capture_output=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"`{' '.join(each.command)}` took longer than {_TIMEOUT_S:.0f} s") from None
    if done.returncode:
        why = " ".join(done.stderr.decode(errors="replace").split())
        raise RuntimeError(f"`{' '.join(each.command)}` failed: {why[:500] or 'without a message'}")
    return done.stdout
