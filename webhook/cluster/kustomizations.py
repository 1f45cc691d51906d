"""Finds the files that kustomizations use, and the names and labels that they give.

Reads `resources`, `bases`, `components`, `namespace`, `namePrefix`, `nameSuffix`, labels of pod templates, `images`,
the names of generated ConfigMaps and Secrets, and which files are patches. The names of objects are unknown if other
fields may change them, or if several kustomizations use a file. Source: sigs.k8s.io/kustomize api v0.20
types.Kustomization.

A PolicyGenerator of Open Cluster Management lists folders with objects that policies merge into objects of a cluster.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON, UnmergedPatch
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import MAX_DEPTH, get
from webhook.cluster.naming import AS_WRITTEN, UNKNOWN, Kind, NameChanges, group_kind
from webhook.yamltext import yamlfile

FILES: Final = frozenset(("kustomization.yaml", "kustomization.yml", "Kustomization"))
FLUX: Final = ("kustomize.toolkit.fluxcd.io", "Kustomization")
"""The kind of objects with which Flux applies a folder of a repository."""
POLICY_GENERATOR: Final = ("policy.open-cluster-management.io", "PolicyGenerator")
ARGO: Final = ("argoproj.io", "Application")
"""The kind of objects with which Argo CD applies a folder of a repository."""
ARGO_SET: Final = ("argoproj.io", "ApplicationSet")
"""The kind of objects from which Argo CD makes Applications."""
_MERGING: Final = ("", "musthave")
"""The values of complianceType with which a policy merges an object into an object of the cluster; "" is the default
(open-cluster-management-io/policy-generator-plugin v1.17 docs/policygenerator-reference.yaml).
"""
_FIELDS_WITH_PATHS: Final = ("resources", "bases", "components", "crds")
_MAY_NAME: Final = ("transformers", "replacements", "helmCharts", "helmChartInflationGenerator", "vars")
"""Fields that may change names."""
_MAKERS: Final = ("generators", "helmCharts", "helmChartInflationGenerator")
"""Fields with objects that only kustomize can make."""
_GENERATORS: Final = (("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret"))
_REMOTE: Final = ("://", "github.com/", "?ref=", "git@")
"""Texts in the address of a base in another repository."""
_SEPARATORS: Final = re.compile("[-_.]")
_NUMBER: Final = re.compile("[0-9]+")
_PLAIN_NAME: Final = re.compile(r"[a-z0-9-]+")
"""Matches a name that is not a regular expression."""
_PATCHES: Final = ("patches", "patchesJson6902", "patchesStrategicMerge")
_LABELLED: Final = frozenset(
    (("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("batch", "Job"))
)
"""Kinds with pod templates that kustomize labels (api v0.20 internal/konfig/builtinpluginconsts/commonlabels.go)."""
_CONTAINERS: Final = ("containers", "initContainers")
_ANY: Final = "*"
"""The pattern for a path that is computed."""
_COMPUTED: Final = ("{{", "$")
"""The beginning of a part of a path that Argo CD or Flux computes."""
_MOST_JOINED: Final = 2
"""How deep a matrix or a merge may contain another one. Argo CD allows one level."""
_NAMING_PATCH: Final = ("/metadata/name", "allowNameChange")
"""Texts in a patch that changes a name. A strategic merge patch cannot change a name: the name selects the object."""


class PodLabels(Struct, frozen=True):
    """The labels that kustomizations give to pod templates.

    Attributes:
        selected: labels for selectors too, as `commonLabels` and `includeSelectors` set them.
        unselected: labels for pod templates alone, as `includeTemplates` sets them.
    """

    selected: Mapping[str, str] = {}
    unselected: Mapping[str, str] = {}

    def joined_with(self, other: PodLabels) -> PodLabels:
        """Return the labels of two kustomizations. The other labels replace labels with the same key."""
        return PodLabels({**self.selected, **other.selected}, {**self.unselected, **other.unselected})


_NO_LABELS: Final = PodLabels()


class ImageChange(Struct, frozen=True):
    """An entry of `images`: the name of an image, and its new parts; "" for a part that stays."""

    name: str
    new_name: str = ""
    tag: str = ""
    digest: str = ""

    def applied_to(self, image: str) -> str:
        """Return the new name of an image, or the same name if the entry is for another image."""
        parts = parse_image_name(image)
        name = f"{parts.registry}/{parts.repository}" if parts.registry else parts.repository
        if name != self.name:
            return image
        is_kept = not (self.tag or self.digest)
        tag, digest = (parts.tag, parts.digest) if is_kept else (self.tag, self.digest)
        return f"{self.new_name or name}{f':{tag}' if tag else ''}{f'@{digest}' if digest else ''}"


class DeliveredFolder(Struct, frozen=True):
    """A folder that Flux or Argo CD applies.

    Args:
        pattern: the path of the folder, as a pattern of `fnmatch`. `*` also stands for a path that is computed.
        by_kustomize: whether only the resources of a kustomization in this folder are applied.
    """

    pattern: str
    by_kustomize: bool = True


class TargetedPatch(Struct, frozen=True):
    """A part of a kustomization that may add fields to objects of its files.

    Args:
        patch: the part.
        kind, name: the kind of the objects, and their name; "" for any. The name may be a regular expression.
    """

    patch: UnmergedPatch
    kind: str = ""
    name: str = ""

    def may_change(self, kind: JSON, name: JSON) -> bool:
        """Return whether an object may get the fields. The name in the file may lack a prefix or suffix."""
        if self.kind and self.kind != kind:
            return False
        return not isinstance(name, str) or not _PLAIN_NAME.fullmatch(self.name) or name in self.name


class Kustomization(Struct, frozen=True, kw_only=True):
    """The files and folders that a kustomization uses, and the names that it gives to their objects.

    Attributes:
        used_paths: the files and folders that the kustomization uses.
        named_paths: the files and folders that any text of the kustomization names.
        components: folders with settings for everything that the kustomization includes.
        patches: files that are merged into objects of other files.
        affixes: namePrefix and nameSuffix, also if the final names are unknown.
        labels: labels for pod templates.
        images: changes of the images of containers.
        generated: group and kind, and name, of each object of a configMapGenerator or secretGenerator.
        is_component: whether the kustomization is a Component. The kustomization that includes a Component may set the
            namespace of its objects.
        is_read: whether no object comes from another repository, a chart, or a plugin of kustomize.
        additions: the parts that may add fields to objects. A file with a patch is not read yet.
    """

    folder: str
    used_paths: tuple[str, ...]
    naming: NameChanges
    named_paths: frozenset[str] = frozenset()
    components: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    affixes: tuple[str, ...] = ()
    labels: PodLabels = _NO_LABELS
    images: tuple[ImageChange, ...] = ()
    generated: tuple[tuple[Kind, str], ...] = ()
    is_component: bool = False
    is_read: bool = True
    additions: tuple[TargetedPatch, ...] = ()


def read_kustomization(file: str, value: JSON) -> Kustomization | None:
    """Return the kustomization of a document; None if the file does not have the name of a kustomization, or if the
    document is a Kustomization of Flux.
    """
    if posixpath.basename(file) not in FILES or not isinstance(value, dict) or group_kind(value) == FLUX:
        return None
    folder = posixpath.dirname(file)
    used_paths = tuple(
        dict.fromkeys(path for field in _FIELDS_WITH_PATHS for path in _paths_of_entries(folder, value.get(field)))
    )
    components = tuple(_paths_of_entries(folder, value.get("components")))
    patches = tuple(_paths_of_entries(folder, [_file_of_patch(each) for each in _patch_entries(value)]))
    return Kustomization(
        folder=folder,
        used_paths=used_paths,
        named_paths=frozenset(_named_paths(folder, value)),
        naming=_naming_of_kustomization(value),
        components=components,
        patches=patches,
        affixes=tuple(filter(None, (_text_or_empty(value.get(field)) for field in ("namePrefix", "nameSuffix")))),
        labels=_labels_of_pods(value),
        images=tuple(_image_changes(value)),
        generated=tuple(_generated_objects(value)),
        is_component=value.get("kind") == "Component",
        is_read=not any(value.get(field) for field in _MAKERS) and not any(map(_is_remote, _entries(value))),
        additions=tuple(_additions(file, folder, value)),
    )


def _additions(file: str, folder: str, value: Mapping[str, JSON]) -> Iterator[TargetedPatch]:
    """Yield the parts of a kustomization that may add fields to objects."""
    for each in _list_or_empty(value.get("transformers")):
        yield TargetedPatch(UnmergedPatch("transformer", str(each) if isinstance(each, str) else file))
    for entry in _patch_entries(value):
        target = _map_or_empty(_map_or_empty(entry).get("target"))
        text = _map_or_empty(entry).get("patch") if isinstance(entry, dict) else entry
        is_text = isinstance(text, str) and (isinstance(entry, dict) or "\n" in text)
        for path in () if is_text else _paths_of_entries(folder, [_file_of_patch(entry)]):
            yield _targeted(UnmergedPatch("patch", path), target)
        if is_text:
            documents = [each.value for each in yamlfile.read_parts_of_text(str(text)).documents]
            yield from patches_of_documents("patch", file, documents, target)
    labels = frozenset(key for each in _added_metadata(value) for key in each)
    if labels:
        yield TargetedPatch(UnmergedPatch("kustomization", file, labels))


def _added_metadata(value: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    for each in _list_or_empty(value.get("labels")):
        yield _map_or_empty(_map_or_empty(each).get("pairs"))
    yield _map_or_empty(value.get("commonLabels"))
    yield _map_or_empty(value.get("commonAnnotations"))


def _targeted(patch: UnmergedPatch, target: Mapping[str, JSON]) -> TargetedPatch:
    return TargetedPatch(patch, _text_or_empty(target.get("kind")), _text_or_empty(target.get("name")))


def patches_of_documents(
    kind_of_patch: str, file: str, documents: Sequence[JSON], target: Mapping[str, JSON]
) -> Iterator[TargetedPatch]:
    """Yield the patches of a text or a file. A text that cannot be read may add any field."""
    if not documents:
        yield _targeted(UnmergedPatch(kind_of_patch, file), target)
    for each in documents:
        named = target or {"kind": get(each, ("kind",)), "name": get(each, ("metadata", "name"))}
        yield _targeted(UnmergedPatch(kind_of_patch, file, frozenset(_names_of_fields(each))), named)


def _names_of_fields(patch: JSON) -> Iterator[str]:
    """Yield the keys of all mappings, and the steps of the paths of a JSON patch."""
    waiting = [patch]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value
            if "op" in value:
                yield from (_unescaped_step(step) for step in str(value.get("path")).split("/"))
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _unescaped_step(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def read_flux_target(value: JSON) -> tuple[str, str] | None:
    """Return the folder that an object of Flux applies, as written, and the namespace of all its objects.

    None for other objects, and for a Flux object without a namespace or for a whole repository. Source:
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


