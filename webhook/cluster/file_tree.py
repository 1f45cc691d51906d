"""The view of the cluster for an object of the named files. Its layers are the objects of --context, of the object's
own file, and of the files that are applied together with this file (the unit).

The first layer with an object of the name decides. The answer is unknown if this layer has several different objects
with the name, or an object with an unknown namespace. An object that no file has may exist, unless the user says that
the files are whole. Whole files have all objects of the cluster, and an object without a namespace is in `default`.

CustomResourceDefinitions and Deployments of controllers are used from all files. A tree may define a kind, or install
its controller, in one folder, and use the kind in another folder.

Assertions and expected outputs of kuttl and Chainsaw are recognized by the names of their files. These files have only
the compared fields, so their objects do not exist in this view, and the audit does not read the files. Archived files
are also left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import CRD, JSON, NAMESPACE, GroupVersionKind, UnmergedPatch
from webhook.apimachinery.object_lists import objects_of_list
from webhook.apimachinery.paths import get
from webhook.cluster.applied_together import FilesAppliedTogether, Unit, normalize_path
from webhook.cluster.controllers import (
    DEPLOYMENT,
    ControllerRelease,
    assumed_deployments_of_controllers,
    find_releases_in_document,
    is_test_or_vendored_file,
)
from webhook.cluster.interest import Index
from webhook.cluster.kustomizations import (
    kustomizations_of_documents,
    object_with_images,
    object_with_pod_labels,
    object_with_texts_as_annotations,
)
from webhook.cluster.lookup import describe_lookup
from webhook.cluster.naming import (
    IN_OTHER_FILES,
    UNSAID,
    FileObject,
    FileObjects,
    Kind,
    NameChanges,
    group_kind,
    objects_with_final_names,
)
from webhook.errors import DifferentDefinitions, UnknownNamespaceOrName

_FOLDERS: Final = frozenset(("test", "tests", "e2e", "fixtures"))
_ASSERTION: Final = "an assertion of a test, which has only the fields that are compared"
_EXPECTED: Final = "the expected output or failure of a test, which nobody applies"
_OUTPUT: Final = re.compile(r"expected.*|(?:.*[-_.])?(?:output|golden|snapshot)s?_{0,2}(?:\.[a-z]+)?", re.DOTALL)
"""Matches the name of a file or folder for the outputs of a program under test: `expected-job.yaml`, `helm-output`,
`job.golden.yaml` and `__snapshots__`.
"""
_INVALID: Final = "an invalid input of a test, which is wrong on purpose"
_SEPARATORS: Final = str.maketrans("-_.", "///")
"""Separates the words in the names of files and folders."""
_WORDS_OF_COPIES: Final = frozenset(("backup", "bad", "bak", "broken", "faulty", "old", "orig", "wrong"))
"""Words in the names of former or faulty copies: `pod-old.yaml` and `broken_pod.yaml` beside `pod.yaml`."""
_COPY: Final = "a former or faulty copy of a file beside it, by its name"
_UNDELIVERED: Final = "a file that neither Flux nor Argo CD applies, because no kustomization lists it"
_POLICY_INPUT: Final = "an input of a test of policies, which may break them on purpose"
KYVERNO_TEST: Final = ("cli.kyverno.io", "Test")
GATOR_SUITE: Final = ("test.gatekeeper.sh", "Suite")
_ARCHIVES: Final = frozenset(("archive", "_archive", ".archive"))
"""The names of a top folder for old files. An application may have a folder `archive` further down."""
_OF_MANIFESTS: Final = frozenset(
    (
        *("k8s", "kubernetes", "manifests", "deploy", "deployments"),
        *("cluster", "clusters", "infra", "infrastructure", "gitops"),
    )
)
"""Names of folders for the manifests of all applications. A folder of archived files may be directly inside them."""
_ARCHIVED_WORDS: Final = frozenset(("archived", "attic", "deprecated", "notused", "unused"))
"""Words at the end of the names of folders for old files, at any depth: `deprecated` and `ZZZ-deprecated`."""
_DISABLED: Final = "_disabled"
"""The name of a folder for applications that the owner has switched off."""
_ARCHIVED: Final = "a file in a folder of archived files"
_FOLDER_OF_RELEASE: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9-]{0,99}?-)?(v)?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})(-[a-z0-9.-]{1,40})?"
)
"""Matches the name of a folder for one release: `v0.5.0`, `v1.20`, `0.2.1`, `version-0.6.0`, `v0.6.0-rc1`,
`strimzi-0.18.0`.
"""
_WORDS_FOR_RELEASE: Final = ("version-", "release-")
_VERSIONED_PAGES: Final = "versioned_docs"
"""The folder in which Docusaurus keeps the pages of former releases."""
_FolderRelease: TypeAlias = tuple[tuple[int, ...], bool]
"""The numbers of a release, and whether it is final."""


def is_in_folder_of_tests(file: str, root: str = "") -> bool:
    """Return whether a file is in a folder of tests below the working directory.

    Below an absolute `root`, which is the folder that a user named, only the folders below `root` count.
    """
    below = posixpath.relpath(file, root) if posixpath.isabs(file) and root else file
    return not posixpath.isabs(below) and not _FOLDERS.isdisjoint(below.split("/")[:-1])


def is_assertion(file: str) -> bool:
    """Return whether a file is named as an assertion: `01-assert.yaml`, `assert.yaml` or `01-errors.yaml`."""
    stem = posixpath.splitext(posixpath.basename(file))[0].lower().replace("_", "-")
    before, _, word = stem.rpartition("-")
    return word in ("assert", "asserts", "assertion") or (word in ("error", "errors") and before.isdigit())


def reason_not_applied(file: str, root: str = "") -> str:
    """Return why the objects of a file are never applied, or "".

    `root` is the folder that a user named. A user who names an archive wants its files audited.
    """
    if is_assertion(file):
        return _ASSERTION
    below = posixpath.relpath(file, root) if root else file
    if is_in_folder_of_tests(file, root):
        if any(map(_OUTPUT.fullmatch, below.split("/"))):
            return _EXPECTED
        if "invalid" in below.lower().translate(_SEPARATORS).split("/"):
            return _INVALID
    return _ARCHIVED if _is_archived(below) and not _is_archived(f"{root}/") else ""


def _is_archived(file: str) -> bool:
    steps = file.split("/")[:-1]
    top = next((step for step in steps if step not in _OF_MANIFESTS), "")
    last_words = {step.lower().replace("_", "-").rpartition("-")[2] for step in steps}
    return top in _ARCHIVES or _DISABLED in steps or not _ARCHIVED_WORDS.isdisjoint(last_words)


def _releases_above(file: str) -> Iterator[tuple[str, _FolderRelease]]:
    """Yield each folder above a file that is named after a release, as its path without the release, and the release.

    A folder such as `1.2` or `lab-1.2` may be a chapter, so only `v1.2`, `release-1.2` and `1.2.0` are releases.
    """
    steps = file.split("/")[:-1]
    for number, step in enumerate(steps):
        match = _FOLDER_OF_RELEASE.fullmatch(step)
        if match and (match[2] or match[3].count(".") > 1 or match[1] in _WORDS_FOR_RELEASE):
            project = match[1] or ""
            path = "/".join((*steps[:number], project))
            yield path, (tuple(map(int, match[3].split("."))), match[4] is None)


def _originals_of_copy(path: str) -> Iterator[str]:
    """Yield the files of which a file is a former or faulty copy, if they exist."""
    folder, name = posixpath.split(path)
    stem, extension = posixpath.splitext(name)
    words = stem.lower().translate(_SEPARATORS).split("/")
    for word, rest in ((words[0], stem[len(words[0]) + 1 :]), (words[-1], stem[: -len(words[-1]) - 1])):
        if rest and word in _WORDS_OF_COPIES:
            yield posixpath.join(folder, f"{rest}{extension}")


class FileTree:
    """The objects of a tree of files. The view from an object has the objects that are applied together with this
    object.

    Args:
        objects: each object, or kustomization, with its file.
        context: the objects of --context, with their files.
        is_whole: the cluster has no other objects.
        files: all files with objects, if `objects` has only the objects that are looked up.
        patches: files with the name of a patch, beside a rendered kustomization that does not list the files.
    """

    def __init__(
        self,
        objects: Iterable[tuple[str, JSON]] = (),
        *,
        files: Iterable[str] = (),
        context: Iterable[tuple[str, JSON]] = (),
        is_whole: bool = False,
        patches: Iterable[str] = (),
    ) -> None:
        self._documents: Final = _objects_by_file(objects, files)
        self._patches: Final = frozenset(map(normalize_path, patches))
        self._policy_inputs: Final = frozenset(_inputs_of_policy_tests(self._documents))
        self._units: Final = FilesAppliedTogether(self._documents)
        of_context = _objects_by_file(context)
        self._context: Final = FileObjects(
            each for item in of_context.items() for each in objects_with_final_names(*item)
        )
        self._of_context: Final = tuple(
            (file, obj) for file, objects_of_file in of_context.items() for obj in objects_of_file
        )
        self._definitions: Final = (
            *_custom_resource_definitions(of_context),
            *_custom_resource_definitions(self._documents),
        )
        self._stated: Final = tuple(_releases_in_documents(of_context)) or tuple(
            _releases_in_documents(self._documents)
        )
        self._in_other_files: Final = tuple(_objects_for_other_files(self._documents))
        self._differing: Final = dict[str, Sequence[str]]()
        self._recorded: Final = set[str]()
        self._of_units: Final[dict[Unit, FileObjects]] = {}
        self._of_all: FileObjects | None = None
        self._newest_releases: dict[str, _FolderRelease] | None = None
        of_context_folders = kustomizations_of_documents(of_context)
        self._without_object: Final = self._units.names_without_final_object() | of_context_folders.generated
        # an object that seems to be absent may exist under a name that is not known, or come from elsewhere
        self.is_whole: Final = (
            is_whole
            and self._units.are_read
            and of_context_folders.are_read
            and all(self._units.name_changes_of_file(file).is_known for file in self._documents)
        )

    def apply_kustomizations(self, file: str, obj: JSON) -> JSON:
        """Return an object with the names, images, pod labels and annotations that kustomizations give it."""
        path = normalize_path(file)
        if path not in self._documents:
            return obj
        if self._units.is_listed(path):
            obj = object_with_texts_as_annotations(obj)
        named = self._units.name_changes_of_file(path).apply_to_object(obj)
        labelled = object_with_pod_labels(named, self._units.pod_labels_of_file(path))
        return object_with_images(labelled, self._units.image_changes_of_file(path))

    def has_file(self, file: str) -> bool:
        """Return whether the tree has a file with objects."""
        return normalize_path(file) in self._documents

    def is_of_older_release(self, file: str) -> bool:
        """Return whether a folder above a file is named after a release, and another folder beside it after a newer
        release: `install/v0.5.0` beside `install/v0.6.1`, `strimzi-0.18.0` beside `strimzi-0.24.0`. Nobody changes the
        files of a former release.
        """
        if self._newest_releases is None:
            self._newest_releases = {}
            for name in self._documents:
                for top, release in _releases_above(name):
                    self._newest_releases[top] = max(release, self._newest_releases.get(top, release))
        path = normalize_path(file)
        is_of_old_pages = _VERSIONED_PAGES in path.split("/")
        return is_of_old_pages or any(
            release < self._newest_releases.get(top, release) for top, release in _releases_above(path)
        )

    def unmerged_patches(self, file: str, obj: JSON) -> tuple[UnmergedPatch, ...]:
        """Return what kustomizations may add to an object of a file."""
        path = normalize_path(file)
        return self._units.unmerged_patches(path, obj) if path in self._documents else ()

    def knows_namespace(self, file: str) -> bool:
        """Return whether the namespaces of a file's objects are known in spite of kustomizations."""
        path = normalize_path(file)
        return path not in self._documents or self._units.name_changes_of_file(path).is_known

    def is_patch(self, file: str) -> bool:
        """Return whether a kustomization merges the objects of a file into objects of other files."""
        path = normalize_path(file)
        return path in self._patches or self._units.is_patch(path)

    def reason_not_applied(self, file: str, root: str = "") -> str:
        """Return why the objects of a file are not applied: by its path, because a test of policies lists the file, or
        because no kustomization lists the file; otherwise "".
        """
        if reason := self._reason_never_applied(file, root):
            return reason
        return _UNDELIVERED if self._units.is_left_out_of_delivery(normalize_path(file)) else ""

    def _reason_never_applied(self, file: str, root: str = "") -> str:
        if reason := reason_not_applied(file, root):
            return reason
        path = normalize_path(file)
        if not self._units.is_listed(path) and any(each in self._documents for each in _originals_of_copy(path)):
            return _COPY
        return _POLICY_INPUT if path in self._policy_inputs else ""

    def _is_applied(self, file: str) -> bool:
        # a person may apply a file that no kustomization lists
        return not self.is_patch(file) and not self._reason_never_applied(file)

    def is_read_by_kustomize(self, file: str) -> bool:
        """Return whether only one outermost kustomization uses a file."""
        return self._units.is_read_by_kustomize(normalize_path(file))

    def cluster_view_of_file(self, file: str = "", request_namespace: str = "") -> ClusterViewFromFile:
        """Return the view of the cluster for an object of a file. Whole files are one view. Otherwise, the view of the
        file "" has only the objects of --context.

        `request_namespace` is the namespace of the request, for an object with an unknown namespace.
        """
        path = normalize_path(file)
        layers = [self._context, *(self._layers_of_file(path) if path in self._documents else ())]
        if self.is_whole:
            layers.append(self._all_objects())
        return ClusterViewFromFile(
            layers,
            request_namespace="" if self.is_whole else request_namespace,
            is_whole=self.is_whole,
            definitions=self._definitions,
            controllers=assumed_deployments_of_controllers(path, self._stated),
            in_other_files=self._in_other_files,
            without_object=self._without_object,
            tell=self._note_difference,
        )

    def objects(self) -> Iterator[JSON]:
        """Yield all objects: first the objects of --context, then the objects of the tree with their final names."""
        for _, obj in self._of_context:
            yield obj
        for file, objects in self._documents.items():
            if self._is_applied(file):
                yield from map(self._units.name_changes_of_file(file).apply_to_object, objects)

    def files_with_object(self, kind: str, namespace: str, name: str) -> Sequence[str]:
        """Return the files that certainly have an object, also files that are not applied together with its users."""
        named = self._all_objects().objects_of_every_group(kind, name)
        return [*dict.fromkeys(each.file for each in named if each.is_named and each.namespace == namespace)]

    def mark_as_recorded(self, name: str) -> None:
        """Note that an object has a recorded review. Different definitions of this object are not reported."""
        self._recorded.add(name)

    def notes_on_differing_objects(self) -> Iterator[str]:
        """Yield a note for each object that files define differently and that has no recorded review, by name."""
        for name, files in sorted(self._differing.items()):
            if name in self._recorded:
                continue
            note = f"{name} is defined differently in {' and '.join(files)}, so rules that need it are not evaluated"
            yield f"{note}: choose the file with --context"

    def pop_new_differences(self) -> tuple[Mapping[str, Sequence[str]], frozenset[str]]:
        """Return and clear the new differences and recorded objects, for `add_differences` in another process."""
        result = dict(self._differing), frozenset(self._recorded)
        self._differing.clear()
        self._recorded.clear()
        return result

    def add_differences(self, differing: Mapping[str, Sequence[str]], recorded: Iterable[str]) -> None:
        """Add the result of `pop_new_differences` in another process."""
        for name, files in differing.items():
            self._differing.setdefault(name, files)
        self._recorded.update(recorded)

    def _note_difference(self, name: str, files: Sequence[str]) -> None:
        if len(files) > 1:  # otherwise both objects are in one file
            self._differing.setdefault(name, files)

    def _layers_of_file(self, path: str) -> tuple[FileObjects, FileObjects]:
        unit = self._units.unit_of_file(path)
        if unit not in self._of_units:
            self._of_units[unit] = self._objects_of_files(*self._units.files_of_unit(unit).items())
        return self._objects_of_files((path, self._units.name_changes_of_file(path))), self._of_units[unit]

    def _objects_of_files(self, *files: tuple[str, NameChanges]) -> FileObjects:
        whole = ((file, naming) for file, naming in files if self._is_applied(file))
        return FileObjects(
            each for file, naming in whole for each in objects_with_final_names(file, self._documents[file], naming)
        )

    def _all_objects(self) -> FileObjects:
        if self._of_all is None:
            self._of_all = self._objects_of_files(
                *((file, self._units.name_changes_of_file(file)) for file in self._documents)
            )
        return self._of_all


