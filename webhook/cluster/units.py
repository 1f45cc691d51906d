"""Groups files that are applied together, with the names of their objects.

Files are applied together if one kustomization includes them, or if they are in one chart. Other files are only known
to be in one folder. Copies of other projects and test data are not applied together with other files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.cluster.kustomizations import Kustomizations, read_flux_target, read_kustomization
from webhook.cluster.naming import AS_WRITTEN, UNKNOWN, NameChanges
from webhook.yamltext import templates

NEVER_APPLIED: Final = frozenset(("vendor", "testdata", "node_modules", "third_party"))
"""Folders with files that are context only for files inside them."""
Unit: TypeAlias = tuple[str, str]
"""The kind of a group of files, `kustomization`, `chart`, `folder` or `file`, and its path."""


class FilesAppliedTogether:
    """The files of a tree and their units, each file by its normalized path (`normalize_path`)."""

    def __init__(self, documents: Mapping[str, list[JSON]]) -> None:
        """Group the files of a tree into units. `documents` are the YAML documents of each file."""
        firsts = ((file, value) for file, values in documents.items() for value in values[:1])
        self._kustomizations: Final = Kustomizations(
            each for file, value in firsts if (each := read_kustomization(file, value))
        )
        self._flux_namespaces: Final[dict[str, set[str]]] = {}
        for values in documents.values():
            for target in filter(None, map(read_flux_target, values)):
                self._flux_namespaces.setdefault(target[0], set()).add(target[1])
        self._taken: Final[dict[str, Mapping[str, NameChanges]]] = {}
        self._template_labels: Final[dict[str, Mapping[str, str]]] = {}
        self._units: Final = {file: self._find_unit(file) for file in documents}
        self._listed: Final[dict[Unit, list[str]]] = {}
        for file, unit in self._units.items():
            self._listed.setdefault(unit, []).append(file)
            if unit[0] == "kustomization":  # a file outside of all kustomizations may still belong to its neighbours
                self._listed.setdefault(("folder", posixpath.dirname(file)), []).append(file)

    def unit_of_file(self, file: str) -> Unit:
        """Return the unit that a file belongs to."""
        return self._units[file]

    def name_changes_of_file(self, file: str) -> NameChanges:
        """Return how the names of a file's objects change when the file is applied, as by a namePrefix."""
        kind, path = self._units[file]
        if kind == "kustomization":
            return self._files_used_by_kustomization(path)[file].combine_with_outer(self._naming_by_flux(path, path))
        naming = UNKNOWN if self._kustomizations.is_naming_ambiguous(file) else AS_WRITTEN
        return naming if kind == "chart" else naming.combine_with_outer(self._naming_by_flux(posixpath.dirname(file)))

    def template_labels_of_file(self, file: str) -> Mapping[str, str]:
        """Return the labels that kustomizations give to the pod templates of a file."""
        if file not in self._template_labels:
            self._template_labels[file] = self._kustomizations.template_labels_of_file(file)
        return self._template_labels[file]

    def _naming_by_flux(self, folder: str, root: str = "") -> NameChanges:
        """Return the namespace that Flux puts the objects of a folder into; unknown where several do.

        Flux applies everything below its path. If the path has a kustomization, Flux applies only the resources of the
        kustomization.

        Args:
            folder: the folder of the objects.
            root: the folder of their kustomization, "" if they have none.
        """
        namespaces: set[str] = set()
        at = folder
        while self._flux_namespaces and at not in ("", "/", "."):
            if at == root or not self._kustomizations.has_kustomization(at):
                steps = at.split("/")
                for length in range(1, len(steps) + 1):
                    namespaces |= self._flux_namespaces.get("/".join(steps[-length:]), set())
            at = posixpath.dirname(at)
        return UNKNOWN if len(namespaces) > 1 else NameChanges(namespace=next(iter(namespaces), ""))

    def is_patch(self, file: str) -> bool:
        """Return whether the objects of a file are patches, which a kustomization merges."""
        return self._kustomizations.is_patch(file)

    def is_read_by_kustomize(self, file: str) -> bool:
        """Return whether a kustomization uses a file."""
        return self._units.get(file, ("", ""))[0] == "kustomization"

    def files_of_unit(self, unit: Unit) -> Mapping[str, NameChanges]:
        """Return the files that are applied together, with the names of their objects."""
        kind, path = unit
        if kind == "kustomization":
            return {
                file: naming.combine_with_outer(self._naming_by_flux(path, path))
                for file, naming in self._files_used_by_kustomization(path).items()
                if file in self._units
            }
        return {file: self.name_changes_of_file(file) for file in self._listed[unit]}

    def _files_used_by_kustomization(self, root: str) -> Mapping[str, NameChanges]:
        if root not in self._taken:
            self._taken[root] = self._kustomizations.files_of_kustomization(root)
        return self._taken[root]

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


def normalize_path(file: str) -> str:
    """Return a path without `.` and `..`, by which kustomizations find it."""
    return posixpath.normpath(file)