def read_delivery_patches(file: str, value: JSON) -> tuple[str, tuple[TargetedPatch, ...]] | None:
    """Return the folder that an object of Flux or Argo CD applies, as written, and the patches that it adds; None for
    other objects. Source: fluxcd/kustomize-controller api/v1 KustomizationSpec and argoproj/argo-cd v3
    ApplicationSourceKustomize (patches).
    """
    kind = group_kind(value) if isinstance(value, dict) else ("", "")
    if kind not in (FLUX, ARGO):
        return None
    spec = _map_or_empty(value.get("spec"))
    source = spec if kind == FLUX else _map_or_empty(spec.get("source"))
    settings = spec if kind == FLUX else _map_or_empty(source.get("kustomize"))
    path = _text_or_empty(source.get("path"))
    patches = tuple(
        replace(each, patch=each.patch._replace(what=kind[1]))
        for each in _additions(file, "", settings)
        if each.patch.fields is not None
    )
    return posixpath.normpath(path.lstrip("/") or "."), patches


def read_delivered_folders(value: JSON) -> Iterator[DeliveredFolder]:
    """Yield the folders that an object of Flux or Argo CD applies.

    Source: fluxcd/kustomize-controller api/v1 KustomizationSpec (path); argoproj/argo-cd v3 ApplicationSpec (sources),
    ApplicationSource (ExplicitType: `directory` and `plugin` do not use kustomize) and GitDirectoryGeneratorItem.
    """
    kind, spec = (group_kind(value), _map_or_empty(value.get("spec"))) if isinstance(value, dict) else (("", ""), {})
    if kind == FLUX:
        yield DeliveredFolder(_pattern_of_path(spec.get("path")))
    if kind not in (ARGO, ARGO_SET):
        return
    directories = [*_directories_of_generators(spec.get("generators"))]
    application = spec if kind == ARGO else _map_or_empty(_map_or_empty(spec.get("template")).get("spec"))
    for source in map(_map_or_empty, (application.get("source"), *_list_or_empty(application.get("sources")))):
        if path := _text_or_empty(source.get("path")):
            pattern, by_kustomize = _pattern_of_path(path), "directory" not in source and "plugin" not in source
            for each in directories if directories and pattern == _ANY else (pattern,):
                yield DeliveredFolder(each, by_kustomize)


