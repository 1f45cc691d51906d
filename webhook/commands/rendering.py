"""Renders charts and kustomizations to objects, with the installed `helm` and `kubectl kustomize`.

Both programs get a copy with only the files of the folder. There is no network, except for remote resources of
kustomizations with `--render-remote`. kustomize runs no plugins.

- helm gets no values, and does not check schemas of values. A schema can refer to any file of this machine, and an
  error would quote the file.
- Charts choose API versions by the release of Kubernetes. So helm gets the release that objects are audited for.
- A chart does not contain the name of its release. helm gets the name of the chart's folder, as in
  `helm install web ./web`. A chart that is installed only once often repeats this name in its templates.
- Charts also check whether a kind exists, which helm knows only with a cluster. So helm gets a list of kinds that
  replaced older kinds.
- Without a cluster, helm says that versions exist that Kubernetes removed. If a template asks for a removed version,
  the objects of this version are left out.

The rendered objects replace the files of the chart or kustomization. Other files of the folder are audited as usual.
"""

from __future__ import annotations

import os
import posixpath
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery import releases
from webhook.cluster import kustomizations
from webhook.cluster.naming import UNKNOWN
from webhook.commands.external_programs import ExternalPrograms, Invocation
from webhook.commands.folder_copies import FolderCopies, copy_kustomization
from webhook.errors import InputProblem, ProgramError
from webhook.facts.removed_versions import read_removed_versions, replacements_in_kubernetes
from webhook.input.document_stream import DocumentStream
from webhook.report.copies import RenderedText, RenderedTexts
from webhook.yamltext import yamlfile
from webhook.yamltext.input_files import InputFile, is_unicode, walk_folder

_TIMEOUT_S: Final = 120.0
_MAX_BYTES: Final = 128 * 1024 * 1024
"""The most bytes of the output for a folder, as for a file."""
TOTAL_S: Final = 1800.0
TOTAL_BYTES: Final = 1 << 30
"""The most seconds and bytes of output for all rendered folders of one audit."""
_CHART: Final = "Chart.yaml"
_CHART_PARTS: Final = (_CHART, "Chart.lock", "values.yaml", "values.schema.json", "charts", "crds", "templates")
_HELM: Final = ("template", "--skip-schema-validation", "--include-crds")
_RELEASE_NAME: Final = re.compile("[a-z0-9](?:[-a-z0-9]{0,51}[a-z0-9])?")
"""The names that helm accepts for a release (helm v3 pkg/chartutil ValidateReleaseName), without dots."""
_SOURCE: Final = b"# Source: "
"""The line before each object in the output of helm."""
_SEPARATOR: Final = b"\n---\n"
_ASKS_FOR_VERSION: Final = re.compile(r'APIVersions\.Has\s+["`]([\w./-]{1,253})["`]')
"""Matches how a template asks whether an API server serves a version."""
_FIELD_OF_KIND: Final = re.compile(rb"^(apiVersion|kind):[ \t]*[\"']?([\w./-]{1,253})", re.MULTILINE)
_REFUSES_RELEASE: Final = "chart requires kubeVersion"
"""The error of helm for a chart that refuses the release. The chart is then rendered for helm's default release."""
_LOCAL: Final = "file://"
_MOST_NESTED: Final = 16
"""Dependencies are added down to this level. Authors of charts choose the depth."""
_LOGGED: Final = '] "command failed" err='
"""kubectl writes this text before the cause of a failure, after a time and a line of its source."""
_NAMES: Final = frozenset((_CHART, *kustomizations.FILES))


class RenderableFolder(Struct, frozen=True):
    """A folder to render, and the files that it is rendered from.

    `affixes` are the prefixes and suffixes that a kustomization adds to names of objects. `folders` are the folders of
    a kustomization and of the kustomizations that it uses. `patches` are their patches, without the numbers in names.
    """

    folder: str
    kind: Literal["chart", "kustomization"]
    parts: frozenset[str]
    affixes: Sequence[str] = ()
    folders: frozenset[str] = frozenset()
    patches: frozenset[str] = frozenset()

    def is_rendered_from(self, source: str) -> bool:
        """Return whether a file is an input for rendering the folder."""
        path = PurePath(posixpath.normpath(source))
        return any(str(each) in self.parts for each in (path, *path.parents))

    def is_unlisted_patch(self, source: str) -> bool:
        """Return whether a file has the name of a patch, and no kustomization of the folder lists the file."""
        path = posixpath.normpath(source)
        is_named = kustomizations.is_named_as_patch(path, self.folders, self.patches)
        return is_named and not self.is_rendered_from(path)


