"""Groups the files of a tree that are applied together, and says how kustomizations and Flux change their objects.

The files of one kustomization, and of one chart, are applied together. Other files form a group with the files of their
folder. Copies of other projects and test data are not applied together with other files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import JSON, MERGING_POLICY, UnmergedPatch
from webhook.apimachinery.paths import get
from webhook.cluster.kustomizations import (
    FILES,
    DeliveredFolder,
    ImageChange,
    PodLabels,
    TargetedPatch,
    kustomizations_of_documents,
    patches_of_documents,
    read_delivered_folders,
    read_delivery_patches,
    read_flux_target,
    read_merged_paths,
    read_policy_manifests,
)
from webhook.cluster.naming import AS_WRITTEN, UNKNOWN, Kind, NameChanges, group_kind, objects_with_final_names
from webhook.yamltext import templates

RENAMED_REFERENCES: Final = frozenset(
    (
        *(("", kind) for kind in ("ConfigMap", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount")),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
    )
)
"""If kustomize renames an object of one of these kinds, kustomize also changes the references to the object (api v0.20
internal/konfig/builtinpluginconsts/namereference.go).
"""
NEVER_APPLIED: Final = frozenset(("vendor", "testdata", "node_modules", "third_party"))
"""Files below these folders are context only for files below the same folder."""
_MERGED_FIELDS: Final = frozenset(("selector",))
"""The fields that a policy may leave to the object of the cluster. No policy can create a workload without a selector,
so a policy without a selector expects the workload.
"""
_CHARACTERS: Final = frozenset("*?[")
"""The characters with a meaning in a pattern of `fnmatch`."""
_MOST_PATTERNS: Final = 100
"""Each folder is compared with each pattern. In files with more patterns, no file is left out."""
Unit: TypeAlias = tuple[str, str]
"""A group of files: its kind (`kustomization`, `chart`, `folder` or `file`) and its path."""


class FilesAppliedTogether:
    """The files of a tree by normalized path (`normalize_path`), and their units."""

    def __init__(self, documents: Mapping[str, list[JSON]]) -> None:
        """Group the files of a tree into units; `documents` are the YAML documents of each file."""
        self._kustomizations: Final = kustomizations_of_documents(documents)
        self._documents: Final = documents
        self._flux_namespaces: Final[dict[str, set[str]]] = {}
        for values in documents.values():
            for target in filter(None, map(read_flux_target, values)):
                self._flux_namespaces.setdefault(target[0], set()).add(target[1])
        self._delivery_patches: Final[dict[str, list[TargetedPatch]]] = {}
        for file, values in documents.items():
            for read in filter(None, (read_delivery_patches(file, value) for value in values)):
                if read[1]:
                    self._delivery_patches.setdefault(read[0], []).extend(read[1])
        self._delivered: Final = frozenset(
            each for values in documents.values() for value in values for each in read_delivered_folders(value)
        )
        self._delivered_patterns: Final = [each for each in self._delivered if not _CHARACTERS.isdisjoint(each.pattern)]
        self._applied: Final = self._applied_kustomizations()
        self._left_out: Final[dict[str, bool]] = {}
        self._of_policies: Final = frozenset(
            path
            for file, values in documents.items()
            for value in values
            for path in read_policy_manifests(file, value)
        )
        self._merged: Final = {
            path: UnmergedPatch(MERGING_POLICY, file, _MERGED_FIELDS)
            for file, values in documents.items()
            for value in values
            for path in read_merged_paths(file, value)
        }
        self._files_by_kustomization: Final[dict[str, Mapping[str, NameChanges]]] = {}
        self._pod_labels: Final[dict[str, PodLabels]] = {}
        self._name_changes: Final[dict[str, NameChanges]] = {}
        self._additions: Final[dict[str, tuple[TargetedPatch, ...]]] = {}  # by the folder of the kustomization
        self._units: Final = {file: self._find_unit(file) for file in documents}
        self._listed: Final[dict[Unit, list[str]]] = {}
        for file, unit in self._units.items():
            self._listed.setdefault(unit, []).append(file)
            if unit[0] == "kustomization":  # files outside of kustomizations share the folder with this file
                self._listed.setdefault(("folder", posixpath.dirname(file)), []).append(file)
        self._absent_resources: Final = frozenset(self._kustomizations.absent_resources(documents))
        self._renamed: Final = frozenset(self._names_before_renaming(documents))

    @property
    def are_read(self) -> bool:
        """Return whether no kustomization uses objects from another repository, a chart, or a plugin of kustomize, and
        whether all listed files exist.
        """
        return self._kustomizations.are_read and not self._absent_resources

    def names_without_final_object(self) -> frozenset[tuple[Kind, str]]:
        """Return names that references in files may have, although the cluster has the object under another name.

        These are the names of generated objects, and the original names of objects of a kind in RENAMED_REFERENCES that
        get a prefix or suffix.
        """
        return self._kustomizations.generated | self._renamed

    def unit_of_file(self, file: str) -> Unit:
        return self._units[file]

    def name_changes_of_file(self, file: str) -> NameChanges:
        """Return how kustomizations and Flux change the names of a file's objects."""
        changes = self._name_changes.get(file)
        if changes is None:
            changes = self._name_changes[file] = self._find_name_changes(file)
        return changes

    def _find_name_changes(self, file: str) -> NameChanges:
        kind, path = self._units[file]
        if kind == "kustomization":
            return self._files_used_by_kustomization(path)[file].combine_with_outer(self._naming_by_flux(path, path))
        naming = UNKNOWN if self._kustomizations.is_naming_ambiguous(file) else AS_WRITTEN
        return naming if kind == "chart" else naming.combine_with_outer(self._naming_by_flux(posixpath.dirname(file)))

    def pod_labels_of_file(self, file: str) -> PodLabels:
        """Return the labels that kustomizations give to the pod templates of a file."""
        if file not in self._pod_labels:
            self._pod_labels[file] = self._kustomizations.pod_labels_of_file(file)
        return self._pod_labels[file]

    def is_listed(self, file: str) -> bool:
        """Return whether a kustomization lists a file among its resources."""
        return self._kustomizations.is_listed(file)

    def image_changes_of_file(self, file: str) -> tuple[ImageChange, ...]:
        """Return the changes that kustomizations make to the images of a file."""
        return self._kustomizations.image_changes_of_file(file)

    def unmerged_patches(self, file: str, obj: JSON) -> tuple[UnmergedPatch, ...]:
        """Return what kustomizations, Flux, Argo CD and policies may add to an object of a file."""
        kind, name = get(obj, ("kind",)), get(obj, ("metadata", "name"))
        folders = self._kustomizations.folders_that_add_to_file(file)
        additions = (each for folder in folders for each in self._additions_of_folder(folder))
        of_delivery = self._patches_of_delivery(file) if self._delivery_patches else ()
        patches = tuple(each.patch for each in (*additions, *of_delivery) if each.may_change(kind, name))
        return (*patches, *self._policies_that_merge(file)) if self._merged else patches

    def _patches_of_delivery(self, file: str) -> Iterator[TargetedPatch]:
        """Yield the patches of the objects of Flux and Argo CD that may apply a file."""
        unit, path = self._units[file]
        folder, root = (path, path) if unit == "kustomization" else (posixpath.dirname(file), "")
        for at in (".", *self._folders_of_delivery(folder, root)):
            yield from self._delivery_patches.get(at, ())

    def _policies_that_merge(self, path: str) -> Iterator[UnmergedPatch]:
        for each in (path, *map(str, PurePosixPath(path).parents)):
            if each in self._merged:
                yield self._merged[each]

    def _additions_of_folder(self, folder: str) -> Sequence[TargetedPatch]:
        """Return the additions of a kustomization with the fields of each patch that is in the tree. The patches are
        read once for all files of the kustomization.
        """
        if folder not in self._additions:
            additions = self._kustomizations.additions_of_folder(folder)
            self._additions[folder] = tuple(part for each in additions for part in self._read_addition(each))
        return self._additions[folder]

    def _read_addition(self, addition: TargetedPatch) -> Iterator[TargetedPatch]:
        """Yield the patches in the file of an addition, or the addition itself."""
        documents = self._documents.get(addition.patch.file) if addition.patch.fields is None else None
        if not documents or addition.patch.what != "patch":
            yield addition
            return
        target = {"kind": addition.kind, "name": addition.name} if addition.kind or addition.name else {}
        yield from patches_of_documents("patch", addition.patch.file, documents, target)

    def _naming_by_flux(self, folder: str, root: str = "") -> NameChanges:
        """Return the change of the namespace by the objects of Flux that apply a folder.
        Flux applies everything below its path. If the path has a kustomization, Flux applies only its resources. The
        namespace is unknown if several objects of Flux set different namespaces.
        """
        namespaces: set[str] = set()
        for at in self._folders_of_delivery(folder, root) if self._flux_namespaces else ():
            namespaces |= self._flux_namespaces.get(at, set())
        return UNKNOWN if len(namespaces) > 1 else NameChanges(namespace=next(iter(namespaces), ""))

    def _folders_of_delivery(self, folder: str, root: str) -> Iterator[str]:
        """Yield the paths by which Flux or Argo CD may find a folder or a folder above. The root of the repository is
        not known, so a path may begin at any part of the folder's path.
        """
        at = folder
        while at not in ("", "/", "."):
            if at == root or not self._kustomizations.has_kustomization(at):
                steps = at.split("/")
                for length in range(1, len(steps) + 1):
                    yield "/".join(steps[-length:])
            at = posixpath.dirname(at)

    def _names_before_renaming(self, documents: Mapping[str, list[JSON]]) -> Iterator[tuple[Kind, str]]:
        for file, values in documents.items():
            naming = self.name_changes_of_file(file)
            if naming.prefix or naming.suffix:
                for each in objects_with_final_names(file, values):
                    if (kind := group_kind(each.value)) in RENAMED_REFERENCES:
                        yield kind, each.name

    def is_patch(self, file: str) -> bool:
        """Return whether a kustomization merges the objects of a file into objects of other files."""
        return self._kustomizations.is_patch(file)

    def is_left_out_of_delivery(self, file: str) -> bool:
        """Return whether Flux or Argo CD applies a folder above a file, but not the file, because the folder has a
        kustomization, and no kustomization names the file. An overlay may be applied in place of the folder.
        """
        folder, name = posixpath.split(file)
        if (
            name in FILES
            or not self._applied
            or self._units.get(file, ("", ""))[0] != "folder"
            or self._kustomizations.is_named(file)
        ):
            return False
        if not self._of_policies.isdisjoint((file, *_folder_and_above(folder))):
            return False
        if folder not in self._left_out:
            self._left_out[folder] = self._is_folder_left_out(folder)
        return self._left_out[folder]

    def _applied_kustomizations(self) -> frozenset[str]:
        """Return the folders with a kustomization that Flux or Argo CD applies, also through other kustomizations."""
        if not self._delivered or len(self._delivered_patterns) > _MOST_PATTERNS:
            return frozenset()
        return self._kustomizations.with_used_folders(
            folder
            for folder in self._kustomizations.folders
            if any(self._is_delivered(each, by_kustomize=True) for each in _folder_and_above(folder))
        )

    def _is_folder_left_out(self, folder: str) -> bool:
        above = _folder_and_above(folder)
        own = next((depth for depth, each in enumerate(above) if self._kustomizations.has_kustomization(each)), None)
        if own is None or above[own] not in self._applied:
            return False
        is_applied_itself = any(self._is_delivered(each, by_kustomize=True) for each in above[:own])
        return not is_applied_itself and not any(self._is_delivered(each, by_kustomize=False) for each in above)

    def _is_delivered(self, folder: str, *, by_kustomize: bool) -> bool:
        """Return whether an object of Flux or Argo CD applies a folder. The root of the repository is not known, so the
        path may begin at any part of the folder's path.
        """
        steps = folder.strip("/").split("/")
        ends = ["/".join(steps[-length:]) or "." for length in range(1, len(steps) + 1)]
        if any(DeliveredFolder(each, by_kustomize) in self._delivered for each in ends):
            return True
        patterns = [each.pattern for each in self._delivered_patterns if each.by_kustomize == by_kustomize]
        return any(fnmatchcase(end, pattern) for pattern in patterns for end in ends)

    def is_read_by_kustomize(self, file: str) -> bool:
        """Return whether only one outermost kustomization uses a file."""
        return self._units.get(file, ("", ""))[0] == "kustomization"

    def files_of_unit(self, unit: Unit) -> Mapping[str, NameChanges]:
        """Return the files of a unit, with the name changes of their objects."""
        kind, path = unit
        if kind == "kustomization":
            return {
                file: naming.combine_with_outer(self._naming_by_flux(path, path))
                for file, naming in self._files_used_by_kustomization(path).items()
                if file in self._units
            }
        return {file: self.name_changes_of_file(file) for file in self._listed[unit]}

    def _files_used_by_kustomization(self, root: str) -> Mapping[str, NameChanges]:
        if root not in self._files_by_kustomization:
            self._files_by_kustomization[root] = self._kustomizations.files_of_kustomization(root)
        return self._files_by_kustomization[root]

    def _find_unit(self, file: str) -> Unit:
        root, chart, folder = (
            self._kustomizations.outermost_kustomization_of_file(file),
            templates.find_chart_of_template(Path(file)),
            posixpath.dirname(file),
        )
        if root is not None:
            return "kustomization", root
        if chart:
            return "chart", chart
        is_alone = file.startswith("<") or not NEVER_APPLIED.isdisjoint(folder.split("/"))
        return ("file", file) if is_alone else ("folder", folder)


def _folder_and_above(folder: str) -> Sequence[str]:
    """Return a folder and the folders above it, up to "" or "/"."""
    folders = [folder]
    while folders[-1] not in ("", "/"):
        folders.append(posixpath.dirname(folders[-1]))
    return folders


def normalize_path(file: str) -> str:
    """Return a path without `.` and `..`, except `..` at its beginning."""
    return posixpath.normpath(file)