def _directories_of_generators(generators: JSON, depth: int = 0) -> Iterator[str]:
    """Yield the folders of the git generators of an ApplicationSet, also of those in a matrix or a merge."""
    for each in map(_map_or_empty, _list_or_empty(generators)):
        for directory in map(_map_or_empty, _list_or_empty(_map_or_empty(each.get("git")).get("directories"))):
            if directory.get("exclude") is not True:
                yield _pattern_of_path(directory.get("path"))
        for joined in ("matrix", "merge") if depth < _MOST_JOINED else ():
            yield from _directories_of_generators(_map_or_empty(each.get(joined)).get("generators"), depth + 1)


def _pattern_of_path(path: JSON) -> str:
    text = _text_or_empty(path).lstrip("/")
    return _ANY if any(each in text for each in _COMPUTED) else posixpath.normpath(text or ".")


def read_merged_paths(file: str, value: JSON) -> Iterator[str]:
    """Yield the files and folders with objects that the policies of a PolicyGenerator merge."""
    return (path for path, compliance in _manifests_of_policies(file, value) if compliance in _MERGING)


def read_policy_manifests(file: str, value: JSON) -> Iterator[str]:
    """Yield the files and folders from which a PolicyGenerator makes policies."""
    return (path for path, _ in _manifests_of_policies(file, value))