def find_renderables(named: Sequence[str]) -> list[RenderableFolder]:
    """Return the charts that are not inside another chart, and the kustomizations that no other kustomization uses.
    Both are sorted by path.
    """
    renderables, kustomized, components = list[RenderableFolder](), list[kustomizations.Kustomization](), set[str]()
    for name in map(Path, named):
        for each in walk_folder(name, _NAMES.__contains__, _enters) if name.is_dir() else ():
            if each.is_folder or not is_unicode(each.file.name):
                continue
            file = each.file.path
            if file.name == _CHART and not any(chart.is_rendered_from(str(file)) for chart in renderables):
                if not _is_library(each.file):
                    renderables.append(RenderableFolder(str(file.parent), "chart", _parts_of_chart(file.parent)))
            elif file.name in kustomizations.FILES:
                for kustomization, is_component in _kustomization_of_file(each.file):
                    kustomized.append(kustomization)
                    components |= {kustomization.folder} if is_component else set()
    charts = tuple(renderables)
    by_folder = {each.folder: each for each in kustomized}
    used = {path for each in kustomized for path in each.used_paths}
    for root in by_folder.keys() - used - components:
        if not any(chart.is_rendered_from(root) for chart in charts):
            parts = frozenset(_parts_of_kustomization(root, by_folder))
            of_root = _used_kustomizations(root, by_folder)
            folders = frozenset(each.folder for each in of_root)
            patches = frozenset(kustomizations.path_without_numbers(path) for each in of_root for path in each.patches)
            renderables.append(RenderableFolder(root, "kustomization", parts, _affixes_of(of_root), folders, patches))
    return sorted(renderables, key=lambda each: each.folder)


def _is_library(file: InputFile) -> bool:
    """A library chart has only templates for other charts. helm does not render it."""
    documents = yamlfile.read_parts(file).documents[:1]
    return any(isinstance(each.value, dict) and each.value.get("type") == "library" for each in documents)


def _parts_of_chart(folder: Path) -> frozenset[str]:
    return frozenset(str(folder / each) for each in _CHART_PARTS)


def _parts_of_kustomization(root: str, by_folder: Mapping[str, kustomizations.Kustomization]) -> set[str]:
    """Return the files that a kustomization uses directly or through other kustomizations.

    A used folder without a readable kustomization is returned as a whole.
    """
    parts, waiting, seen = set[str](), [root], {root}
    while waiting:
        path = waiting.pop()
        if kustomization := by_folder.get(path):
            parts |= {posixpath.join(path, each) for each in kustomizations.FILES} | {*kustomization.patches}
            new = {*kustomization.used_paths} - seen
            seen |= new
            waiting += new
        else:
            parts.add(path)
    return parts


def _used_kustomizations(
    root: str, by_folder: Mapping[str, kustomizations.Kustomization]
) -> Sequence[kustomizations.Kustomization]:
    """Return the kustomization of a folder and the kustomizations that it uses directly or through others."""
    waiting, seen = [root], {root}
    of_root = list[kustomizations.Kustomization]()
    while waiting:
        kustomization = by_folder.get(waiting.pop())
        if kustomization is None:
            continue
        of_root.append(kustomization)
        waiting += {*kustomization.used_paths} - seen
        seen |= {*kustomization.used_paths}
    return of_root


def _affixes_of(of_root: Iterable[kustomizations.Kustomization]) -> Sequence[str]:
    """Return the prefixes and suffixes of kustomizations, the longest first."""
    affixes = {affix for each in of_root for affix in each.affixes}
    return tuple(sorted(affixes, key=lambda each: (-len(each), each)))


