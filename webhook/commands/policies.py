"""`claimgate policies`: what is loaded, whether it compiles, what it covers, and what a cluster can take natively."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from webhook import assembly, shipped, terminal, yamlfile
from webhook.attributes import Phase
from webhook.commands import options, output
from webhook.errors import InputError
from webhook.export.webhook_rules import rules
from webhook.paths import get
from webhook.policy.compiled import Policy
from webhook.policy.field_names import undefined_fields
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet
from webhook.policy.readability import hard_to_read
from webhook.policy.worst_case import WorstCase, worst_case
from webhook.problems.actions import unknown
from webhook.releases import Release
from webhook.settings.shared import Settings
from webhook.wording import counted

app = typer.Typer(no_args_is_help=True, add_completion=False, help="List, check and export policies.")

FORMATS = ("text", "json")
SHARED = ("workloads", "cel_engine", "kubernetes_version")
Places: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR", show_default=False, help="Folders and files. Default: the shipped policies."),
]
Outputs: TypeAlias = Annotated[
    list[str] | None, typer.Option("--output", "-o", metavar="FORMAT[=FILE]", help="text or json; repeatable.")
]


@app.command("list")
@options.takes(Settings, *SHARED)
def list_policies(folder: Places = None, *, chosen: Outputs = None, settings: Settings) -> int:
    """Name every policy, its actions and its file.

    Actions are what its bindings do with a failure; a policy that is `unbound` is never evaluated.
    """
    outputs = output.parse(chosen, FORMATS)
    loaded = _load(folder, settings)
    described = [_brief(policy) for policy in loaded.policies]
    output.deliver(outputs, {"text": lambda: _table(described), "json": lambda: _json(described)})
    options.warn_of_unbound(loaded)
    return 0


@app.command()
@options.takes(Settings, *SHARED)
def check(
    folder: Places = None,
    *,
    chosen: Outputs = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say of each policy what it covers, may cost, and where it can run.")
    ] = False,
    settings: Settings,
) -> int:
    """Compile every policy, and say whether all is well.

    Names what is probably a mistake: a policy that no binding names, a rule in a param that does not exist, and a field
    that the object does not have. --verbose says also what each policy covers, what it may cost, and whether a cluster
    can take it natively, as it is or after `export`. The worst case is that of the API server's cost model, whose
    limits stop an expression at 1,000,000.

    Exits with 2 when one does not compile, and names every mistake of every file; with 1 when one is never evaluated
    because no binding names it, or when its param names a rule that does not exist.
    """
    outputs = output.parse(chosen, FORMATS)
    loaded = _load(folder, settings)
    rewritten = _rewritten(loaded, settings.kubernetes_version)
    described = [_full(policy, loaded, rewritten) for policy in loaded.policies]
    output.deliver(outputs, {"text": lambda: _checked(described, verbose=verbose), "json": lambda: _json(described)})
    return 1 if loaded.unbound or any(one["unknownRules"] for one in described) else 0


@app.command("rules")
@options.takes(Settings, *SHARED)
def print_rules(
    folder: Places = None,
    *,
    late: Annotated[
        bool, typer.Option("--late", help="Print tables of what would fail after it was accepted, and of reports.")
    ] = False,
    settings: Settings,
) -> int:
    """Print the reference of all rules as Markdown.

    What each rule says and why, where it comes from, a bad and a good example out of the suites beside the policies,
    and how to switch it off.
    """
    from webhook.suites import late_failures, rule_reference
    from webhook.suites.examples import examples

    chosen = _chosen(folder, settings)
    places = assembly.places(chosen)
    how = assembly.options(chosen)
    policies = load(places, how).policies
    if late:
        left = () if folder else late_failures.not_covered()
        sys.stdout.write(late_failures.markdown(policies, left))
    else:
        sys.stdout.write(rule_reference.markdown(policies, examples(places, how)))
    return 0


@app.command()
@options.takes(Settings, "workloads", "kubernetes_version")
def export(folder: Places = None, *, settings: Settings) -> int:
    """Print what a cluster can take natively.

    The output is for `kubectl apply -f -`. A validating policy that only expands is rewritten: one for pods, and one
    for each way pod templates stand in workloads. What a cluster cannot take is named on stderr, with the reason.
    """
    from webhook.commands.export import export as collect

    made = collect(_load(folder, settings), settings.kubernetes_version)
    sys.stdout.write("---\n".join(yamlfile.dump(value) for value in made.manifests))
    sys.stderr.write(terminal.lines(made.lacking))
    return 0


def _load(named: Sequence[Path] | None, settings: Settings) -> PolicySet:
    chosen = _chosen(named, settings)
    return load(assembly.places(chosen), assembly.options(chosen))


def _chosen(named: Sequence[Path] | None, settings: Settings) -> Settings:
    return replace(settings, policies=tuple(named)) if named else settings


def _brief(policy: Policy) -> dict[str, Any]:
    actions = {str(action) for binding in policy.bindings for action in binding.actions}
    return {
        "name": policy.name,
        "kind": f"{policy.kind.capitalize()}AdmissionPolicy",
        "actions": sorted(actions),
        "bound": bool(policy.bindings),
        "severity": policy.severity,
        "category": policy.category,
        "file": shipped.shown(policy.file),
    }


def _rewritten(loaded: PolicySet, version: Release) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """The policies that `export` can say in other words, with what these do not cover."""
    from webhook.commands.export import export as collect

    try:
        return collect(loaded, version).rewritten
    except InputError:  # policies of standard input, which cannot be read again
        return {}


def _full(policy: Policy, loaded: PolicySet, rewritten: Mapping[tuple[str, str], tuple[str, ...]]) -> dict[str, Any]:
    brief = _brief(policy)
    left_out = rewritten.get((brief["kind"], policy.name))
    return {
        **brief,
        "description": " ".join(policy.annotations.get("kubernetes.io/description", "").split()),
        "docs": policy.docs,
        "phase": "mutate" if policy.kind == "mutating" else policy.phase,
        "expands": policy.expands,
        "facts": list(policy.facts),
        "covers": sorted(set(_covers(policy, loaded))),
        "portable": not policy.obstacles,
        "obstacles": list(policy.obstacles),
        "exported": "as it is" if not policy.obstacles else "no" if left_out is None else "rewritten",
        "notRewritten": list(left_out or ()),
        "unknownRules": list(_unknown_rules(policy, loaded)),
        "worstCase": asdict(worst_case(policy)),
        "hardToRead": list(hard_to_read(policy)),
        "undefinedFields": list(undefined_fields(policy)),
        "crashes": list(dict.fromkeys(_crashes(policy))),
    }


def _covers(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """`resource.group`, as kubectl names resources, for everything the policy is asked about."""
    alone = PolicySet(
        validating=(policy,) if policy.kind == "validating" else (),
        mutating=(policy,) if policy.kind == "mutating" else (),
        table=loaded.table,
    )
    for phase in Phase:
        for rule in rules(alone, phase):
            for group in rule.groups:
                yield from (f"{resource}.{group}" if group else resource for resource in rule.resources)


def _unknown_rules(policy: Policy, loaded: PolicySet) -> Iterator[str]:
    """Ids in the params of a policy over checks that no policy's catalogue has."""
    known = [rule for each in loaded.policies for rule in each.catalogue]
    names = {source.name for source in (binding.param_source for binding in policy.bindings) if source}
    for param in loaded.params if policy.checks else ():
        name = get(param, ("metadata", "name"))
        for rule in unknown(param, known) if name in names else ():
            close = get_close_matches(rule, known, n=1)
            hint = f": did you mean `{close[0]}`?" if close else ""
            yield f"{name} names the rule `{rule}`, which does not exist{hint}"