def _manifests_of_policies(file: str, value: JSON) -> Iterator[tuple[str, str]]:
    """Yield each path of a PolicyGenerator, and its complianceType; "" for the default."""
    if not isinstance(value, dict) or group_kind(value) != POLICY_GENERATOR:
        return
    default = _map_or_empty(value.get("policyDefaults"))
    for policy in map(_map_or_empty, _list_or_empty(value.get("policies"))):
        for manifest in map(_map_or_empty, _list_or_empty(policy.get("manifests"))):
            kinds = (_text_or_empty(each.get("complianceType")) for each in (manifest, policy, default))
            compliance = next(filter(None, kinds), "")
            for path in _paths_of_entries(posixpath.dirname(file), [manifest.get("path")]):
                yield path, compliance


def _paths_of_entries(folder: str, entries: JSON) -> Iterator[str]:
    for each in _list_or_empty(entries):
        if isinstance(each, str):
            yield posixpath.normpath(posixpath.join(folder, each))


def _named_paths(folder: str, value: JSON) -> Iterator[str]:
    """Yield the path that each text stands for, such as `job.yaml` and `key=job.yaml` of a configMapGenerator."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield posixpath.normpath(posixpath.join(folder, each.rpartition("=")[2]))
        elif isinstance(each, dict | list):
            waiting.extend(each.values() if isinstance(each, dict) else each)


def _entries(value: Mapping[str, JSON]) -> Iterator[JSON]:
    for field in _FIELDS_WITH_PATHS:
        yield from _list_or_empty(value.get(field))


def _is_remote(entry: JSON) -> bool:
    return isinstance(entry, str) and any(each in entry for each in _REMOTE)


def _generated_objects(value: Mapping[str, JSON]) -> Iterator[tuple[Kind, str]]:
    for field, kind in _GENERATORS:
        for each in _list_or_empty(value.get(field)):
            if name := _text_or_empty(_map_or_empty(each).get("name")):
                yield ("", kind), name


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
    # an entry is the file of a patch, or the text of a patch
    return patch.get("path") if isinstance(patch, dict) else patch


def _may_rename(patch: JSON) -> bool:
    return any(each in str(patch) for each in _NAMING_PATCH)


def _labels_of_pods(value: Mapping[str, JSON]) -> PodLabels:
    # source: types.Label and commonLabels of api v0.20
    entries = [each for each in _list_or_empty(value.get("labels")) if isinstance(each, dict)]
    selected = [each.get("pairs") for each in entries if each.get("includeSelectors") is True]
    unselected = [
        each.get("pairs")
        for each in entries
        if each.get("includeTemplates") is True and each.get("includeSelectors") is not True
    ]
    return PodLabels(_texts_of_maps((*selected, value.get("commonLabels"))), _texts_of_maps(unselected))


def _image_changes(value: Mapping[str, JSON]) -> Iterator[ImageChange]:
    # source: types.Image of api v0.20
    for each in map(_map_or_empty, _list_or_empty(value.get("images"))):
        name, *new = (_text_or_empty(each.get(field)) for field in ("name", "newName", "newTag", "digest"))
        if name:
            yield ImageChange(name, *new)


def _texts_of_maps(values: Iterable[JSON]) -> Mapping[str, str]:
    items = (item for value in values for item in _map_or_empty(value).items())
    return {key: text for key, text in items if isinstance(text, str)}


def _map_or_empty(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, dict) else {}


def _list_or_empty(value: JSON) -> Sequence[JSON]:
    return value if isinstance(value, list) else ()


def _text_or_empty(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def is_named_as_patch(file: str, folders: Container[str], patches: Container[str]) -> bool:
    """Return whether a file has the name of a patch, or is in a folder `patches`, beside a kustomization. A file has
    also the name of a patch if only numbers differ: `v-1.26.yml` beside the patch `v-1.28.yml`.

    `folders` are the folders with a kustomization. `patches` are the patches that kustomizations list, as
    `path_without_numbers` returns them.
    """
    folder, name = posixpath.split(file)
    above, last = posixpath.split(folder)
    if last == "patches" and above in folders:
        return True
    if path_without_numbers(file) in patches:
        return True
    words = _SEPARATORS.split(posixpath.splitext(name)[0].lower())
    return folder in folders and "patch" in (words[0], words[-1])


def path_without_numbers(file: str) -> str:
    """Return the path of a file without the numbers in its name."""
    folder, name = posixpath.split(file)
    return posixpath.join(folder, _NUMBER.sub("", name))


class Kustomizations:
    """The kustomizations of a tree, by folder."""

    def __init__(self, kustomizations: Iterable[Kustomization]) -> None:
        by_folder = {each.folder: each for each in kustomizations}
        self._by_folder: Final = {
            folder: _consider_naming_of_components(each, by_folder) for folder, each in by_folder.items()
        }
        self._patches: Final = frozenset(path for each in by_folder.values() for path in each.patches)
        self._named: Final = frozenset(path for each in by_folder.values() for path in each.named_paths)
        self._patches_without_numbers: Final = frozenset(map(path_without_numbers, self._patches))
        self.generated: Final = frozenset(named for each in by_folder.values() for named in each.generated)
        self.are_read: Final = all(each.is_read for each in by_folder.values())
        self._folders_by_used_path: Final[dict[str, list[str]]] = {}
        for each in self._by_folder.values():
            for path in each.used_paths:
                self._folders_by_used_path.setdefault(path, []).append(each.folder)

    def outermost_kustomization_of_file(self, file: str) -> str | None:
        """Return the folder of the only outermost kustomization that certainly uses a file, or None."""
        above, seen = self._only_kustomization_using(file), dict[str, None]()
        while above is not None and above not in seen:
            seen[above] = None
            above = self._only_kustomization_using(above)
        return [*seen][-1] if seen else None

    def files_of_kustomization(self, root: str) -> Mapping[str, NameChanges]:
        """Return the files that a kustomization uses, also through other kustomizations, with the name changes of their
        objects.
        """
        files: dict[str, NameChanges] = {}
        waiting, seen = [(root, self._naming_above(root), frozenset((root,)))], set[tuple[str, NameChanges]]()
        while waiting:
            folder, outer, above = waiting.pop()
            kustomization = self._by_folder[folder]
            naming = kustomization.naming.combine_with_outer(outer)
            if (folder, naming) in seen:
                continue
            seen.add((folder, naming))
            for path in kustomization.used_paths:
                if path in self._by_folder:
                    waiting.extend([(path, naming, above | {path})] if path not in above else ())
                elif files.setdefault(path, naming) != naming:
                    files[path] = UNKNOWN
        return files

    def is_naming_ambiguous(self, file: str) -> bool:
        """Return whether kustomizations may give a file's objects different names."""
        folders = self._folders_by_used_path.get(file, ())
        return len(folders) > 1 and any(
            self._by_folder[each].naming != AS_WRITTEN for each in self._kustomizations_above(file)
        )

    def pod_labels_of_file(self, file: str) -> PodLabels:
        """Return the labels that the kustomizations above a file give to its pod templates.

        A file that no kustomization lists gets the labels of the kustomization of its folder, because the author may
        have taken the file from the list.
        """
        labels = _NO_LABELS
        for folder in self._kustomizations_for(file):
            user = self._by_folder[folder]
            for each in (user, *(self._by_folder[path] for path in user.components if path in self._by_folder)):
                labels = labels.joined_with(each.labels)
        return labels

    def image_changes_of_file(self, file: str) -> tuple[ImageChange, ...]:
        """Return the changes of images by the kustomizations that certainly use a file, from the innermost to the
        outermost. If several kustomizations use a kustomization, their changes are not known.
        """
        changes: list[ImageChange] = []
        at, seen = self._only_kustomization_using(file), set[str]()
        while at is not None and at not in seen:
            seen.add(at)
            user = self._by_folder[at]
            changes += user.images
            changes += (
                each for path in user.components if path in self._by_folder for each in self._by_folder[path].images
            )
            at = self._only_kustomization_using(at)
        return tuple(changes)

    def absent_resources(self, files: Collection[str]) -> Iterator[str]:
        """Yield the listed resources that are neither a file of the tree nor a folder with a kustomization."""
        return (path for path in self._folders_by_used_path if path not in files and path not in self._by_folder)

    def folders_that_add_to_file(self, file: str) -> Collection[str]:
        """Return the folders of the kustomizations above a file and of their components, once each."""
        waiting, seen = [*self._kustomizations_above(file)], dict[str, None]()  # keeps the order
        while waiting:
            folder = waiting.pop()
            if folder not in seen:
                seen[folder] = None
                waiting.extend(self._by_folder[folder].components if folder in self._by_folder else ())
        return seen

    def additions_of_folder(self, folder: str) -> Sequence[TargetedPatch]:
        """Return the parts of a kustomization that may add fields. A folder without a kustomization is a component that
        was not read.
        """
        kustomization = self._by_folder.get(folder)
        return (
            (TargetedPatch(UnmergedPatch("component", folder)),) if kustomization is None else kustomization.additions
        )

    @property
    def folders(self) -> Collection[str]:
        """The folders with a kustomization."""
        return self._by_folder.keys()

    def with_used_folders(self, folders: Iterable[str]) -> frozenset[str]:
        """Return folders with a kustomization, and the folders that their kustomizations use, also through others."""
        waiting = [*folders]
        seen = set(waiting)
        while waiting:
            used = {path for path in self._by_folder[waiting.pop()].used_paths if path in self._by_folder} - seen
            seen |= used
            waiting.extend(used)
        return frozenset(seen)

    def has_kustomization(self, folder: str) -> bool:
        """Return whether a folder has its own kustomization."""
        return folder in self._by_folder

    def is_listed(self, file: str) -> bool:
        """Return whether a kustomization lists a file among its resources."""
        return file in self._folders_by_used_path

    def is_named(self, file: str) -> bool:
        """Return whether any text of a kustomization names a file."""
        return file in self._named

    def is_patch(self, file: str) -> bool:
        """Return whether a file is only merged into objects of other files.

        This includes an unlisted file with the name of a patch beside a kustomization.
        """
        if file in self._folders_by_used_path or not self._by_folder:
            return False
        return file in self._patches or is_named_as_patch(file, self._by_folder, self._patches_without_numbers)

    def _only_kustomization_using(self, path: str) -> str | None:
        folders = self._folders_by_used_path.get(path, ())
        return folders[0] if len(folders) == 1 else None

    def _kustomizations_for(self, file: str) -> Iterator[str]:
        """Yield the kustomizations above a file; for an unlisted file, those of its folder."""
        folder = posixpath.dirname(file)
        is_unlisted = file not in self._folders_by_used_path and folder in self._by_folder
        if is_unlisted:
            yield folder
        yield from self._kustomizations_above(folder if is_unlisted else file)

    def _naming_above(self, root: str) -> NameChanges:
        """Return UNKNOWN if a kustomization above the folder may change names or namespaces, otherwise AS_WRITTEN.

        A component without a namespace gets its namespace from the kustomization that includes the component, or from
        an object of Flux. If no file includes the component, the namespace is not known.
        """
        above, own = [*self._kustomizations_above(root)], self._by_folder[root]
        is_alone = own.is_component and not above and not own.naming.namespace
        return UNKNOWN if is_alone or any(self._by_folder[each].naming != AS_WRITTEN for each in above) else AS_WRITTEN

    def _kustomizations_above(self, path: str) -> Iterator[str]:
        """Yield the kustomizations that use a path directly or through others."""
        waiting, seen = [path], {path}
        while waiting:
            for folder in self._folders_by_used_path.get(waiting.pop(), ()):
                if folder not in seen:
                    seen.add(folder)
                    waiting.append(folder)
                    yield folder