def _kustomization_of_file(file: InputFile) -> Iterator[tuple[kustomizations.Kustomization, bool]]:
    """Yield the kustomization of a file, and whether it is a component, which is not rendered alone. An unreadable
    kustomization is yielded empty, and rendering it reports the problem.
    """
    path = posixpath.normpath(file.path.as_posix())
    read_file = yamlfile.read_parts(file)
    if read_file.problems:
        yield kustomizations.Kustomization(folder=posixpath.dirname(path), used_paths=(), naming=UNKNOWN), False
        return
    for document in read_file.documents[:1]:
        if read := kustomizations.read_kustomization(path, document.value):
            yield read, document.value.get("kind") == "Component"


def _enters(name: str) -> bool:
    """Hidden folders are not searched, because their files are not audited."""
    return not name.startswith(".")


class Rendered(Struct, frozen=True):
    """Problems of folders that could not be rendered, and how the other folders were rendered."""

    problems: tuple[InputProblem, ...]
    texts: RenderedTexts


def replace_by_rendered_objects(
    stream: DocumentStream,
    named: Sequence[str],
    release: releases.Release,
    *,
    with_remote: bool = False,
    total_s: float = TOTAL_S,
    total_bytes: int = TOTAL_BYTES,
) -> Rendered:
    """Replace the files of each chart and kustomization by its rendered objects.

    Files of the stream that are not copied for helm or kubectl count as not read. `release` is the Kubernetes release,
    for charts. After `total_s` seconds or `total_bytes` of output, no further folder is rendered.
    """
    problems: list[InputProblem] = []
    texts: dict[str, RenderedText] = {}
    folders = [each for each in named if os.path.isdir(each)]  # noqa: PTH112 - names of the command line
    programs = ExternalPrograms(folders)
    end, left = time.monotonic() + total_s, total_bytes
    for each in find_renderables(folders):
        if time.monotonic() > end or left <= 0:
            used = f"{total_bytes:,} bytes of output" if left <= 0 else f"{total_s / 60:g} minutes"
            reason = f"is not rendered: the folders before it used {used}, the most for one audit; audit fewer folders"
            problems.append(InputProblem(message=reason, file=each.folder))
            continue
        with tempfile.TemporaryDirectory(prefix="claimgate-") as folder_for_copies:
            copies = FolderCopies(folders, folder_for_copies)
            try:
                data = _render_folder(each, programs, copies, release, with_remote=with_remote)
                left -= len(data)
                stream.replace_with_rendered(each.folder, data, each.is_rendered_from, each.is_unlisted_patch)
                texts[each.folder] = RenderedText(
                    each.affixes, _templates_of_chart(data) if each.kind == "chart" else ()
                )
            except (ProgramError, OSError) as error:
                reason = str(error.strerror).lower() if isinstance(error, OSError) else str(error)
                problems.append(InputProblem(message=f"cannot be rendered: {reason}", file=each.folder))
            stream.add_files_not_read(copies.not_read)
    return Rendered(tuple(problems), texts)


def _templates_of_chart(data: bytes) -> tuple[tuple[int, str], ...]:
    """Return the lines of helm's output at which a template begins, with the path of the template."""
    lines = enumerate(data.split(b"\n"), 1)
    return tuple(
        (number, line.removeprefix(_SOURCE).decode(errors="replace"))
        for number, line in lines
        if line.startswith(_SOURCE)
    )


def cause_of_failure(message: str) -> str:
    """Return the cause of a failure in the output of helm or kubectl. Warnings and debugging advice are left out."""
    cause = message.rpartition("Error: ")[2].partition(" Use --debug flag")[0].removeprefix("error: ")
    logged = cause.partition(_LOGGED)[2].strip('<> "')
    return logged or cause.strip() or "without a message"