def _objects_by_file(objects: Iterable[tuple[str, JSON]], files: Iterable[str] = ()) -> Mapping[str, list[JSON]]:
    documents: dict[str, list[JSON]] = {normalize_path(file): [] for file in files}
    for file, obj in objects:
        documents.setdefault(normalize_path(file), []).append(obj)
    return documents


def _inputs_of_policy_tests(documents: Mapping[str, Sequence[JSON]]) -> Iterator[str]:
    """Yield the files with the resources of tests for `kyverno test`, and with the objects of suites for `gator`."""
    for file, values in documents.items():
        for value in values:
            kind = group_kind(value) if isinstance(value, dict) else ("", "")
            names: Sequence[JSON] = ()
            if kind == KYVERNO_TEST:
                names = _items(value, "resources")
            elif kind == GATOR_SUITE:
                cases = (case for test in _items(value, "tests") for case in _items(test, "cases"))
                names = [get(case, ("object",)) for case in cases]
            for name in names:
                if isinstance(name, str):
                    yield normalize_path(posixpath.join(posixpath.dirname(file), name))


def _items(value: JSON, key: str) -> Sequence[JSON]:
    items = get(value, (key,))
    return items if isinstance(items, list) else ()


def _releases_in_documents(documents: Mapping[str, Sequence[JSON]]) -> Iterator[ControllerRelease]:
    for file, values in documents.items():
        for value in values:
            yield from find_releases_in_document(file, value)


