"""Reports a mistake in copies of an object as one finding with several places.

These repetitions are one mistake:

- an API version that is no longer served, in all objects of this version
- a missing `---`
- a mistake that authors copy, such as an unknown field, at the same place in objects of one kind
- the objects of a base in each overlay of kustomize, and those of `config/` in a folder such as `bundle/` or `dist/`
- objects from a loop in a template of a chart
- a series of objects in one file, such as worker-0 to worker-3
- copies of a pod template in one object

The warnings about a copy of another project, such as a folder `upstream`, are one finding. The owner of the copy
updates the whole copy, and does not correct single files. All copies that are too old are one finding. In a file such
as `cert-manager-v0.7.2.yaml`, or a folder such as `cert-manager-v0.7.2`, the versions that are no longer served are one
finding.

All places of a finding are known only at the end. Findings are kept until then, in a file if there are many (spool).
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shlex
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from webhook.report.counts import FINDINGS
from webhook.report.finding import Copy, Finding, Result
from webhook.report.rule import Rules
from webhook.report.screen import Screen, ScreenAwareWriter
from webhook.report.spool import Spool
from webhook.report.writer import Totals, Writer
from webhook.text.wording import counted

_MOST_REMEMBERED: Final = 100_000
"""The most findings and copies that are compared. Later findings are reported separately."""


class RenderedText(Struct, frozen=True):
    """How a folder was rendered.

    Attributes:
        affixes: the prefixes and suffixes that an overlay adds to names, the longest first.
        templates: the line, from 1, where the text of each template begins, and the path of the template.
    """

    affixes: Sequence[str] = ()
    templates: Sequence[tuple[int, str]] = ()

    def template_of_line(self, line: int) -> str:
        """Return the path of the template of a line; "" for a line without a template."""
        number = bisect_right(self.templates, line, key=lambda each: each[0])
        return self.templates[number - 1][1] if number else ""


class CopiedProject(Struct, frozen=True):
    """A copy of another project.

    Args:
        folders: the folders, or the file, of the copy.
        name: the project, if its folders or its file show it.
        is_only_named: only the name of a release, and removed versions, show that the folder or the file is a copy.
    """

    folders: tuple[str, ...]
    name: str = ""
    is_only_named: bool = False

    def fix(self, fix_of_mistake: str, other_mistakes: int, other_projects: int = 0) -> str:
        """Return the fix of the one finding that reports all warnings about this copy.

        Args:
            fix_of_mistake: the fix of the mistake that the finding shows.
            other_mistakes: the number of mistakes in the copy that the finding does not show.
            other_projects: the number of other copied projects that the same finding reports.
        """
        if other_projects:
            places = f"`{self.folders[0]}` and {counted(other_projects, 'other place')}"
            return f"take newer releases of the projects that are copied in {places}"
        project = self.name or f"the project that `{self.folders[0]}` copies"
        if not other_mistakes:
            return f"take a newer release of {project}, or {fix_of_mistake}"
        folders = shlex.join(f"./{each}" if each.startswith("-") else each for each in self.folders)
        shown = f"`claimgate audit {folders}` shows {counted(other_mistakes, 'other mistake')}"
        return f"take a newer release of {project}; {shown} of this copy"


class CopiedFolders:
    """The folders with copies of other projects: folders with a name such as `vendor`, folders that kfctl writes,
    copies of repositories of Kubernetes, unpacked releases, and the folders of kubeflow/manifests.
    """

    def __init__(self, named: Sequence[str] = ()) -> None:
        """`named` are the paths that a user named. Such a folder is not a copy, because its user wants all findings."""
        self._named = frozenset(map(posixpath.normpath, named))
        self._known: dict[str, CopiedProject] = {}
        self._project_files: frozenset[str] = frozenset()

    def add_output_of_kfctl(self, file: str) -> None:
        """Add the folder that kfctl writes for a configuration in this file."""
        folder = posixpath.join(posixpath.dirname(posixpath.normpath(file)), _OUTPUT_OF_KFCTL)
        self._known[folder] = CopiedProject((folder,))

    def add_distributions(self, files: Collection[str]) -> None:
        """Add the folders of copies of kubeflow/manifests. `files` are all files of the audit."""
        paths = [f"/{posixpath.normpath(file)}" for file in files]
        inside: dict[str, set[str]] = {path.partition(_ROLES)[0]: set() for path in paths if _ROLES in path}
        for path in paths if inside else ():
            for folder in _folders_above(path):
                top, _, name = folder.rpartition("/")
                if top in inside:
                    inside[top].add(name)
        for top, names in inside.items():
            folders = tuple(f"{top}/{name}"[1:] for name in _FOLDERS_OF_DISTRIBUTION if name in names)
            self._known.update(dict.fromkeys(folders, CopiedProject(folders, _DISTRIBUTION)))

    def add_project_files(self, files: Collection[str]) -> None:
        """Add files that stand at the top of a project: LICENSE and SECURITY_CONTACTS."""
        self._project_files |= frozenset(map(posixpath.normpath, files))

    def copy_of(self, file: str) -> CopiedProject | None:
        """Return the outermost copy that contains the file, or else the outermost folder or file with the name of a
        release; None for other files.
        """
        path = posixpath.normpath(file)
        if path in self._named:
            return None
        folders = _folders_above(path)
        own = max((depth for depth, folder in enumerate(folders, 1) if folder in self._named), default=0)
        if not own and "." not in self._named:
            return None
        for folder in folders[own:]:
            if folder in self._known:
                return self._known[folder]
            name = posixpath.basename(folder)
            if name in _FOLDERS_OF_COPIES or f"{folder}/{_FILE_OF_REPOSITORY}" in self._project_files:
                return CopiedProject((folder,))
            if (release := _RELEASE.fullmatch(name)) and f"{folder}/{_LICENSE}" in self._project_files:
                return CopiedProject((folder,), release[1])
        for each in (*folders[own:], path):
            if release := _RELEASE.fullmatch(posixpath.basename(each)):
                return CopiedProject((each,), release[1], is_only_named=True)
        return None


def _folders_above(path: str) -> Sequence[str]:
    """Return the folders above a file, the outermost first: `a` and `a/b` for `a/b/c.yaml`."""
    return [path[:place] for place, character in enumerate(path) if character == "/"]


RenderedTexts: TypeAlias = Mapping[str, RenderedText]
"""How folders were rendered, by the paths of the folders."""
_AS_WRITTEN: Final = RenderedText()
_FOLDERS_OF_COPIES: Final = frozenset(("third-party", "third_party", "upstream", "vendor"))
_RELEASE: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]{0,99}?)-v?[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}(?:\.ya?ml|\.json)?")
"""Matches the name of a release, which names its project, such as `istio-1.2.2` and `istio-1.2.2.yaml`."""
_LICENSE: Final = "LICENSE"
"""The file that a folder with an unpacked release has."""
_FILE_OF_REPOSITORY: Final = "SECURITY_CONTACTS"
"""A file at the top of each repository of the organizations of Kubernetes (kubernetes/kubernetes-template-project)."""
_OUTPUT_OF_KFCTL: Final = "kustomize"
"""The folder that kfctl writes beside its configuration (kubeflow/kfctl v1.2 pkg/kfapp/kustomize/kustomize.go)."""
_DISTRIBUTION: Final = "kubeflow/manifests"
_ROLES: Final = "/common/kubeflow-roles/"
"""A folder that only kubeflow/manifests has."""
_FOLDERS_OF_DISTRIBUTION: Final = ("apps", "applications", "common", "contrib", "docs", "experimental")
"""The folders in which kubeflow/manifests copies the manifests of other projects (v1.3 to v1.10)."""
_REMOVED: Final = "served-version/removed"
"""The rule that most clearly shows that a copy is too old."""
_API_VERSION: Final = "apiVersion"
"""The path of findings about the version or the beginning of an object."""
_UNKNOWN_KIND: Final = "manifest/unknown-kind"
_HABITS: Final = frozenset(
    (
        "manifest-shape/ambiguous-port",
        "manifest-shape/completion-index",
        "manifest-shape/home-folder",
        "manifest-shape/image-name",
        "manifest-shape/ingress-port",
        "manifest-shape/pod-value",
        "manifest-shape/probe-port",
        "manifest-shape/restart-policy",
        "manifest-shape/secret-data",
        "manifest-shape/unknown-field",
        "manifest-shape/volume-exists",
        "manifest-shape/volume-only-read",
        "manifest/repeated-key",
        _UNKNOWN_KIND,
        "object-shape/template-labels",
        "device-failures/pod-failure-policy",
        "device-failures/ray-job-retries",
        "device-failures/readiness-probe",
        "gpu-requests/cuda-image",
        "gpu-requests/every-gpu-visible",
        "gpu-requests/removed-resource",
        "kueue-not-now/queue-required",
        "mesh/sidecar",
        "model-server/parallel-size-above-gpus",
        "model-server/without-gpu",
        "pod-prerequisites/pod-security",
        "pod-resources/limit-required",
        "pod-resources/request-above-limit",
        "ray/cluster-required",
        "storage/read-write-once",
        "storage/rolling-update",
        "storage/shared-memory",
        "storage/shared-memory-limit",
        "train-job/unknown-field",
        "training-job/main-container",
        "training-job/pod-restart-policy",
    )
)
"""Rules about mistakes that an author copies to objects with other names."""
_OF_TYPES: Final = frozenset(("manifest-shape/unknown-field", _UNKNOWN_KIND))
"""Habits that are the same mistake in all kinds. Their messages name the type that lacks the field, or the API version
that lacks the kind.
"""
_OF_VALUES: Final = frozenset(("manifest-shape/image-name",))
"""Habits that are the same mistake with other values."""
_NAMING: Final = frozenset(("manifest-shape/target-port",))
"""Rules whose message names another object. Their place is the first line of a container, which a generator changes."""
_NAMES: Final = re.compile(
    r" because image `[^`]*`| of namespace [^ ]{1,99}|in container [^ ]{1,99}"
    r"|the container that trains \([^()]{1,999}\)"
)
"""Matches the clauses of a message or a fix with names of images, namespaces and containers. The names differ between
copies of a mistake.
"""
_MOVED: Final = "move the fields to "
"""The beginning of the fix for fields that a wrong indentation moved. Other objects may have other fields there."""
_INDEX: Final = re.compile(r"\[[0-9]{1,9}\]")
_NUMBER: Final = re.compile(r"(?<![0-9])[0-9]{1,9}(?![0-9])")
"""Matches a number in a name. The names of a series of objects differ only in such a number."""
_TEMPLATE: Final = "emplate."
"""A path up to this text names the role of a template, such as `Master.template.` and `leaderTemplate.`."""
_CAUSES: Final[Mapping[str, str]] = {
    "claims-exactly-one/source-required": "resource-claims/served-version",
    "training-runtime/initializer-mount": "train-job/initializer-step",
}
"""Rules that repeat another mistake in the file, each with the rule that reports the mistake. Pods for Kubernetes 1.30
name their claims in `source`. Later releases do not serve the version of these claims. The denial of a TrainJob names
the mount that its runtime lacks.
"""


class CopiesWriter:
    """Passes findings on to another writer at the end. Copies of a mistake are one finding."""

    def __init__(self, writer: Writer[Finding], rendered: RenderedTexts, projects: CopiedFolders) -> None:
        """`rendered` says how folders were rendered, and `projects` which folders are copies of other projects."""
        self._writer = writer
        self._rendered = rendered
        self._projects = projects
        self._kept: Spool[Finding] = Spool()
        self._numbers_of_copy: dict[CopiedProject | None, dict[tuple[bytes, int], int]] = {}
        self._copies: dict[int, list[Copy]] = {}
        self._repeated: Counter[Result] = Counter()
        self._causes: dict[tuple[str, str], int] = {}
        self._effects: dict[int, tuple[str, str]] = {}
        self._remembered = 0
        self._next_number = 0
        self._file = ""
        self._project: CopiedProject | None = None
        self._in_file: Counter[bytes] = Counter()
        self._warnings: dict[CopiedProject, list[int]] = {}
        self._removed: dict[CopiedProject, tuple[int, Copy]] = {}

    def use_screen(self, screen: Screen) -> None:
        if isinstance(self._writer, ScreenAwareWriter):
            self._writer.use_screen(screen)

    def begin(self, rules: Rules) -> Iterable[str]:
        return self._writer.begin(rules)

    def entry(self, entry: Finding) -> Iterable[str]:
        """Keep a finding, or only its place for a copy. The findings of a file must follow each other."""
        if entry.place.file != self._file:
            self._file = entry.place.file
            self._project = self._projects.copy_of(self._file)
            self._in_file.clear()
        project = self._project if entry.result is Result.WARN and not entry.is_advice else None
        if project is not None and project.is_only_named and entry.rule.id != _REMOVED:
            project = None
        first = self._number_of_first(entry, project)
        number = self._next_number if first is None else first
        if entry.rule.id in _CAUSES.values():
            self._causes.setdefault((entry.place.file, entry.rule.id), number)
        if first is None:
            if cause := _CAUSES.get(entry.rule.id):
                self._effects[number] = entry.place.file, cause
            if project is not None:
                self._warnings.setdefault(project, []).append(number)
                if entry.rule.id == _REMOVED:
                    self._removed.setdefault(project, (number, Copy(entry.place, entry.subject)))
            self._kept.append(entry)
            self._next_number += 1
            return ()
        self._copies.setdefault(first, []).append(Copy(entry.place, entry.subject))
        if not entry.is_advice:
            self._repeated[entry.result] += 1
        return ()

    def end(self, totals: Totals) -> Iterator[str]:
        self._add_effects_to_causes()
        numbers_of_projects = self._findings_of_copied_projects()
        others = {number for numbers in numbers_of_projects.values() for number in numbers[1:]}
        shown = {numbers[0]: (project, len(numbers) - 1) for project, numbers in numbers_of_projects.items()}
        old = [project for project in numbers_of_projects if project in self._removed]
        others.update(self._add_copies_to_first(old))
        for number, finding in enumerate(self._kept):
            if number in self._effects or number in others:
                continue
            other_old_projects = len(old) - 1 if old and number == self._removed[old[0]][0] else 0
            shown_finding = (
                _finding_of_copied_project(finding, *shown[number], other_old_projects) if number in shown else finding
            )
            copies = self._copies.get(number)
            yield from self._writer.entry(replace(shown_finding, also_in=tuple(copies)) if copies else shown_finding)
        counts = replace(totals.counts, results=totals.counts.results - self._repeated)
        yield from self._writer.end(replace(totals, counts=counts))

    def _add_effects_to_causes(self) -> None:
        """Add each effect of a reported mistake, with its copies, as a place of the mistake."""
        self._effects = {number: cause for number, cause in self._effects.items() if cause in self._causes}
        for number, finding in enumerate(self._kept) if self._effects else ():
            if cause := self._effects.get(number):
                places = (Copy(finding.place, finding.subject), *self._copies.get(number, ()))
                self._copies.setdefault(self._causes[cause], []).extend(places)
                self._repeated[finding.result] += 1

    def _findings_of_copied_projects(self) -> Mapping[CopiedProject, Sequence[int]]:
        """Return the numbers of the warnings of each copy, and count only one warning. The first number belongs to the
        warning to show.
        """
        numbers_of_projects: dict[CopiedProject, list[int]] = {}
        for project, warnings in self._warnings.items():
            numbers_of_warnings = [number for number in warnings if number not in self._effects]
            if numbers_of_warnings:
                first = self._removed[project][0] if project in self._removed else numbers_of_warnings[0]
                numbers_of_projects[project] = [first, *(number for number in numbers_of_warnings if number != first)]
                self._repeated[Result.WARN] += len(numbers_of_warnings) - 1
        return numbers_of_projects

    def _add_copies_to_first(self, projects: Sequence[CopiedProject]) -> Iterator[int]:
        """Add the finding of each later project as a place of the finding of the first, and yield its number."""
        for project in projects[1:]:
            number, place = self._removed[project]
            self._copies.setdefault(self._removed[projects[0]][0], []).append(place)
            self._repeated[Result.WARN] += 1
            yield number

    def _number_of_first(self, finding: Finding, project: CopiedProject | None) -> int | None:
        """Return the number of the earlier finding with the same mistake in a project; None if this is the first.

        Within a file, findings are joined only for objects from one template or of one API version, for a series of
        objects, or for pod templates of one object. Other findings of a mistake are compared by their position in the
        file: the second finding with the second finding in another file.
        """
        is_of_version = finding.path == _API_VERSION
        if finding.result not in FINDINGS or self._remembered >= _MOST_REMEMBERED:
            return None
        if not finding.subject.name and not is_of_version:
            return self._number_of_nameless(finding, project)
        self._remembered += 1
        rendered = self._rendered.get(finding.place.file, _AS_WRITTEN)
        template = rendered.template_of_line(finding.place.line)
        if is_of_version:
            mistake = _digest_of_version(finding)
        else:
            mistake = _digest_of_mistake(finding, rendered.affixes, template)
        self._in_file[mistake] += 1
        key = mistake, 1 if template or is_of_version else self._in_file[mistake]
        numbers_by_key = self._numbers_of_copy.setdefault(project, {})
        if key in numbers_by_key:
            return numbers_by_key[key]
        series = _digest_of_series(finding) if finding.place.file not in self._rendered else b""
        keys = [(series, 1), (_digest_of_habit(finding), 1), (_digest_of_template(finding), key[1])]
        keys = [each for each in keys if each[0]]
        first = next((numbers_by_key[each] for each in keys if each in numbers_by_key), None)
        number = self._next_number if first is None else first
        numbers_by_key[key] = number
        for each in keys:
            numbers_by_key.setdefault(each, number)
        return first

    def _number_of_nameless(self, finding: Finding, project: CopiedProject | None) -> int | None:
        """Return the number of an earlier finding with the same mistake in an object of the kind without a name; None
        for mistakes that authors do not copy.
        """
        habit = _digest_of_habit(finding)
        if not habit:
            return None
        self._remembered += 1
        key = habit, 1
        numbers_by_key = self._numbers_of_copy.setdefault(project, {})
        first = numbers_by_key.get(key)
        numbers_by_key.setdefault(key, self._next_number)
        return first


def _finding_of_copied_project(
    finding: Finding, project: CopiedProject, other_mistakes: int, other_projects: int
) -> Finding:
    """Return a finding of a copy of another project, with the fix of the whole copy or of several copies."""
    problem = finding.problem
    return (
        finding
        if problem is None
        else replace(finding, problem=replace(problem, fix=project.fix(problem.fix, other_mistakes, other_projects)))
    )


def _digest_of_mistake(finding: Finding, affixes: Sequence[str], template: str) -> bytes:
    """Return a digest of a mistake as a reader recognizes it, without file and namespace.

    The source line distinguishes objects of the same name, except for a rule whose message already has a name. One
    template may make objects with many names, so the digest of its objects has the template instead of the name.
    """
    subject = finding.subject
    added = (subject.name, *affixes) if template else affixes
    texts = (
        f"{finding.place.file} {template}" if template else subject.name,
        finding.message,
        finding.line.text if finding.line and finding.rule.id not in _NAMING else "",
    )
    return _digest(
        *_parts_of_mistake(finding), subject.kind, *(_text_of_base(text, subject.namespace, added) for text in texts)
    )


def _digest_of_series(finding: Finding) -> bytes:
    """Return a digest of a mistake in a file, without the number in the object's name; b"" without a number."""
    subject = finding.subject
    name = _NUMBER.sub("#", subject.name)
    if name == subject.name:
        return b""
    texts = (
        finding.message.replace(subject.name, name),
        (finding.line.text if finding.line else "").replace(subject.name, name),
    )
    return _digest(*_parts_of_mistake(finding), finding.place.file, subject.kind, subject.namespace, name, *texts)


