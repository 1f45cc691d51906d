"""Finds mistakes in the params of policies, such as unknown rules and unknown keys.

In files, a mistake is an error when params are loaded (load.py, assembly.py). In a live cluster, people may edit a
ConfigMap by hand. So the server only reports a mistake (live_policies/live_policy_set.py), and uses the other rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches

from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.apimachinery.paths import FieldPath, get
from webhook.cluster.lookup import Cluster, namespace_and_name
from webhook.cluster.site_params import OWN_NAMESPACE, SITE, data_of_config_map, is_below_site, is_site, site_keys_of
from webhook.errors import LookupFailed
from webhook.facts.assumptions import is_setting
from webhook.facts.subject import FactRegistry
from webhook.manifests.label_selectors import labels_of
from webhook.policy.compiled import ParamSource, Policy
from webhook.rules import actions

Mistake = tuple[FieldPath, str]
"""A field of a param, and the mistake in it."""


class ParamRuleChecker:
    """Checks the params of some policies. Rules of all registered groups of checks are known.

    `shipped` has the params that are shipped with the policies, with all known keys. `own_namespace` is the namespace
    where claimgate runs.
    """

    def __init__(
        self,
        policies: Iterable[Policy],
        registry: FactRegistry,
        shipped: Iterable[JSON] = (),
        *,
        own_namespace: str = OWN_NAMESPACE,
    ) -> None:
        all_policies = tuple(policies)
        self._sources = tuple(source for policy in all_policies for source in _param_sources_of_policy(policy))
        self._policies = [policy for policy in all_policies if policy.checks]
        self._names_below_site = frozenset(
            source.name
            for policy in all_policies
            for source in _param_sources_of_policy(policy)
            if policy.param_kind is not None
            and is_below_site(policy.param_kind, source.namespace, source.name, own_namespace)
        )
        self._shipped_keys = {namespace_and_name(each): data_of_config_map(each) for each in shipped}
        self._others = [
            policy
            for policy in all_policies
            if not policy.checks
            and any(
                (source.namespace, source.name) in self._shipped_keys for source in _param_sources_of_policy(policy)
            )
        ]
        self._registry = registry
        self._own_namespace = own_namespace
        self._references = _References(self._policies)
        self._references_of_others = _References(self._others)

    def mistakes_if_object_is_param(self, param: JSON) -> Iterator[Mistake]:
        """Yield the mistakes in an object if it is a param of a policy, or sets keys of params."""
        if is_site(param, self._own_namespace):
            yield from self.mistakes_of_site(param)
        elif self._references.refer_to(param):
            yield from self.mistakes_of_param(param)
            yield from self._unknown_keys(param, namespace_and_name(param))
        elif self._references_of_others.refer_to(param):  # params of policies without checks, such as gpu-portable
            yield from self._unknown_keys(param, namespace_and_name(param))

    def is_param(self, obj: JSON) -> bool:
        """Return whether an object is a param of one of the policies, or sets keys of params."""
        return (
            is_site(obj, self._own_namespace)
            or self._references.refer_to(obj)
            or self._references_of_others.refer_to(obj)
        )

    def mistakes_of_site(self, site: JSON) -> Iterator[Mistake]:
        """Yield the mistakes in the keys of the ConfigMap that sets keys of params."""
        known_names = sorted(self._names_below_site)
        for key in data_of_config_map(site):
            name, dot, _ = str(key).partition(".")
            if not dot or name not in known_names:
                close = get_close_matches(name, known_names, n=1)
                hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(known_names)}"
                problem = f"a key is NAME.KEY of a ConfigMap, and no policy has a ConfigMap `{name}`"
                yield ("data", str(key)), f"{problem}: {hint}"
        for name in known_names:
            for key, text in self.mistakes_of_keys(name, site_keys_of(site, name)):
                yield ("data", f"{name}.{key}" if key else name), text

    def mistakes_of_keys(self, name: str, keys: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
        """Yield key and mistake for keys that replace keys of a ConfigMap in the namespace where claimgate runs."""
        param = {"data": keys}
        for path, text in (*self.mistakes_of_param(param), *self._unknown_keys(param, (self._own_namespace, name))):
            yield ".".join(map(str, path[1:])), text

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all params that bindings name."""
        return frozenset(source.name for source in self._sources if source.name)

    def mistakes_of_param(self, param: JSON) -> Iterator[Mistake]:
        loaded = {rule for policy in self._policies for rule in policy.catalogue}
        if any(actions.mistakes_in_param(param, loaded)):  # some rules may be of policies that are not loaded
            yield from actions.mistakes_in_param(
                param, loaded.union(self._registry.rule_catalogue_of_groups(self._registry.check_groups))
            )

    def _unknown_keys(self, param: JSON, place: tuple[str, str]) -> Iterator[Mistake]:
        """Yield keys that the shipped ConfigMap of this name does not have and no policy reads, such as `denny`."""
        shipped = self._shipped_keys.get(place)
        if shipped is None:
            return
        families = {str(key).partition(".")[0] for key in shipped}
        for key in data_of_config_map(param):
            if str(key) in shipped or str(key) in actions.OTHER_LISTS or is_setting(str(key)):
                continue
            if "." in str(key) and str(key).partition(".")[0] in families:  # keys such as `resource.<namespace>`
                continue
            close = get_close_matches(str(key), shipped, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(sorted(shipped))}"
            yield ("data", str(key)), f"unknown key `{key}` of ConfigMap `{place[1]}`: {hint}"

    def param_kinds(self) -> frozenset[GroupVersionKind]:
        all_policies = (*self._policies, *self._others)
        return frozenset(policy.param_kind for policy in all_policies if policy.param_kind is not None)

    def params_in_cluster(self, cluster: Cluster) -> Iterator[tuple[GroupVersionKind, JSON]]:
        """Yield kind and object of each param in a view that bindings name or select, and of the ConfigMap that sets
        keys of params.
        """
        named = (
            (policy.param_kind, source)
            for policy in (*self._policies, *self._others)
            for source in _param_sources_of_policy(policy)
        )
        with suppress(LookupFailed):  # policies that need the site's ConfigMap report the failure
            site = cluster.get(SITE.gvk, self._own_namespace, SITE.scope.name)
            yield from [(SITE.gvk, site)] if site and self._names_below_site else []
        for kind, source in named:
            if kind is not None:
                try:
                    yield from [(kind, param) for param in _params_of_source(kind, source, cluster)]
                except LookupFailed:
                    continue  # policies that need the param report the failure


