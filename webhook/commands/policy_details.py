"""Collects data about a policy for `claimgate policies`: its actions and file, coverage, costs, and mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import structs

from webhook.apimachinery.attributes import Phase
from webhook.apimachinery.releases import Release
from webhook.errors import InputError
from webhook.export.webhook_rules import webhook_rules
from webhook.facts.pods.unread_pods import has_pods_in_parts
from webhook.policy.certain_failures import sentences_about_certain_failures
from webhook.policy.compiled import Policy
from webhook.policy.constant_conditions import sentences_about_constant_conditions
from webhook.policy.expanded_facts import sentences_about_expanded_facts
from webhook.policy.field_names import undefined_fields
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.policy.rules_without_effect import sentences_about_rules_without_effect
from webhook.policy.type_check import sentences_about_types
from webhook.policy.unconvertible import unconvertible_resources
from webhook.policy.worst_case import reasons_for_poor_readability, worst_case_cost
from webhook.suites.idempotence import describe_repeated_change
from webhook.suites.trials import sentences_about_errors
from webhook.yamltext import input_files

Exported: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]
"""The policies that `export` rewrites, by kind and name, with the objects that the rewritten policies do not cover."""


def brief_details(policy: Policy) -> dict[str, Any]:
    """Return the data for `list`: name, kind, actions, file, and the author's annotations."""
    actions = {str(action) for binding in policy.bindings for action in binding.actions}
    return {
        "name": policy.name,
        "kind": f"{policy.kind.capitalize()}AdmissionPolicy",
        "actions": sorted(actions),
        "bound": bool(policy.bindings),
        "severity": policy.severity,
        "category": policy.category,
        "file": input_files.path_as_shown(policy.file),
    }


def rewritten_policies(loaded: PolicySet, version: Release) -> Exported:
    """Return the policies that `export` can rewrite, with the objects that the rewritten policies do not cover."""
    from webhook.commands.export import collect_exportable_policies as collect

    try:
        return collect(loaded, version).rewritten
    except InputError:  # policies of standard input, which cannot be read again
        return {}


def full_details(policy: Policy, loaded: PolicySet, exported: Exported, how: Options) -> dict[str, Any]:
    """Return the data for `check`: also coverage, costs, portability, and probable mistakes."""
    short = brief_details(policy)
    again = describe_repeated_change(policy, loaded, how)
    fails, wrong_types = list(sentences_about_certain_failures(policy)), _wrong_types(policy, loaded, how)
    left_out = exported.get((short["kind"], policy.name))
    return {
        **short,
        "description": " ".join(policy.annotations.get("kubernetes.io/description", "").split()),
        "docs": policy.docs,
        "phase": "mutate" if policy.kind == "mutating" else policy.phase,
        "expands": policy.expands,
        "facts": list(policy.facts),
        "asksAuthorizer": policy.uses_authorizer,
        "covers": sorted(set(_covered_resources(policy, loaded))),
        "evaluatedInPart": sorted(_resources_with_unread_pods(policy, loaded, partly=True)),
        "notEvaluated": sorted(_resources_with_unread_pods(policy, loaded, partly=False)),
        "portable": not policy.obstacles,
        "obstacles": list(policy.obstacles),
        "exported": "as it is" if not policy.obstacles else "no" if left_out is None else "rewritten",
        "notRewritten": list(left_out or ()),
        "worstCase": structs.asdict(worst_case_cost(policy)),
        "hardToRead": list(reasons_for_poor_readability(policy)),
        "fails": fails,
        "errors": [] if fails else _errors_on_valid_objects(policy, loaded, wrong_types),
        "wrongTypes": wrong_types,
        "matchesNothing": list(sentences_about_rules_without_effect(policy)),
        "constant": list(sentences_about_constant_conditions(policy)),
        "undefinedFields": [each.text for each in undefined_fields(policy) if not each.fails],
        "notIdempotent": [again] if again else [],
        "expandedFacts": list(sentences_about_expanded_facts(policy, loaded.registry)),
        "unconvertible": list(unconvertible_resources(policy, loaded)),
        "crashes": list(dict.fromkeys(_api_server_panics(policy))),
    }


def _wrong_types(policy: Policy, loaded: PolicySet, how: Options) -> list[str]:
    return list(sentences_about_types(policy, loaded.registry, how.version))


def _errors_on_valid_objects(policy: Policy, loaded: PolicySet, wrong_types: list[str]) -> list[str]:
    return list(sentences_about_errors(policy, loaded, {text.partition(": ")[0] for text in wrong_types}))


def _covered_resources(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """Yield `resource.group`, as kubectl names resources, for everything that the policy applies to."""
    alone = PolicySet(
        validating=(policy,) if policy.kind == "validating" else (),
        mutating=(policy,) if policy.kind == "mutating" else (),
        table=loaded.table,
    )
    for phase in Phase:
        for rule in webhook_rules(alone, phase):
            for group in rule.groups:
                yield from (f"{resource}.{group}" if group else resource for resource in rule.resources)


def _resources_with_unread_pods(policy: Policy, loaded: PolicySet, *, partly: bool) -> Iterator[str]:
    """Yield the resources that an expanded policy covers. Also yield resources with pods that cannot be read, or only
    in part.
    """
    for row in loaded.table.rows if policy.expands else ():
        if has_pods_in_parts(row) and partly == (bool(row.made) and policy.reads_merged_pods):
            yield f"{row.resource}.{row.group}"


def _api_server_panics(policy: Policy) -> Iterator[str]:
    """Yield the parts of a policy that make kube-apiserver drop the connection when it is created there."""
    for each in policy.expressions():
        if each.program is not None:
            yield from each.program.api_server_panics()
