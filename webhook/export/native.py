"""Rewrites a policy with `expand` to native policies: one for Pods, and one for each place of pod templates.

Kinds with one template at the same fixed place share a policy. Kinds with several templates share a few policies, each
short enough that an API server compiles it quickly. A kind is left out, with the reason, if the rewritten policy would
have another meaning. native_spec.py rewrites rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from webhook.apimachinery.attributes import JSON
from webhook.cel import compiled_engine
from webhook.cel.library.declaration import Version
from webhook.export import native_spec as nativespec
from webhook.export.native_spec import PolicyRewriteError
from webhook.export.template_expressions import templates_expression
from webhook.manifests.annotations import PREFIX, expand_updates_annotation
from webhook.manifests.models import parse_manifest
from webhook.policy.compile import compile_policy
from webhook.workloads.podsets import OF_RUNTIME
from webhook.workloads.rows import Embeds, PodSetRule, Row
from webhook.workloads.table import Table

_EVERY = ("CREATE", "UPDATE", "DELETE")
_LONGEST_LIST = 5_000
"""The most characters of the expression that lists the templates of the kinds of one policy. The time in which an API
server compiles a policy grows with the square: 0.3 s of processor time for 5,000 characters, but 6 s for 27,000.
"""
_SELECTS = "its objectSelector selects by labels of a pod, and the selector of another kind cannot read these labels"


@dataclass(frozen=True, slots=True)
class NativePolicies:
    """The result for a policy. `left_out` are uncovered resources, as kubectl names them, with the reason."""

    manifests: tuple[JSON, ...]
    left_out: tuple[tuple[tuple[str, ...], str], ...]


@dataclass(frozen=True, slots=True)
class _KindGroup:
    """The kinds that share a rewritten policy. `suffix` is the end of the policy's name."""

    suffix: str
    rows: tuple[Row, ...]
    spec: Callable[[nativespec.ParsedPolicySpec], JSON]


def rewrite_as_native(policy: JSON, bindings: Sequence[JSON], table: Table, version: Version) -> NativePolicies:
    """Return native policies and bindings for a validating policy that compiles. Only `expand` may prevent its export.

    Expressions are checked for the Kubernetes version.

    Raises:
        PolicyRewriteError: no kind can be covered.
    """
    policy = expand_updates_annotation(policy)
    spec = policy["spec"]
    for each in (spec["matchConstraints"], *(_match_resources_of_binding(binding) for binding in bindings)):
        if any((each.get("objectSelector") or {}).values()):
            raise PolicyRewriteError(_SELECTS)
    table = _table_with_patches(table) if _policy_reads_patches(policy) else table
    deletes = any(
        "DELETE" in _operations_without_connect(rule)
        for rule in _rules_about_pods(spec["matchConstraints"], "resourceRules")
    )
    original = nativespec.parse_expressions(spec, version, deletes=deletes)
    rewritten, refused = [_without_own_annotations(policy), *bindings], dict[str, list[str]]()
    for group in _groups_of_kinds(table):
        try:
            rewritten += _policies_for_group(policy, bindings, group, original, version)
        except PolicyRewriteError as error:
            refused.setdefault(str(error), []).extend(map(_qualified_resource, group.rows))
    left_out = *_kinds_left_out(table), *((tuple(kinds), reason) for reason, kinds in refused.items())
    return NativePolicies(tuple(rewritten), left_out)


def _policy_reads_patches(policy: JSON) -> bool:
    return "patches" in policy["metadata"].get("annotations", {}).get(f"{PREFIX}expand", "")


def _table_with_patches(table: Table) -> Table:
    """Return a table in which patches of a runtime's templates are pod sets. Whole templates and PodSpecs have
    separate rows.
    """
    rewritten = [
        replace(row, podSets=tuple(PodSetRule(template=each.template, embeds=embeds) for each in of_runtime))
        for row in table.rows
        for embeds in get_args(Embeds)
        if (of_runtime := [each for each in row.fragments if each.of == OF_RUNTIME and each.embeds == embeds])
    ]
    return Table((*table.rows, *rewritten))


def _without_own_annotations(policy: JSON) -> JSON:
    metadata = dict(policy["metadata"])
    others = {key: value for key, value in metadata.pop("annotations", {}).items() if not key.startswith(PREFIX)}
    return {**policy, "metadata": {**metadata, **({"annotations": others} if others else {})}}


def _qualified_resource(row: Row) -> str:
    return f"{row.resource}.{row.group}" if row.group else row.resource


def _kinds_left_out(table: Table) -> Iterator[tuple[tuple[str, ...], str]]:
    rows = [row for row in table.rows if any(rule.embeds == "object" for rule in row.podSets)]
    if rows:
        yield tuple(map(_qualified_resource, rows)), "their templates are those of the objects that they wrap"
    parts = [row for row in table.rows if row.podSets and row.pods == "parts"]
    if parts:
        yield tuple(map(_qualified_resource, parts)), "their controllers complete the templates with other fields"
    mixed_rows = [row for row in table.rows if len({rule.embeds for rule in row.podSets} - {"object"}) > 1]
    if mixed_rows:
        yield tuple(map(_qualified_resource, mixed_rows)), "they hold both pod templates and pod specs"