def _consider_naming_of_components(kustomization: Kustomization, others: Mapping[str, Kustomization]) -> Kustomization:
    """Return a kustomization with unknown names if a component changes names or cannot be read."""
    if all(each in others and others[each].naming == AS_WRITTEN for each in kustomization.components):
        return kustomization
    return replace(kustomization, naming=UNKNOWN)


def kustomizations_of_documents(documents: Mapping[str, Sequence[JSON]]) -> Kustomizations:
    """Return the kustomizations of a tree. `documents` are the YAML documents of each file."""
    firsts = ((file, value) for file, values in documents.items() for value in values[:1])
    return Kustomizations(each for file, value in firsts if (each := read_kustomization(file, value)))


def object_with_images(obj: JSON, changes: Sequence[ImageChange], depth: int = 0) -> JSON:
    """Return an object with the images that kustomizations give to its containers. If nothing changes, return the same
    object. kustomize looks for containers in all fields (api v0.20 filters/imagetag/legacy.go).
    """
    if not changes or depth > MAX_DEPTH or not isinstance(obj, dict):
        return obj
    changed: dict[str, JSON] = {}
    for name, value in obj.items():
        if isinstance(value, list):
            of_containers = name in _CONTAINERS
            items = [
                _container_with_image(each, changes) if of_containers else object_with_images(each, changes, depth + 1)
                for each in value
            ]
            if any(new is not old for new, old in zip(items, value, strict=True)):
                changed[name] = items
        elif (new := object_with_images(value, changes, depth + 1)) is not value:
            changed[name] = new
    return {**obj, **changed} if changed else obj