def _crashes(policy: Policy) -> Iterator[str]:
    """What makes kube-apiserver drop the connection when the policy is created there."""
    for each in policy.expressions():
        if each.program is not None:
            yield from each.program.crashes()


def _table(described: Sequence[dict[str, Any]]) -> str:
    rows = [("NAME", "KIND", "ACTIONS", "SEVERITY", "FILE")]
    rows += [
        (
            one["name"],
            one["kind"],
            ",".join(one["actions"]) or ("-" if one["bound"] else "unbound"),
            one["severity"] or "-",
            terminal.one_line(one["file"]),
        )
        for one in described
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


def _checked(described: Sequence[dict[str, Any]], *, verbose: bool) -> str:
    """The verdict, then the policies with what is wrong; all of them, with everything, where that is wanted."""
    lines = [_verdict(described)]
    for one in described:
        wrong, details = list(_wrong(one)), list(_details(one)) if verbose else []
        if wrong or details:
            lines.append(f"{one['name']} ({one['kind']}, {one['file']}): compiles")
            lines += [f"    {text}" for text in (*details[:1], *wrong, *details[1:])]
    return terminal.lines(lines)


def _verdict(described: Sequence[dict[str, Any]]) -> str:
    portable = sum(one["portable"] for one in described)
    rewritten = sum(one["exported"] == "rewritten" for one in described)
    after = f", {rewritten} more after export" if rewritten else ""
    compiled = "1 policy compiles" if len(described) == 1 else f"{len(described)} policies compile"
    wrong = sum(any(_wrong(one)) for one in described)
    rest = f"{wrong} may be wrong" if wrong else "nothing is wrong"
    return f"{compiled}, {portable} portable{after}; {rest}"


def _wrong(one: dict[str, Any]) -> Iterator[str]:
    """What is probably a mistake."""
    if not one["bound"]:
        yield "never evaluated: no binding names it"
    yield from (f"param: {text}" for text in one["unknownRules"])
    yield from (f"field: {text}" for text in one["undefinedFields"])
    yield from (f"kube-apiserver 1.36 crashes on it and drops the connection: {text}" for text in one["crashes"])


def _details(one: dict[str, Any]) -> Iterator[str]:
    if one["description"]:
        yield one["description"]
    yield f"covers: {_coverage(one)}"
    yield f"worst-case cost: {_cost(WorstCase(**one['worstCase']))}"
    yield f"portable: {_portability(one)}"
    yield from (f"hard to read: {text}" for text in one["hardToRead"])


def _portability(one: dict[str, Any]) -> str:
    if one["portable"]:
        return "yes"
    if one["exported"] == "no":
        return f"no: {'; '.join(one['obstacles'])}"
    left_out = "".join(f"; not for {each}" for each in one["notRewritten"])
    what = "its expansion" if one["expands"] else "its condition"
    return f"after `claimgate policies export`, which writes {what} out{left_out}"


def _coverage(one: dict[str, Any]) -> str:
    """What a policy is asked about; an expanded one names pods and counts the kinds that hold them."""
    names = one["covers"]
    if one["expands"] and len(names) > 1:
        return f"pods, and the pod templates of {counted(len(names) - 1, 'kind')}"
    return ", ".join(names) or "nothing"


def _cost(worst: WorstCase) -> str:
    if worst.is_within:
        if worst.most is not None:
            return f"fine: at most {worst.most:,}, whatever the object"
        return f"fine: at most {worst.request:,} for the largest request, of 3 MiB, which is below every limit"
    if worst.within is None:
        return "not known: the estimate reaches a limit for any object; the API server stops an expression there"
    length = f"no limit is reached while no text, list or map is longer than {worst.within:,}"
    return f"fine for ordinary objects, not bounded for huge ones: {length}"


def _json(described: Iterable[dict[str, Any]]) -> str:
    return terminal.exact_json(json.dumps(list(described), indent=2, ensure_ascii=False)) + "\n"