def _objects_for_other_files(documents: Mapping[str, Sequence[JSON]]) -> Iterator[JSON]:
    for file, values in documents.items():
        if not is_test_or_vendored_file(file):
            yield from (each for each in values if isinstance(each, dict) and group_kind(each) in IN_OTHER_FILES)


def _custom_resource_definitions(documents: Mapping[str, Sequence[JSON]]) -> Iterator[JSON]:
    for values in documents.values():
        for value in values:
            for _, obj in objects_of_list(value):
                if isinstance(obj, dict) and group_kind(obj) == (CRD.group, CRD.kind):
                    yield obj


DEFAULT: Final = "default"
Place: TypeAlias = tuple[str, str]
"""Namespace and name."""


class ClusterViewFromFile:
    """The view of the cluster for the objects of one file.

    Args:
        layers: the objects, in order of precedence.
        request_namespace: the namespace of the request, for an object with an unknown namespace; or "".
        is_whole: the cluster has no other objects.
        definitions: the CustomResourceDefinitions of all files.
        controllers: the Deployments of controllers with releases in the files, by namespace and name.
        in_other_files: the objects of all files that `objects_in_other_files` returns.
        without_object: kinds and names of objects that kustomize generates, or renames together with all references.
        tell: called with the name of an object and the files that define it differently.
    """

    def __init__(
        self,
        layers: Sequence[FileObjects],
        *,
        request_namespace: str = "",
        is_whole: bool = False,
        definitions: Sequence[JSON] = (),
        controllers: Mapping[Place, FileObject] | None = None,
        in_other_files: Sequence[JSON] = (),
        without_object: frozenset[tuple[Kind, str]] = frozenset(),
        tell: Callable[[str, Sequence[str]], None] = lambda _what, _files: None,
    ) -> None:
        self._layers: Final = layers
        self._request_namespace: Final = request_namespace
        self._is_whole: Final = is_whole
        self._definitions: Final = definitions
        self._controllers: Final = controllers or {}
        self._in_other_files: Final = in_other_files
        self._without_object: Final = without_object
        self._tell: Final = tell
        self._listed: Final[dict[tuple[GroupVersionKind, str | None], Sequence[JSON]]] = {}
        self._indexed: Final[
            dict[tuple[GroupVersionKind, str | None, Index], Mapping[str, Sequence[tuple[str, Sequence[FileObject]]]]]
        ] = {}

    def get(self, gvk: GroupVersionKind, namespace: str, name: str) -> JSON | None:
        """Return the object; None if no file has it, and for the namespace of the request.

        Raises:
            UnknownNamespaceOrName: a candidate has an unknown namespace or name, or only kustomize makes the object.
            DifferentDefinitions: files define the object differently.
        """
        if gvk == NAMESPACE and name == self._request_namespace:
            return None
        requested = self._namespace_or_unknown(namespace)
        for layer in self._layers:
            if named := layer.objects_with_name((gvk.group, gvk.kind), name):
                if definitions := [
                    each for each in named if namespace == "" or self._namespace_of_object(each) == requested
                ]:
                    return self._require_unambiguous_object(definitions, describe_lookup(gvk, namespace, name)).value
                lookup = describe_lookup(gvk, "" if requested is UNSAID else namespace, name)
                self._check_namespaces(named, requested, lookup)
        if ((gvk.group, gvk.kind), name) in self._without_object:
            lookup = describe_lookup(gvk, "" if requested is UNSAID else namespace, name)
            raise UnknownNamespaceOrName(f"{lookup}: kustomize generates or renames the object: render the files")
        is_stated = gvk == DEPLOYMENT and (namespace, name) in self._controllers
        return self._controllers[namespace, name].value if is_stated else None

    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Sequence[JSON]:  # noqa: ARG002
        """Return the objects with a known namespace, by namespace and name.

        Raises:
            UnknownNamespaceOrName: kustomizations may rename one of the objects.
            DifferentDefinitions: files define one of the objects differently.
        """
        if (gvk.group, gvk.kind) == (CRD.group, CRD.kind):
            return self._definitions
        objects = self._listed.get((gvk, namespace))
        if objects is None:
            objects = self._listed[gvk, namespace] = self._objects_of_namespace(gvk, namespace)
        return objects

    def list_indexed(self, gvk: GroupVersionKind, namespace: str | None, index: Index, key: str) -> Sequence[JSON]:
        """Return the objects of `list` for an index key.

        Raises:
            UnknownNamespaceOrName: kustomizations may rename an object with this key.
            DifferentDefinitions: files define an object with this key differently.
        """
        by_key = self._indexed.get((gvk, namespace, index))
        if by_key is None:
            by_key = self._indexed[gvk, namespace, index] = self._index_objects(gvk, namespace, index)
        return [
            self._require_unambiguous_object(definitions, lookup).value for lookup, definitions in by_key.get(key, ())
        ]

    def _index_objects(
        self, gvk: GroupVersionKind, namespace: str | None, index: Index
    ) -> Mapping[str, Sequence[tuple[str, Sequence[FileObject]]]]:
        """Return the objects by key, each with its name for messages and all its definitions."""
        keys: dict[str, list[tuple[str, Sequence[FileObject]]]] = {}
        for place, definitions in sorted(self._definitions_by_place(gvk, namespace).items(), key=lambda each: each[0]):
            named = describe_lookup(gvk, *place), definitions
            for key in dict.fromkeys(key for each in definitions for key in index.keys(each.value)):
                keys.setdefault(key, []).append(named)
        return keys

    def _objects_of_namespace(self, gvk: GroupVersionKind, namespace: str | None) -> Sequence[JSON]:
        definitions_by_place = self._definitions_by_place(gvk, namespace)
        objects_by_place = {
            place: self._require_unambiguous_object(each, describe_lookup(gvk, *place))
            for place, each in definitions_by_place.items()
        }
        return tuple(objects_by_place[place].value for place in sorted(objects_by_place))

    def _definitions_by_place(
        self, gvk: GroupVersionKind, namespace: str | None
    ) -> Mapping[Place, Sequence[FileObject]]:
        """Return all definitions of each object in the first layer that has it."""
        by_place: dict[Place, Sequence[FileObject]] = {}
        for layer in self._layers:
            for place, definitions in self._objects_by_place(gvk, layer, namespace).items():
                by_place.setdefault(place, definitions)
        return by_place

    def is_namespaced(self, gvk: GroupVersionKind) -> bool | None:
        """Return whether an object of the kind has a namespace; None if the files have no such object."""
        kind = gvk.group, gvk.kind
        objects = [each for layer in self._layers for named in layer.of_kind(kind).values() for each in named]
        return any(each.namespace for each in objects) if objects else None

    def is_synced(self, gvk: GroupVersionKind) -> bool:  # noqa: ARG002 - the same for every kind
        """Return True: files are read first."""
        return True

    def revision(self, gvk: GroupVersionKind) -> object:  # noqa: ARG002 - the same for every kind
        """Return the view itself, which never changes."""
        return self

    def is_whole(self) -> bool:
        """Return whether the files have all objects of the cluster: the user says so, and all names are known."""
        return self._is_whole

    def file_of_object(self, obj: JSON) -> str:
        stated = {id(each.value): each.file for each in self._controllers.values()}
        return next((layer.files[id(obj)] for layer in self._layers if id(obj) in layer.files), stated.get(id(obj), ""))

    def objects_in_other_files(self, gvk: GroupVersionKind) -> Sequence[JSON]:
        """Return the objects of a kind of IN_OTHER_FILES in all files; () for other kinds."""
        return [each for each in self._in_other_files if group_kind(each) == (gvk.group, gvk.kind)]

    def _namespace_or_unknown(self, namespace: str) -> str | None:
        return UNSAID if self._request_namespace and namespace == self._request_namespace else namespace

    def _namespace_of_object(self, each: FileObject) -> str | None:
        return DEFAULT if self._is_whole and each.namespace is UNSAID else each.namespace

    def _require_unambiguous_object(self, definitions: Sequence[FileObject], lookup: str) -> FileObject:
        """Return the object that all definitions describe.

        Raises:
            UnknownNamespaceOrName: kustomizations may rename the object.
            DifferentDefinitions: the definitions differ.
        """
        first = definitions[0]
        if any(not each.is_named for each in definitions):
            raise UnknownNamespaceOrName(f"{lookup}: kustomizations may rename the object in {first.file}")
        if any(each.value != first.value for each in definitions[1:]):
            files = list(dict.fromkeys(each.file for each in definitions))
            self._tell(lookup, files)
            raise DifferentDefinitions(f"{lookup} is defined differently in {' and '.join(files)}")
        return first

    def _check_namespaces(self, named: Iterable[FileObject], requested: str | None, lookup: str) -> None:
        """Raise UnknownNamespaceOrName if either the namespace of an object or `requested` is unknown, but not both."""
        for each in named:
            namespace = self._namespace_of_object(each)
            if (namespace is UNSAID) != (requested is UNSAID):
                other_namespace = f"is in namespace {namespace}, and the reviewed object has none"
                reason = "has no namespace" if namespace is UNSAID else other_namespace
                reason += ": set metadata.namespace"
                raise UnknownNamespaceOrName(f"{lookup}: the object in {each.file} {reason}")

    def _objects_by_place(
        self, gvk: GroupVersionKind, layer: FileObjects, namespace: str | None
    ) -> Mapping[Place, Sequence[FileObject]]:
        """Return the objects of a layer by place, without objects that may be in another namespace."""
        places: dict[Place, list[FileObject]] = {}
        for each in self._visible_objects(gvk, layer):
            own_namespace = self._namespace_of_object(each)
            shown = self._request_namespace if own_namespace is UNSAID else own_namespace
            if namespace is None or namespace == shown:
                places.setdefault((shown, each.name), []).append(each)
        return places

    def _visible_objects(self, gvk: GroupVersionKind, layer: FileObjects) -> Iterator[FileObject]:
        for named in layer.of_kind((gvk.group, gvk.kind)).values():
            for each in named:
                own_namespace = self._namespace_of_object(each)
                is_namesake = gvk == NAMESPACE and each.name == self._request_namespace
                if (
                    not is_namesake
                    and (own_namespace is not UNSAID or self._request_namespace)
                    and (own_namespace != self._request_namespace or not own_namespace)
                ):
                    yield each
