"""Describes policies for `claimgate policies list` and `check`: actions, file, coverage, costs and mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import structs

from webhook.apimachinery.attributes import Phase
from webhook.apimachinery.releases import Release
from webhook.errors import InputError
from webhook.export.webhook_rules import webhook_rules
from webhook.facts.pods.unread_pods import has_pods_in_parts
from webhook.policy.compiled import Policy
from webhook.policy.field_names import undefined_fields
from webhook.policy.load import Options
from webhook.policy.pitfalls import (
    sentences_about_certain_failures,
    sentences_about_expanded_facts,
    unconvertible_resources,
)
from webhook.policy.policy_set import PolicySet
from webhook.policy.rules_without_effect import (
    sentences_about_constant_conditions,
    sentences_about_rules_without_effect,
)
from webhook.policy.type_check import sentences_about_types
from webhook.policy.worst_case import WorstCaseCost, reasons_for_poor_readability, worst_case_cost
from webhook.suites.idempotence import describe_repeated_change
from webhook.suites.trials import sentences_about_errors, untried_kinds
from webhook.text import terminal
from webhook.text.wording import some_of
from webhook.yamltext import input_files

_MOST_KINDS: Final = 5
Exported: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]
"""Kind and name of each policy that `export` rewrites, with the objects that the new policies do not cover."""


def brief_details(policy: Policy) -> dict[str, Any]:
    """Return the data for `list`: name, kind, actions, severity, category and file."""
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
    """Return the policies that `export` can rewrite, with the objects that the new policies do not cover."""
    from webhook.commands.export import collect_exportable_policies as collect

    try:
        return collect(loaded, version).rewritten
    except InputError:  # policies on standard input cannot be read again
        return {}


def full_details(policy: Policy, loaded: PolicySet, exported: Exported, options: Options) -> dict[str, Any]:
    """Return the data for `check`, which adds coverage, costs, portability, and probable mistakes."""
    short = brief_details(policy)
    repeated_change = describe_repeated_change(policy, loaded, options)
    fails, wrong_types = list(sentences_about_certain_failures(policy)), _wrong_types(policy, loaded, options)
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
        "notTried": sorted(set(untried_kinds(policy, loaded))),
        "wrongTypes": wrong_types,
        "matchesNothing": list(sentences_about_rules_without_effect(policy)),
        "constant": list(sentences_about_constant_conditions(policy)),
        "undefinedFields": [each.text for each in undefined_fields(policy) if not each.fails],
        "notIdempotent": [repeated_change] if repeated_change else [],
        "expandedFacts": list(sentences_about_expanded_facts(policy, loaded.registry)),
        "unconvertible": list(unconvertible_resources(policy, loaded)),
        "crashes": list(dict.fromkeys(_api_server_panics(policy))),
    }


def _wrong_types(policy: Policy, loaded: PolicySet, options: Options) -> list[str]:
    return list(sentences_about_types(policy, loaded.registry, options.version))


def _errors_on_valid_objects(policy: Policy, loaded: PolicySet, wrong_types: list[str]) -> list[str]:
    return list(sentences_about_errors(policy, loaded, {text.partition(": ")[0] for text in wrong_types}))


def _covered_resources(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """Yield `resource.group`, as kubectl names resources."""
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
    """Yield resources with pods that controllers assemble from several fields.

    With `partly`, yield resources with pods that the policy evaluates in part. Otherwise, yield resources with pods
    that the policy does not evaluate.
    """
    for row in loaded.table.rows if policy.expands else ():
        if has_pods_in_parts(row) and partly == (bool(row.made) and policy.reads_merged_pods):
            yield f"{row.resource}.{row.group}"


def _api_server_panics(policy: Policy) -> Iterator[str]:
    """Yield the expressions that crash kube-apiserver when the policy is created."""
    for each in policy.expressions():
        if each.program is not None:
            yield from each.program.api_server_panics()


def policy_table(described: Sequence[dict[str, Any]]) -> str:
    """Return a table with a line for each policy."""
    rows = [("NAME", "KIND", "ACTIONS", "SEVERITY", "FILE")]
    rows += [
        (
            details["name"],
            details["kind"],
            ",".join(details["actions"]) or ("-" if details["bound"] else "unbound"),
            details["severity"] or "-",
            details["file"],
        )
        for details in described
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return terminal.lines(lines)


def check_report(described: Sequence[dict[str, Any]], *, verbose: bool) -> str:
    """Return the result of the check and the policies with mistakes; with `verbose`, all policies and details."""
    lines = [_sentence_about_all(described)]
    for details in described:
        wrong = [
            *lines_about_mistakes(details),
            *_lines_about_server_needs(details),
            *_lines_about_untried_kinds(details),
        ]
        verbose_lines = list(_lines_about_policy(details)) if verbose else []
        if wrong or verbose_lines:
            lines.append(f"{details['name']} ({details['kind']}, {details['file']}): compiles")
            lines += [f"    {text}" for text in (*verbose_lines[:1], *wrong, *verbose_lines[1:])]
    return terminal.lines(lines)


def has_certain_mistakes(details: dict[str, Any]) -> bool:
    """A mistake is certain if a trial failed, or if the text of the policy shows it."""
    return any(details[key] for key in ("fails", "errors", "wrongTypes", "matchesNothing", "constant"))


def _sentence_about_all(described: Sequence[dict[str, Any]]) -> str:
    portable = sum(details["portable"] for details in described)
    rewritten = sum(details["exported"] == "rewritten" for details in described)
    after = f", and {rewritten} more after export" if rewritten else ""
    compiled = "1 policy compiles" if len(described) == 1 else f"{len(described)} policies compile"
    wrong = sum(any(lines_about_mistakes(details)) for details in described)
    untried = sum(bool(details["notTried"]) for details in described)
    rest = f"{wrong} may be wrong" if wrong else "no mistake was seen" if untried else "nothing is wrong"
    if failing := sum(bool(details["fails"]) for details in described):
        rest = f"{failing} {'fails' if failing == 1 else 'fail'} for every object, {rest}"
    asking = sum(details["asksAuthorizer"] for details in described)
    asks = f"; {asking} only with `claimgate serve --authorizer`" if asking else ""
    unknown = f"; {untried} not tried on every kind" if untried else ""
    return f"{compiled}; API servers can evaluate {portable}{after}; {rest}{unknown}{asks}"


def lines_about_mistakes(details: dict[str, Any]) -> Iterator[str]:
    """Yield the probable mistakes of a policy."""
    if not details["bound"]:
        yield "never evaluated: no binding names it"
    yield from (f"fails for every object: {text}" for text in details["fails"])
    yield from details["errors"]
    yield from (f"matches nothing: {text}" for text in details["matchesNothing"])
    yield from (f"wrong type: {text}" for text in details["wrongTypes"])
    yield from details["constant"]
    yield from (f"field: {text}" for text in details["undefinedFields"])
    yield from (f"not idempotent: {text}" for text in details["notIdempotent"])
    yield from details["expandedFacts"]
    yield from details["unconvertible"]
    crash = "kube-apiserver 1.36 crashes on this expression and drops the connection"
    yield from (f"{crash}: {text}" for text in details["crashes"])


def _lines_about_server_needs(details: dict[str, Any]) -> Iterator[str]:
    """Yield the flags and permissions that a server needs for a policy."""
    if details["asksAuthorizer"]:
        role = "`claimgate webhook-config --rbac --authorizer` prints the right that the server needs"
        yield f"it uses `authorizer`, which `claimgate serve` accepts only with --authorizer; {role}"


def _lines_about_untried_kinds(details: dict[str, Any]) -> Iterator[str]:
    if kinds := details["notTried"]:
        their = "its CustomResourceDefinition" if len(kinds) == 1 else "their CustomResourceDefinitions"
        yield f"not tried on {some_of(kinds, _MOST_KINDS)}, whose fields are not known: add {their} to the files"


def _lines_about_policy(details: dict[str, Any]) -> Iterator[str]:
    if details["description"]:
        yield details["description"]
    yield f"covers: {_coverage_as_text(details)}"
    if details["evaluatedInPart"]:
        kinds = ", ".join(details["evaluatedInPart"])
        yield f"evaluated in part, in files: the pods of {kinds}, as far as the object has their fields"
    if details["notEvaluated"]:
        kinds = ", ".join(details["notEvaluated"])
        yield f"not evaluated: the pods of {kinds}, because controllers assemble them from several fields"
    yield f"worst-case cost: {_cost_as_text(WorstCaseCost(**details['worstCase']))}"
    yield f"portable: {_portability_as_text(details)}"
    yield from (f"hard to read: {text}" for text in details["hardToRead"])


def _portability_as_text(details: dict[str, Any]) -> str:
    if details["portable"]:
        return "yes"
    if details["exported"] == "no":
        return f"no: {'; '.join(details['obstacles'])}"
    left_out = "".join(f"; not for {each}" for each in details["notRewritten"])
    condition = "its expansion" if details["expands"] else "its condition"
    return f"after `claimgate policies export`, which writes {condition} out{left_out}"


def _coverage_as_text(details: dict[str, Any]) -> str:
    """An expanded policy covers pods, and the resources with pods that are read."""
    apart = {*details["evaluatedInPart"], *details["notEvaluated"]}
    names = [name for name in details["covers"] if name not in apart]
    if details["expands"] and len(names) > 1:
        return f"pods, and the pods of {', '.join(name for name in names if name != 'pods')}"
    return ", ".join(names) or "nothing"


def _cost_as_text(worst: WorstCaseCost) -> str:
    if worst.is_within_limits:
        if worst.most is not None:
            return f"fine: at most {worst.most:,} for any object"
        return f"fine: at most {worst.request:,} for the largest request, of 3 MiB, which is below every limit"
    if worst.within is None:
        return "not known: the estimate reaches a limit for any object; the API server stops an expression at the limit"
    length = f"below every limit if no text, list or map is longer than {worst.within:,}"
    return f"fine for ordinary objects, not bounded for huge objects: {length}"
