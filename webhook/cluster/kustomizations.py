"""Finds the files that kustomizations of a tree use, and the names that these give to objects.

Reads `resources`, `bases`, `components`, `namespace`, `namePrefix`, `nameSuffix`, and which files are patches.
Where a kustomization has parts that may name objects in other ways, or where several take a file, the names of its
objects are unknown.
Source: sigs.k8s.io/kustomize api v0.20 types.Kustomization.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON
from webhook.cluster.naming import AS_WRITTEN, UNKNOWN, NameChanges, group_kind

FILES: Final = frozenset(("kustomization.yaml", "kustomization.yml", "Kustomization"))
FLUX: Final = ("kustomize.toolkit.fluxcd.io", "Kustomization")
"""The kind by which Flux applies a folder of a repository."""
_TAKEN: Final = ("resources", "bases", "components", "crds")
_MAY_NAME: Final = ("transformers", "replacements", "helmCharts", "helmChartInflationGenerator", "vars")
"""Fields that may change names."""
_PATCHES: Final = ("patches", "patchesJson6902", "patchesStrategicMerge")
_NAMING_PATCH: Final = ("/metadata/name", "allowNameChange")
"""The texts of a patch that changes a name or a namespace; a strategic merge finds its object by them."""


class Kustomization(Struct, frozen=True, kw_only=True):
    """A kustomization: the files and folders that it uses, and the names that it gives to their objects.

    components: the folders with settings that also apply to everything that the kustomization includes. patches:
    the files that it merges into the objects of others. affixes: its namePrefix and nameSuffix, also if the names are
    not known.
    """

    folder: str
    taken: tuple[str, ...]
    naming: NameChanges
    components: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    affixes: tuple[str, ...] = ()


def read_kustomization(file: str, value: JSON) -> Kustomization | None:
    """Return the kustomization of a document; None if the document has none."""
    if posixpath.basename(file) not in FILES or not isinstance(value, dict):
        return None
    folder = posixpath.dirname(file)
    taken = tuple(dict.fromkeys(path for field in _TAKEN for path in _paths_of_entries(folder, value.get(field))))
    components = tuple(_paths_of_entries(folder, value.get("components")))
    patches = tuple(_paths_of_entries(folder, [_file_of_patch(each) for each in _patch_entries(value)]))
    return Kustomization(
        folder=folder,
        taken=taken,
        naming=_naming_of_kustomization(value),
        components=components,
        patches=patches,
        affixes=tuple(filter(None, (_text_or_empty(value.get(field)) for field in ("namePrefix", "nameSuffix")))),
    )


def read_flux_target(value: JSON) -> tuple[str, str] | None:
    """Return the folder that an object of Flux applies, unchanged, and the namespace of all its objects.

    None for other objects, for one that sets no namespace, and for one of a whole repository. Source:
    fluxcd/kustomize-controller api/v1 KustomizationSpec (path, targetNamespace).
    """
    if not isinstance(value, dict) or group_kind(value) != FLUX:
        return None
    spec = value.get("spec")
    path, namespace = (
        (_text_or_empty(spec.get("path")), _text_or_empty(spec.get("targetNamespace")))
        if isinstance(spec, dict)
        else ("", "")
    )
    folder = posixpath.normpath(path.lstrip("/") or ".")
    return (folder, namespace) if namespace and folder != "." else None


def _paths_of_entries(folder: str, entries: JSON) -> Iterator[str]:
    for each in _list_or_empty(entries):
        if isinstance(each, str):
            yield posixpath.normpath(posixpath.join(folder, each))


def _naming_of_kustomization(value: Mapping[str, JSON]) -> NameChanges:
    if any(value.get(field) for field in _MAY_NAME) or any(map(_may_rename, _patch_entries(value))):
        return UNKNOWN
    namespace, prefix, suffix = (
        _text_or_empty(value.get(field)) for field in ("namespace", "namePrefix", "nameSuffix")
    )
    return NameChanges(namespace=namespace, prefix=prefix, suffix=suffix)


def _patch_entries(value: Mapping[str, JSON]) -> Iterator[JSON]:
    for field in _PATCHES:
        yield from _list_or_empty(value.get(field))


def _file_of_patch(patch: JSON) -> JSON:
    """Return the file of a patch: `path`, or the entry itself, which may also be the text of a patch."""
    return patch.get("path") if isinstance(patch, dict) else patch


def _may_rename(patch: JSON) -> bool:
    return any(each in str(patch) for each in _NAMING_PATCH)


def _list_or_empty(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, list) else ()


def _text_or_empty(value: JSON) -> str:
    return value if isinstance(value, str) else ""


class Kustomizations:
    """The kustomization files of a tree, by their folders."""

    def __init__(self, every: Iterable[Kustomization]) -> None:
        listed = {each.folder: each for each in every}
        self._by_folder: Final = {
            folder: _consider_naming_of_components(each, listed) for folder, each in listed.items()
        }
        self._patches: Final = frozenset(path for each in listed.values() for path in each.patches)
        self._takers: Final[dict[str, list[str]]] = {}
        for each in self._by_folder.values():
            for path in each.taken:
                self._takers.setdefault(path, []).append(each.folder)

    def outermost_kustomization_of_file(self, file: str) -> str | None:
        """Return the folder of the outermost kustomization that certainly uses a file; None if there is no such
        kustomization, or if there are several.
        """
        above, seen = self._only_kustomization_using(file), dict[str, None]()
        while above is not None and above not in seen:
            seen[above] = None
            above = self._only_kustomization_using(above)
        return [*seen][-1] if seen else None

    def files_of_kustomization(self, root: str) -> Mapping[str, NameChanges]:
        """Return the files that a kustomization uses, itself or through others, and the names of their objects."""
        files: dict[str, NameChanges] = {}
        waiting, seen = [(root, self._naming_above(root), frozenset((root,)))], set[tuple[str, NameChanges]]()
        while waiting:
            folder, outer, above = waiting.pop()
            taker = self._by_folder[folder]
            naming = taker.naming.combine_with_outer(outer)
            if (folder, naming) in seen:  # by another way, with the same names
                continue
            seen.add((folder, naming))
            for path in taker.taken:
                if path in self._by_folder:
                    waiting.extend([(path, naming, above | {path})] if path not in above else ())
                elif files.setdefault(path, naming) != naming:
                    files[path] = UNKNOWN
        return files

    def is_naming_ambiguous(self, file: str) -> bool:
        """Return whether several kustomizations use a file, so that its objects may have different names."""
        takers = self._takers.get(file, ())
        return len(takers) > 1 and any(
            self._by_folder[each].naming != AS_WRITTEN for each in self._kustomizations_above(file)
        )

    def has_kustomization(self, folder: str) -> bool:
        """Return whether a folder has its own kustomization."""
        return folder in self._by_folder

    def is_patch(self, file: str) -> bool:
        """Return whether a file is merged into objects of other files, and not used as separate objects."""
        return file in self._patches and file not in self._takers

    def _only_kustomization_using(self, path: str) -> str | None:
        takers = self._takers.get(path, ())
        return takers[0] if len(takers) == 1 else None

    def _naming_above(self, root: str) -> NameChanges:
        """Return the naming by kustomizations above the outermost certain kustomization: unknown if one of them sets
        names.
        """
        return (
            UNKNOWN
            if any(self._by_folder[each].naming != AS_WRITTEN for each in self._kustomizations_above(root))
            else AS_WRITTEN
        )

    def _kustomizations_above(self, path: str) -> Iterator[str]:
        """Yield all kustomizations that use something as a resource, directly or through another one."""
        waiting, seen = [path], {path}
        while waiting:
            for taker in self._takers.get(waiting.pop(), ()):
                if taker not in seen:
                    seen.add(taker)
                    waiting.append(taker)
                    yield taker


def _consider_naming_of_components(of: Kustomization, others: Mapping[str, Kustomization]) -> Kustomization:
    """Return the kustomization; with unknown names if one of its components sets names or cannot be read."""
    if all(each in others and others[each].naming == AS_WRITTEN for each in of.components):
        return of
    return replace(of, naming=UNKNOWN)
