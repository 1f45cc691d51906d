"""Renders charts and kustomizations to objects, with the installed `helm` and `kubectl kustomize`.

Both get the files of the named folder alone, as `external_programs` starts them: helm a copy of the chart without the
links that leave it, kubectl kustomize the folder itself, which reads no file behind such a link. No values are given.
Plugins, functions in containers and charts in kustomizations stay off. What a kustomization takes from an address is
refused before kubectl is started, unless the user allows it.
"""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final

from webhook import yamlfile
from webhook.attributes import JSON
from webhook.cluster import kustomizations
from webhook.cluster.naming import UNKNOWN
from webhook.commands.external_programs import find_program
from webhook.document_stream import DocumentStream
from webhook.errors import Problem, ProgramError
from webhook.input_files import FoundFile, InputFile, open_file, walk_folder

_TIMEOUT_S: Final = 120.0
_CHART: Final = "Chart.yaml"
_MOST_CHART_BYTES: Final = 64 * 1024 * 1024
"""The largest chart, all files together."""
_MOST_CHART_FILES: Final = 10_000
_PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class RenderableFolder:
    """A folder to render.

    Args:
        folder: its path, as it was found.
        named: the folder that the user named, and that its files must not leave.
        is_chart: whether helm renders it, and not kubectl kustomize.
        parts: the folders and files that it is rendered from.
    """

    folder: str
    named: str
    is_chart: bool
    parts: frozenset[str]

    def is_rendered_from(self, source: str) -> bool:
        """Return whether the folder is rendered from a file."""
        path = PurePath(posixpath.normpath(source))
        return any(str(each) in self.parts for each in (path, *path.parents))


def find_renderables(named: Sequence[str]) -> list[RenderableFolder]:
    """Return the outermost charts of folders, and the kustomizations that no other one uses, in the order of their
    paths.
    """
    charts, kustomized = dict[str, str](), dict[str, tuple[kustomizations.Kustomization, str]]()
    for name in (each for each in named if Path(each).is_dir()):
        files = (each.file for each in walk_folder(Path(name), _is_head, _is_entered) if not each.reason)
        for file in sorted(files, key=lambda each: each.path):
            folder = str(file.path.parent)
            if file.path.name == _CHART:
                if not any(file.path.is_relative_to(chart) for chart in charts):
                    charts[folder] = name
            else:
                kustomized |= {each.folder: (each, name) for each in _kustomization_of_file(file)}
    made = [RenderableFolder(folder, name, True, frozenset((folder,))) for folder, name in charts.items()]
    by_folder = {folder: each for folder, (each, _) in kustomized.items()}
    taken = {path for each in by_folder.values() for path in each.taken}
    made += [
        RenderableFolder(root, kustomized[root][1], False, frozenset(_parts_of_kustomization(root, by_folder)))
        for root in by_folder.keys() - taken
        if not any(Path(root).is_relative_to(chart) for chart in charts)
    ]
    return sorted(made, key=lambda each: each.folder)


def _is_head(name: str) -> bool:
    return name == _CHART or name in kustomizations.FILES


def _is_entered(name: str) -> bool:
    return name != ".git"


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
    read_file = yamlfile.read_parts(file)
    if read_file.problems:
        yield kustomizations.Kustomization(folder=posixpath.dirname(path), taken=(), naming=UNKNOWN)
        return
    for document in read_file.documents[:1]:
        if (read := kustomizations.read_kustomization(path, document.value)) and document.value.get(
            "kind"
        ) != "Component":
            yield read


def replace_by_rendered_objects(
    stream: DocumentStream, named: Sequence[str], *, may_fetch: bool = False
) -> tuple[Problem, ...]:
    """Replace the files of each chart and kustomization by its rendered objects; return the problems.

    Args:
        stream: the files; a file of a chart that helm does not get is one that is not read.
        named: what the user named.
        may_fetch: whether parts may come from addresses.
    """
    problems: list[Problem] = []
    for each in find_renderables(named):
        not_read: list[FoundFile] = []
        try:
            rendered = _render(each, named, not_read, may_fetch=may_fetch)
            stream.replace_with_rendered(each.folder, rendered, each.is_rendered_from, not_read)
        except ProgramError as error:
            problems.append(Problem(message=f"cannot be rendered: {error}", file=each.folder))
    return tuple(problems)


