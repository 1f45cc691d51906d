"""Exports the policies that a cluster can evaluate without claimgate, and says what is left out.

A policy is exported unchanged, or as export/native.py rewrites it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import get
from webhook.errors import InputError, InputProblem
from webhook.input import documents
from webhook.manifests.annotations import expand_updates_annotation, unexportable_obstacles
from webhook.manifests.claimgate_kinds import is_claimgate_kind, native_manifest
from webhook.policy.compiled import Policy
from webhook.policy.load import object_in_own_namespace
from webhook.policy.policy_set import PolicySet

if TYPE_CHECKING:
    from webhook.cel.library.declaration import Version

_Key: TypeAlias = tuple[str, str]
"""Kind and name of a manifest, which are unique in a cluster."""


class Export(Struct, frozen=True):
    """The exported manifests, and a line for everything that is left out.

    `rewritten` has kind and name of each rewritten policy, with the kinds that the rewritten policy does not cover.
    """

    manifests: tuple[JSON, ...]
    left_out: tuple[str, ...]
    rewritten: Mapping[_Key, tuple[str, ...]]


def collect_exportable_policies(loaded: PolicySet, version: Version) -> Export:
    """Return the manifests that a cluster of this version supports.

    Raises:
        InputError: the policies came from standard input, which cannot be read again.
    """
    collecting = _ExportCollector(loaded, version, _documents_as_written(loaded))
    exported = [policy for policy in loaded.policies if collecting.add_policy(policy)]
    manifests = (*collecting.manifests, *_bound_params(exported, loaded))
    return Export(manifests, tuple(collecting.left_out), collecting.rewritten)


class _ExportCollector(Struct):
    loaded: PolicySet
    version: Version
    written: Mapping[_Key, JSON]
    manifests: list[JSON] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    rewritten: dict[_Key, tuple[str, ...]] = field(default_factory=dict)

    def add_policy(self, policy: Policy) -> bool:
        """Add a policy with its bindings, as written or rewritten. If neither is possible, add the reason."""
        kind = f"{policy.kind.capitalize()}AdmissionPolicy"
        own = expand_updates_annotation(self.written[kind, policy.name])
        bindings = [self.written[f"{kind}Binding", binding.name] for binding in policy.bindings]
        if hindering := unexportable_obstacles(policy.obstacles, policy.kind):
            self.left_out.append(f"not exported: {policy.name}: {'; '.join(hindering)}")
            return False
        if not policy.expands:
            self.manifests += [own, *bindings]
            if policy.obstacles:
                self.rewritten[_kind_and_name(own)] = ()
            return True
        return self._add_rewritten_policy(policy.name, own, bindings)

    def _add_rewritten_policy(self, name: str, own: JSON, bindings: Sequence[JSON]) -> bool:
        from webhook.export.native import rewrite_as_native
        from webhook.export.native_spec import PolicyRewriteError

        try:
            native = rewrite_as_native(own, bindings, self.loaded.table, self.version)
        except PolicyRewriteError as error:
            return self._note_not_exported(name, str(error))
        others = self.written.keys() - {_kind_and_name(own), *map(_kind_and_name, bindings)}
        if twice := sorted(others & set(map(_kind_and_name, native.manifests))):
            kind, other = twice[0]
            return self._note_not_exported(
                name, f"one part would have the name of the {kind} `{other}`: rename that object"
            )
        self.manifests += native.manifests
        left_out = tuple(f"{', '.join(kinds)}: {reason}" for kinds, reason in native.left_out)
        self.left_out += [f"not rewritten: {name} for {each}" for each in left_out]
        self.rewritten[_kind_and_name(own)] = left_out
        return True

    def _note_not_exported(self, name: str, reason: str) -> bool:
        self.left_out.append(f"not exported: {name}: its expansion cannot be rewritten: {reason}")
        return False


def _documents_as_written(loaded: PolicySet) -> dict[_Key, JSON]:
    """Return the policies and bindings as written in their files, with the namespace where claimgate runs."""
    policies = loaded.policies
    files = {policy.file for policy in policies} | {binding.file for policy in policies for binding in policy.bindings}
    if "-" in files or "<stdin>" in files:
        raise InputError(
            InputProblem(message="policies on standard input cannot be exported: name their file or folder")
        )
    read = (each.value for each in documents.read_documents(sorted(files)).documents)
    manifests = [native_manifest(value) if is_claimgate_kind(value) else value for value in read]
    ours = (object_in_own_namespace(manifest, loaded.own_namespace) for manifest in manifests)
    return {_kind_and_name(manifest): manifest for manifest in ours}


def _kind_and_name(value: JSON) -> _Key:
    return get(value, ("kind",), ""), get(value, ("metadata", "name"), "")


def _bound_params(exported: Sequence[Policy], loaded: PolicySet) -> Iterator[JSON]:
    """Yield the params in the policies' folders to which a binding of the exported policies refers."""
    kinds = {(policy.param_kind.group, policy.param_kind.kind) for policy in exported if policy.param_kind}
    sources = [binding.param_source for policy in exported for binding in policy.bindings if binding.param_source]
    names = {source.name for source in sources if source.name}
    selects = any(not source.name for source in sources)
    for value in loaded.params:
        group, slash, _ = str(value.get("apiVersion", "")).partition("/")
        is_wanted = selects or get(value, ("metadata", "name")) in names
        if is_wanted and (group if slash else "", value.get("kind")) in kinds:
            yield value