def _groups_of_kinds(table: Table) -> Iterator[_KindGroup]:
    fixed: dict[tuple[str, ...], list[Row]] = {}
    several: dict[str, list[Row]] = {}
    for row in table.rows:
        embeds = {rule.embeds for rule in row.podSets}
        if row.pods == "parts" or len(embeds) != 1 or "object" in embeds or (first := row.podSets[0]).template == "":
            continue
        if len(row.podSets) == 1 and not re.search(r"\[\]|\{\}", first.template):
            fixed.setdefault((first.template, first.embeds, first.when, first.unless), []).append(row)
        else:
            several.setdefault("pod-specs" if "podSpec" in embeds else "templates", []).append(row)
    for (place, *_), rows in fixed.items():
        yield _KindGroup(place.replace(".", "-").lower(), tuple(rows), _spec_writer_for_one_template(rows[0]))
    for suffix, rows in several.items():
        for number, part in enumerate(_split_by_length_of_list(rows), 1):
            name = suffix if number == 1 else f"{suffix}-{number}"
            yield _KindGroup(name, tuple(part), _spec_writer_for_several_templates(part))


def _split_by_length_of_list(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Split rows so that the list of templates of each part has at most _LONGEST_LIST characters, or is of one row."""
    part: list[Row] = []
    for row in rows:
        if part and len(templates_expression("dyn(object)", [*part, row])) > _LONGEST_LIST:
            yield part
            part = []
        part.append(row)
    yield part


def _spec_writer_for_one_template(row: Row) -> Callable[[nativespec.ParsedPolicySpec], JSON]:
    return lambda original: nativespec.rewrite_spec_for_one_template(original, row.podSets[0])


def _spec_writer_for_several_templates(rows: Sequence[Row]) -> Callable[[nativespec.ParsedPolicySpec], JSON]:
    return lambda original: nativespec.rewrite_spec_for_several_templates(original, rows)


def _policies_for_group(
    policy: JSON, bindings: Sequence[JSON], group: _KindGroup, original: nativespec.ParsedPolicySpec, version: Version
) -> Iterator[JSON]:
    """Yield the policy of a group and its bindings; nothing if no rule is left."""
    constraints = _constraints_for_kinds(policy["spec"]["matchConstraints"], group.rows)
    if constraints is None:
        return
    plain = _without_own_annotations(policy)
    name = f"{plain['metadata']['name']}-{group.suffix}"
    spec = group.spec(original)
    rewritten = {
        **plain,
        "metadata": {**plain["metadata"], "name": name},
        "spec": {**spec, "matchConstraints": constraints},
    }
    _raise_api_server_errors(rewritten, version)
    yield rewritten
    for binding in bindings:
        if (bound := _binding_for_group(binding, name, group)) is not None:
            yield bound


def _raise_api_server_errors(manifest: JSON, version: Version) -> None:
    """Raise the errors that an API server would return for a policy."""
    _, errors = compile_policy(parse_manifest(manifest), compiled_engine(), version)  # type: ignore[arg-type]
    for error in errors:
        raise PolicyRewriteError(str(error).partition("\n")[0])


def _binding_for_group(binding: JSON, policy: str, group: _KindGroup) -> JSON | None:
    """Return a binding for the policy of a group; None if the binding names only resources without pods."""
    spec, resources = {**binding["spec"], "policyName": policy}, _match_resources_of_binding(binding)
    if resources:
        constraints = _constraints_for_kinds(resources, group.rows)
        if constraints is None:
            return None
        spec["matchResources"] = constraints
    metadata = {**binding["metadata"], "name": f"{binding['metadata']['name']}-{group.suffix}"}
    return {**binding, "metadata": metadata, "spec": spec}


def _match_resources_of_binding(binding: JSON) -> JSON:
    return binding["spec"].get("matchResources") or {}


def _constraints_for_kinds(constraints: Mapping[str, JSON], rows: Sequence[Row]) -> JSON | None:
    """Replace the rules about pods by rules about these kinds. Return None if no rule of resourceRules is left.

    API servers convert requests of other versions (matchPolicy Equivalent).
    """
    rewritten = {key: value for key, value in constraints.items() if key == "namespaceSelector"}
    for key in ("resourceRules", "excludeResourceRules"):
        rules = [each for rule in _rules_about_pods(constraints, key) for each in _rules_for_kinds(rule, rows)]
        if rules:
            rewritten[key] = rules
        elif constraints.get(key) and key == "resourceRules":
            return None
    return rewritten


def _rules_about_pods(constraints: Mapping[str, JSON], key: str) -> Iterator[JSON]:
    for rule in constraints.get(key) or ():
        groups, versions = set(rule.get("apiGroups") or ()), set(rule.get("apiVersions") or ())
        resources = set(rule.get("resources") or ())
        is_about_pods = groups & {"", "*"} and versions & {"v1", "*"} and resources & {"pods", "*", "pods/*", "*/*"}
        if is_about_pods and _operations_without_connect(rule):
            yield rule


def _operations_without_connect(rule: JSON) -> list[str]:
    """Return the operations of a rule without CONNECT, which workloads do not have."""
    operations = rule.get("operations") or ()
    return [each for each in _EVERY if each in operations or "*" in operations]


def _rules_for_kinds(rule: JSON, rows: Sequence[Row]) -> Iterator[JSON]:
    kinds: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in rows:
        kinds.setdefault((row.group, row.versions), []).append(row.resource)
    unchanged = {key: rule[key] for key in ("resourceNames", "scope") if rule.get(key)}
    for (group, versions), resources in kinds.items():
        yield {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "operations": _operations_without_connect(rule),
            "resources": resources,
            **unchanged,
        }