def object_with_texts_as_annotations(obj: JSON) -> JSON:
    """Return an object with numbers and booleans in its annotations as texts. If nothing changes, return the same
    object.

    kustomize writes all annotations of an object as texts, but no labels and no annotations of a pod template (kyaml
    v0.20 yaml/rnode.go, SetAnnotations).
    """
    annotations = _map_or_empty(get(obj, ("metadata", "annotations")))
    texts = {key: json.dumps(value) for key, value in annotations.items() if isinstance(value, bool | int | float)}
    if not texts:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, **texts}}}


def _container_with_image(container: JSON, changes: Sequence[ImageChange]) -> JSON:
    image = new = _text_or_empty(_map_or_empty(container).get("image"))
    for each in changes:
        new = each.applied_to(new)
    return container if new == image else {**container, "image": new}


def object_with_pod_labels(obj: JSON, labels: PodLabels) -> JSON:
    """Return an object with the labels that kustomizations give to its pods. If nothing changes, return the same
    object.

    kustomize sets the same value in selector and pod template, so a label of the selector keeps the selector's value.
    Another label that the template already has stays, because Services in other files select it. A selector without
    labels gets the labels too, but kustomize gives no selector to a Job, and no selector gets labels of
    `includeTemplates`.
    """
    template, new_labels = get(obj, ("spec", "template")), labels.selected
    is_labelled = isinstance(obj, dict) and isinstance(template, dict) and group_kind(obj) in _LABELLED
    if labels == _NO_LABELS or not is_labelled:
        return obj
    selector = _map_or_empty(get(obj, ("spec", "selector")))
    selected = _map_or_empty(selector.get("matchLabels"))
    metadata = _map_or_empty(template.get("metadata"))
    labels_of_pods = {
        **labels.unselected,
        **new_labels,
        **_map_or_empty(metadata.get("labels")),
        **{key: selected[key] for key in new_labels if key in selected},
    }
    spec = {**obj["spec"], "template": {**template, "metadata": {**metadata, "labels": labels_of_pods}}}
    if new_labels and not selected and obj["kind"] != "Job":
        spec["selector"] = {**selector, "matchLabels": {key: labels_of_pods[key] for key in new_labels}}
    return {**obj, "spec": spec}
