"""Prints policies for `claimgate policies`: a table, or the result of a check with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.policy.worst_case import WorstCaseCost
from webhook.text import terminal


def policy_table(described: Sequence[dict[str, Any]]) -> str:
    """Return the policies as a table, one line each."""
    rows = [("NAME", "KIND", "ACTIONS", "SEVERITY", "FILE")]
    rows += [
        (
            one["name"],
            one["kind"],
            ",".join(one["actions"]) or ("-" if one["bound"] else "unbound"),
            one["severity"] or "-",
            one["file"],
        )
        for one in described
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return terminal.lines(lines)


def check_report(described: Sequence[dict[str, Any]], *, verbose: bool) -> str:
    """Return the result, then the policies with mistakes; with `verbose` all policies with all details."""
    lines = [_sentence_about_all(described)]
    for one in described:
        wrong, details = (
            [*lines_about_mistakes(one), *_lines_about_server_needs(one), *_lines_about_untried_kinds(one)],
            list(_lines_about_policy(one)) if verbose else [],
        )
        if wrong or details:
            lines.append(f"{one['name']} ({one['kind']}, {one['file']}): compiles")
            lines += [f"    {text}" for text in (*details[:1], *wrong, *details[1:])]
    return terminal.lines(lines)


def has_certain_mistakes(one: dict[str, Any]) -> bool:
    """Return whether a policy has a mistake that was seen, or that follows from its text."""
    return any(one[key] for key in ("fails", "errors", "wrongTypes", "matchesNothing", "constant"))


def _sentence_about_all(described: Sequence[dict[str, Any]]) -> str:
    portable = sum(one["portable"] for one in described)
    rewritten = sum(one["exported"] == "rewritten" for one in described)
    after = f", {rewritten} more after export" if rewritten else ""
    compiled = "1 policy compiles" if len(described) == 1 else f"{len(described)} policies compile"
    wrong = sum(any(lines_about_mistakes(one)) for one in described)
    rest = f"{wrong} may be wrong" if wrong else "nothing is wrong"
    if failing := sum(bool(one["fails"]) for one in described):
        rest = f"{failing} {'fails' if failing == 1 else 'fail'} for every object, {rest}"
    asking = sum(one["asksAuthorizer"] for one in described)
    asks = f"; {asking} only with `claimgate serve --authorizer`" if asking else ""
    return f"{compiled}, {portable} portable{after}; {rest}{asks}"


def lines_about_mistakes(one: dict[str, Any]) -> Iterator[str]:
    """Yield the probable mistakes of a policy."""
    if not one["bound"]:
        yield "never evaluated: no binding names it"
    yield from (f"fails for every object: {text}" for text in one["fails"])
    yield from one["errors"]
    yield from (f"matches nothing: {text}" for text in one["matchesNothing"])
    yield from (f"wrong type: {text}" for text in one["wrongTypes"])
    yield from one["constant"]
    yield from (f"field: {text}" for text in one["undefinedFields"])
    yield from (f"not idempotent: {text}" for text in one["notIdempotent"])
    yield from one["expandedFacts"]
    yield from one["unconvertible"]
    yield from (f"kube-apiserver 1.36 crashes on it and drops the connection: {text}" for text in one["crashes"])


def _lines_about_server_needs(one: dict[str, Any]) -> Iterator[str]:
    """Yield what a server needs for a policy, such as a flag or a permission."""
    if one["asksAuthorizer"]:
        role = "`claimgate webhook-config --rbac --authorizer` prints the right that it needs"
        yield f"it uses `authorizer`, which `claimgate serve` accepts only with --authorizer; {role}"


def _lines_about_untried_kinds(one: dict[str, Any]) -> Iterator[str]:
    if kinds := one["notTried"]:
        yield (
            f"not tried: fields of {', '.join(kinds)}; put the CustomResourceDefinition beside the policy, so that "
            "the policy is evaluated on objects of the kind"
        )


def _lines_about_policy(one: dict[str, Any]) -> Iterator[str]:
    if one["description"]:
        yield one["description"]
    yield f"covers: {_coverage_as_text(one)}"
    if one["evaluatedInPart"]:
        kinds = ", ".join(one["evaluatedInPart"])
        yield f"evaluated in part, in files: the pods of {kinds}, as far as fields of the object say what is in them"
    if one["notEvaluated"]:
        yield f"not evaluated: the pods of {', '.join(one['notEvaluated'])}, which their controllers make of parts"
    yield f"worst-case cost: {_cost_as_text(WorstCaseCost(**one['worstCase']))}"
    yield f"portable: {_portability_as_text(one)}"
    yield from (f"hard to read: {text}" for text in one["hardToRead"])


def _portability_as_text(one: dict[str, Any]) -> str:
    if one["portable"]:
        return "yes"
    if one["exported"] == "no":
        return f"no: {'; '.join(one['obstacles'])}"
    left_out = "".join(f"; not for {each}" for each in one["notRewritten"])
    what = "its expansion" if one["expands"] else "its condition"
    return f"after `claimgate policies export`, which writes {what} out{left_out}"


def _coverage_as_text(one: dict[str, Any]) -> str:
    """Return what a policy applies to; an expanded one names pods, and the other resources with pods that are read."""
    apart = {*one["evaluatedInPart"], *one["notEvaluated"]}
    names = [name for name in one["covers"] if name not in apart]
    if one["expands"] and len(names) > 1:
        return f"pods, and the pods of {', '.join(name for name in names if name != 'pods')}"
    return ", ".join(names) or "nothing"


def _cost_as_text(worst: WorstCaseCost) -> str:
    if worst.is_within_limits:
        if worst.most is not None:
            return f"fine: at most {worst.most:,} for any object"
        return f"fine: at most {worst.request:,} for the largest request, of 3 MiB, which is below every limit"
    if worst.within is None:
        return "not known: the estimate reaches a limit for any object; the API server stops an expression there"
    length = f"no limit is reached while no text, list or map is longer than {worst.within:,}"
    return f"fine for ordinary objects, not bounded for huge objects: {length}"