def _digest_of_habit(finding: Finding) -> bytes:
    """Return a digest that is equal for all objects of a kind with the mistake; b"" if authors do not copy the mistake.

    A mistake in the Configuration of a controller has one digest for all kinds. The position in a list does not
    matter. For a pod, the kind that makes the pod does not matter either.
    """
    problem, decision = finding.problem, finding.decision
    if finding.rule.id not in _HABITS or problem is None:
        return b""
    place = _INDEX.sub("[]", finding.path)
    of_pod = place.rpartition(_TEMPLATE)[-1]
    kind = "Pod" if of_pod.startswith("spec.") and of_pod != place else finding.subject.kind
    if finding.rule.id in _OF_TYPES:
        place, kind = place.rpartition(".")[-1], ""
    advice = "advice" if finding.is_advice else ""
    text = problem.message if finding.rule.id in _OF_VALUES else _NAMES.sub("", problem.found_and_message)
    if finding.rule.id in _OF_TYPES and problem.fix.startswith(_MOVED):
        text = text.rpartition(" are not fields ")[-1]
    if finding.rule.id == _UNKNOWN_KIND:
        text = text.replace(f"`{finding.subject.kind}`", "", 1)
    message = text, _INDEX.sub("[]", _NAMES.sub("", problem.fix))
    rule = finding.rule.id, decision.policy, decision.param
    return _digest(str(finding.result), advice, *rule, kind, of_pod if kind else place, *message)


