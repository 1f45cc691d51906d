"""The named files, and the view of the cluster from each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from webhook.apimachinery.attributes import CRD, JSON
from webhook.apimachinery.object_lists import objects_of_list
from webhook.cluster.candidates import NAMELESS, FileObjects, objects_with_final_names
from webhook.cluster.controllers import (
    ControllerRelease,
    assumed_deployments_of_controllers,
    find_releases_in_document,
    is_test_or_vendored_file,
)
from webhook.cluster.file_context import ClusterViewFromFile
from webhook.cluster.naming import NameChanges, group_kind
from webhook.cluster.units import FilesAppliedTogether, Unit, normalize_path


class FileTree:
    """The objects of a tree of files; an object sees those that are applied together with it.

    Args:
        objects: each object, or kustomization, with its file.
        context: objects that every cluster of these files has, with their files.
        is_whole: whether the cluster has no other objects.
        files: all files that have objects, if only the looked-up objects are given.
    """

    def __init__(
        self,
        objects: Iterable[tuple[str, JSON]] = (),
        *,
        files: Iterable[str] = (),
        context: Iterable[tuple[str, JSON]] = (),
        is_whole: bool = False,
    ) -> None:
        self._documents: Final = _objects_by_file(objects, files)
        self._units: Final = FilesAppliedTogether(self._documents)
        of_context = _objects_by_file(context)
        self._context: Final = FileObjects(
            each for item in of_context.items() for each in objects_with_final_names(*item)
        )
        self._of_context: Final = tuple((file, obj) for file, held in of_context.items() for obj in held)
        self._definitions: Final = (
            *_custom_resource_definitions(of_context),
            *_custom_resource_definitions(self._documents),
        )
        self._stated: Final = tuple(_releases_in_documents(of_context)) or tuple(
            _releases_in_documents(self._documents)
        )
        self._configurations: Final = tuple(_kueue_configurations(self._documents))
        self._differing: Final = dict[str, Sequence[str]]()
        self._recorded: Final = set[str]()
        self._of_units: Final[dict[Unit, FileObjects]] = {}
        self._of_all: FileObjects | None = None
        # the absent object may exist under another name
        self.is_whole: Final = is_whole and all(
            self._units.name_changes_of_file(file).is_known for file in self._documents
        )

    def apply_name_changes(self, file: str, obj: JSON) -> JSON:
        """Return an object of a file with the names that its kustomizations give it."""
        path = normalize_path(file)
        return self._units.name_changes_of_file(path).apply_to_object(obj) if path in self._documents else obj

    def knows_namespace(self, file: str) -> bool:
        """Return whether objects of a file stay in the namespace that they name."""
        path = normalize_path(file)
        return path not in self._documents or self._units.name_changes_of_file(path).is_known

    def is_patch(self, file: str) -> bool:
        """Return whether the objects of a file are patches, which a kustomization merges into others."""
        return self._units.is_patch(normalize_path(file))

    def is_read_by_kustomize(self, file: str) -> bool:
        """Return whether a kustomization lists a file, so that kustomize reads it, and not kubectl."""
        return self._units.is_read_by_kustomize(normalize_path(file))

    def cluster_view_of_file(self, file: str = "", unsaid: str = "") -> ClusterViewFromFile:
        """Return the view of the cluster from an object.

        Args:
            file: its file, "" without a file: then only the context counts.
            unsaid: the namespace of the request, used if the namespace of the object is unknown.
        """
        path = normalize_path(file)
        layers = [self._context, *(self._layers_of_file(path) if path in self._documents else ())]
        if self.is_whole:
            layers.append(self._all_objects())
        return ClusterViewFromFile(
            layers,
            unsaid="" if self.is_whole else unsaid,
            is_whole=self.is_whole,
            definitions=self._definitions,
            controllers=assumed_deployments_of_controllers(path, self._stated),
            configurations=self._configurations,
            tell=self._note_difference,
        )

    def objects(self) -> Iterator[JSON]:
        """Yield all objects, those of the context first, by the names that kustomizations give them."""
        for _, obj in self._of_context:
            yield obj
        for file, objects in self._documents.items():
            if not self._units.is_patch(file):
                yield from map(self._units.name_changes_of_file(file).apply_to_object, objects)

    def mark_as_recorded(self, what: str) -> None:
        """Note that an object has a recorded review, so that its different versions are not reported."""
        self._recorded.add(what)

    def notes_on_differing_objects(self) -> Iterator[str]:
        """Yield a note for each object that files define differently, in the order of the names."""
        for what, files in sorted(self._differing.items()):
            if what in self._recorded:
                continue
            told = f"{what} is defined differently in {' and '.join(files)}, so rules that need it are not evaluated"
            yield f"{told}: choose the file with --context"

    def pop_new_differences(self) -> tuple[Mapping[str, Sequence[str]], frozenset[str]]:
        """Return and clear what was found out since the last call, for `tell` in another process."""
        told = dict(self._differing), frozenset(self._recorded)
        self._differing.clear()
        self._recorded.clear()
        return told

    def add_differences(self, differing: Mapping[str, Sequence[str]], recorded: Iterable[str]) -> None:
        """Add what another process found out about these files: objects that differ, and recorded ones."""
        for what, files in differing.items():
            self._differing.setdefault(what, files)
        self._recorded.update(recorded)

    def _note_difference(self, what: str, files: Sequence[str]) -> None:
        if len(files) > 1:  # of two in one file none can be named
            self._differing.setdefault(what, files)

    def _layers_of_file(self, path: str) -> tuple[FileObjects, FileObjects]:
        unit = self._units.unit_of_file(path)
        if unit not in self._of_units:
            self._of_units[unit] = self._objects_of_files(*self._units.files_of_unit(unit).items())
        return self._objects_of_files((path, self._units.name_changes_of_file(path))), self._of_units[unit]

    def _objects_of_files(self, *files: tuple[str, NameChanges]) -> FileObjects:
        whole = ((file, naming) for file, naming in files if not self._units.is_patch(file))
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


def _releases_in_documents(documents: Mapping[str, Sequence[JSON]]) -> Iterator[ControllerRelease]:
    """Yield the releases of controllers that some files state."""
    for file, values in documents.items():
        for value in values:
            yield from find_releases_in_document(file, value)


def _kueue_configurations(documents: Mapping[str, Sequence[JSON]]) -> Iterator[JSON]:
    """Yield the Configurations of Kueue in some files, but not those of tests."""
    for file, values in documents.items():
        if not is_test_or_vendored_file(file):
            yield from (each for each in values if isinstance(each, dict) and group_kind(each) in NAMELESS)


def _custom_resource_definitions(documents: Mapping[str, Sequence[JSON]]) -> Iterator[JSON]:
    """Yield the CustomResourceDefinitions of some files."""
    for values in documents.values():
        for value in values:
            for _, obj in objects_of_list(value):
                if isinstance(obj, dict) and group_kind(obj) == (CRD.group, CRD.kind):
                    yield obj