def _render_folder(
    each: RenderableFolder,
    programs: ExternalPrograms,
    copies: FolderCopies,
    release: releases.Release,
    *,
    with_remote: bool,
) -> bytes:
    folder = os.path.realpath(each.folder)
    if each.kind == "chart":
        programs.find("helm")
        copies.add(folder)
        _add_local_dependencies(folder, copies)
        name = PurePath(folder).name
        copied = (name if _RELEASE_NAME.fullmatch(name) else "release", copies.copy_path(folder))
        options = (*_HELM, "--api-versions", ",".join(replacements_in_kubernetes()))
        for_release = Invocation(
            program="helm",
            options=(*options, "--kube-version", releases.release_as_text(release)),
            operands=copied,
            timeout_s=_TIMEOUT_S,
            max_bytes=_MAX_BYTES,
        )
        try:
            data = _run(for_release, programs, copies)
        except ProgramError as error:
            if _REFUSES_RELEASE not in str(error):
                raise
            data = _run(replace(for_release, options=options), programs, copies)
        return _without_chosen_versions(data, Path(copies.copy_path(folder)))
    programs.find("kubectl")
    copy_kustomization(copies, folder, with_remote=with_remote)
    kustomize = Invocation(
        program="kubectl",
        options=("kustomize",),
        operands=(copies.copy_path(folder),),
        timeout_s=_TIMEOUT_S,
        max_bytes=_MAX_BYTES,
        network=with_remote,
    )
    return _run(kustomize, programs, copies)


def _without_chosen_versions(data: bytes, chart: Path) -> bytes:
    """Return the output of helm with empty lines for each object of a removed version that a template asks for.

    An API server does not serve the version, so a cluster would never get this object.
    """
    removed = {(f"{group}/{version}", kind) for group, version, kind in read_removed_versions()}
    of_removed = {version for version, _ in removed}
    texts = (each.read_text(errors="replace") for each in chart.rglob("templates/**/*") if each.is_file())
    chosen = {version for text in texts for version in _ASKS_FOR_VERSION.findall(text)} & of_removed
    if not chosen:
        return data
    left = []
    for document in data.split(_SEPARATOR):
        fields = {name: value.decode() for name, value in _FIELD_OF_KIND.findall(document)}
        version, kind = fields.get(b"apiVersion", ""), fields.get(b"kind", "")
        left.append(b"\n" * document.count(b"\n") if version in chosen and (version, kind) in removed else document)
    return _SEPARATOR.join(left)


def _add_local_dependencies(folder: str, copies: FolderCopies, above: tuple[str, ...] = ()) -> None:
    """Copy the `file://…` dependencies of a chart, and their dependencies, to the place where `helm dependency build`
    puts them.

    `above` has the charts that depend on this chart. helm reports dependencies that are too deep to be copied.

    Raises:
        ProgramError, OSError: as FolderCopies.add.
    """
    if len(above) >= _MOST_NESTED:
        return
    charts = Path(copies.copy_path(folder), "charts")
    present = {each.name for each in charts.iterdir()} if charts.is_dir() else set[str]()
    packages = [name for name in present if name.endswith(".tgz")]
    for name, target in _local_dependencies(folder):
        contains_chart = any(Path(each).is_relative_to(target) for each in (*above, folder))
        is_there = name in present or any(each.startswith(f"{name}-") for each in packages)
        if contains_chart or is_there or not copies.root_of(target) or not Path(target).is_dir():
            continue
        copies.add(target)
        _add_local_dependencies(target, copies, (*above, folder))
        charts.mkdir(exist_ok=True)
        (charts / name).symlink_to(copies.copy_path(target))
        present.add(name)


def _local_dependencies(folder: str) -> Iterator[tuple[str, str]]:
    """Yield name and folder of each dependency that is a folder of this machine. The folder has no links."""
    for document in yamlfile.read_parts(InputFile(str(Path(folder, _CHART)), folder)).documents[:1]:
        dependencies = document.value.get("dependencies") if isinstance(document.value, dict) else None
        for each in dependencies if isinstance(dependencies, list) else ():
            name, repository = (each.get("name"), each.get("repository")) if isinstance(each, dict) else ("", "")
            if not isinstance(name, str) or not isinstance(repository, str) or name != PurePath(name).name:
                continue
            if repository.startswith(_LOCAL) and name != "..":
                yield name, os.path.realpath(Path(folder, repository.removeprefix(_LOCAL)))


def _run(invocation: Invocation, programs: ExternalPrograms, copies: FolderCopies) -> bytes:
    output = programs.run(invocation)
    if output.code:
        cause = cause_of_failure(output.message.replace(copies.copy_path("/").rstrip("/"), ""))
        raise ProgramError(f"`{invocation.program} {invocation.options[0]}` failed: {cause}")
    return output.stdout