def _render(each: RenderableFolder, named: Sequence[str], not_read: list[FoundFile], *, may_fetch: bool) -> bytes:
    program = find_program("helm" if each.is_chart else "kubectl", named, has_network=may_fetch)
    if not each.is_chart:
        if not may_fetch:
            _refuse_addresses(each)
        return program.run("kustomize", "--", _absolute(each.folder), timeout_s=_TIMEOUT_S)
    with tempfile.TemporaryDirectory(prefix="claimgate-chart-") as copy:
        not_read += _copy_chart(Path(each.folder), Path(copy) / "chart")
        update = ("--dependency-update",) if may_fetch else ()
        return program.run("template", *update, "--", "release", str(Path(copy) / "chart"), timeout_s=_TIMEOUT_S)


def _absolute(folder: str) -> str:
    return str(Path(folder).absolute())


def _copy_chart(chart: Path, copy: Path) -> list[FoundFile]:
    """Copy the regular files of a chart, also those behind links that stay in it; return what was left out.

    Raises:
        ProgramError: it is larger than a chart may be, or cannot be read.
    """
    left_out, files, size = list[FoundFile](), 0, 0
    copy.mkdir()
    for file in walk_folder(chart, lambda _: True, _is_entered):
        if file.reason:
            left_out.append(file)
            continue
        files += 1
        target = copy / file.file.path.relative_to(chart)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_file(file.file) as source, target.open("wb") as stream:
                while piece := source.read(_PIECE_BYTES):
                    size += len(piece)
                    if size > _MOST_CHART_BYTES:
                        break
                    stream.write(piece)
        except OSError as error:
            raise ProgramError(f"{file.file} cannot be read: {(error.strerror or 'unknown cause').lower()}") from None
        if size > _MOST_CHART_BYTES or files > _MOST_CHART_FILES:
            raise ProgramError(f"the chart has more than {_MOST_CHART_FILES:,} files or {_MOST_CHART_BYTES >> 20} MiB")
    return left_out


_FOLDERS_AND_FILES: Final = ("resources", "bases", "components")
"""Fields with folders, files or addresses of both."""
_FILES: Final = (
    *("crds", "configurations", "generators", "transformers", "validators", "patchesStrategicMerge"),
    *("patches", "patchesJson6902", "replacements", "openapi", "configMapGenerator", "secretGenerator"),
)
"""Fields with files, some of them below other fields."""


def _refuse_addresses(each: RenderableFolder) -> None:
    """Raise if a kustomization, or one that it uses, takes something from elsewhere than the named folder.

    Source: sigs.k8s.io/kustomize api v0.20 internal/loader/fileloader.go: what is no file here is a git repository, and
    any file may be an http address.

    Raises:
        ProgramError: it names such an address or folder, or cannot be read.
    """
    top = os.path.realpath(_boundary(each.named))
    waiting, seen = [each.folder], set[str]()
    while waiting:
        folder = waiting.pop()
        if (real := os.path.realpath(folder)) in seen:
            continue
        seen.add(real)
        for value in _values_of_kustomization(folder, top):
            for entry in _texts(value, _FOLDERS_AND_FILES):
                path = os.path.realpath(Path(folder) / entry)
                if not _is_local(entry, path, top):
                    told = f"`{entry}` in {folder} is neither a file nor a folder below {top}"
                    raise ProgramError(f"{told}; --render-remote fetches addresses")
                if Path(path).is_dir():
                    waiting.append(path)
            for entry in _texts(value, _FILES):
                if "://" in entry and "\n" not in entry:
                    raise ProgramError(f"`{entry}` in {folder} is an address; --render-remote fetches it")


def _boundary(named: str) -> Path:
    """Return the folder that bases may be in: the work tree of git around what was named, or else the named folder."""
    folder = Path(named).absolute()
    return next((each for each in (folder, *folder.parents) if os.path.lexists(each / ".git")), folder)


def _is_local(entry: str, path: str, top: str) -> bool:
    return "\n" not in entry and Path(path).is_relative_to(top) and Path(path).exists()


def _values_of_kustomization(folder: str, top: str) -> Iterator[Mapping[str, JSON]]:
    """Yield the documents of the kustomization files of a folder.

    Raises:
        ProgramError: one cannot be read here, so that nobody knows what it fetches.
    """
    for name in sorted(kustomizations.FILES):
        file = InputFile(str(Path(folder) / name), top)
        if not os.path.lexists(file.name):
            continue
        read = yamlfile.read_parts(file)
        if read.problems:
            raise ProgramError(read.problems[0].message)
        yield from (each.value for each in read.documents if isinstance(each.value, dict))


def _texts(value: Mapping[str, JSON], fields: Sequence[str]) -> Iterator[str]:
    """Yield all texts in some fields, at any depth."""
    waiting = [value.get(field) for field in fields]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