class _References:
    """The references of bindings to params, by kind, because an audit searches for a reference to each object."""

    def __init__(self, policies: Iterable[Policy]) -> None:
        self._names: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
        self._others: dict[tuple[str, str], list[ParamSource]] = defaultdict(list)
        for policy in policies:
            if policy.param_kind is None:
                continue
            kind = policy.param_kind.group, policy.param_kind.kind
            for source in _param_sources_of_policy(policy):
                if source.name:
                    self._names[kind].add((source.namespace, source.name))
                else:
                    self._others[kind].append(source)

    def refer_to(self, obj: JSON) -> bool:
        """Return whether a binding refers to an object. The version is not compared."""
        if not isinstance(obj, dict):
            return False
        kind = str(obj.get("apiVersion")).rpartition("/")[0], str(obj.get("kind"))
        if names := self._names.get(kind):
            namespace, name = namespace_and_name(obj)
            if (namespace, name) in names or ("", name) in names:
                return True
        return any(_does_source_refer_to(source, obj) for source in self._others.get(kind, ()))


def _params_of_source(kind: GroupVersionKind, source: ParamSource, cluster: Cluster) -> Iterator[JSON]:
    if source.namespace and source.name:
        yield from filter(None, [cluster.get(kind, source.namespace, source.name)])
        return
    labels = source.selector.text if source.selector is not None else ""
    yield from (
        each for each in cluster.list(kind, source.namespace or None, labels) if _does_source_refer_to(source, each)
    )


def _param_sources_of_policy(policy: Policy) -> Iterator[ParamSource]:
    yield from (binding.param_source for binding in policy.bindings if binding.param_source is not None)


def _does_source_refer_to(source: ParamSource, obj: JSON) -> bool:
    if source.namespace and source.namespace != get(obj, ("metadata", "namespace"), ""):
        return False
    if source.name:
        return bool(source.name == get(obj, ("metadata", "name"), ""))
    return source.selector is not None and source.selector.matches(labels_of(obj))