def _digest_of_version(finding: Finding) -> bytes:
    """Return a digest of a mistake in the version of an object.

    A release may stop serving several versions with the same successor. All objects of these versions have one mistake.
    An example is Kubernetes 1.16, without extensions/v1beta1, apps/v1beta1 and apps/v1beta2. If the kind also changed,
    the fix names the kind.
    """
    problem, decision = finding.problem, finding.decision
    if problem is None or not problem.release:
        return _digest(*_parts_of_mistake(finding), finding.message)
    advice = "advice" if finding.is_advice else ""
    parts = (finding.rule.id, decision.policy, decision.param, problem.release, problem.fix)
    return _digest(str(finding.result), advice, *parts)


def _digest_of_template(finding: Finding) -> bytes:
    """Return a digest of a mistake in a pod template, without the role of the template; b"" outside pod templates."""
    subject = finding.subject
    path = finding.path.rpartition(_TEMPLATE)[-1]
    if path == finding.path:
        return b""
    of_role = finding.path[: -len(path)].rpartition(".")[0].rpartition(".")[0]
    message = finding.message.replace(of_role, "") if of_role else finding.message
    line = finding.line.text.strip() if finding.line else ""
    names = finding.place.file, subject.kind, subject.namespace, subject.name
    return _digest(*_parts_of_mistake(finding, path), *names, message, line)


def _parts_of_mistake(finding: Finding, path: str | None = None) -> Iterator[str]:
    """Yield the values that are equal in all findings of one mistake. `path` replaces the path of the finding."""
    subject, decision = finding.subject, finding.decision
    yield str(finding.result)
    yield "advice" if finding.is_advice else ""
    place = finding.path if path is None else path
    yield from (finding.rule.id, decision.policy, decision.param, subject.api_version, place)


def _digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=16).digest()


def _text_of_base(text: str, namespace: str, affixes: Sequence[str]) -> str:
    """Return a text without the namespace, and without what an overlay adds to names."""
    words = []
    for word in text.replace("`", " ").split():
        name = word.strip(",;:()").removeprefix(f"{namespace}/")
        for affix in affixes:
            name = name.removeprefix(affix).removesuffix(affix)
        words.append("" if name == namespace else name)
    return " ".join(words)
