"""Writes the answer about a job, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from webhook.apimachinery.names import object_as_text
from webhook.report import records
from webhook.report.finding import Finding
from webhook.report.screen import Screen
from webhook.rules.text import problem_as_sentence
from webhook.simulation.aspects import ASPECTS, NOT_COMPARED, Aspect, aspect_of
from webhook.simulation.outcome import Simulation, missing_things_with_rules
from webhook.text import terminal
from webhook.text.wording import counted

_SIGNS: Final = {False: "fail", None: "skip", True: "pass"}
_WIDEST: Final = max(map(len, ASPECTS))
_MARGIN: Final = " " * (_WIDEST + 6)
_MOST: Final = 12
_HIDDEN: Final = ("ConfigMap", "CustomResourceDefinition", "Namespace")
"""Kinds that are not shown among the objects that were read: policies look them up for parameters, releases and
selectors."""
_AFTER_SIGN: Final = "  "
"""A margin with the width of a symbol and a blank."""


def text(simulation: Simulation, screen: Screen) -> str:
    """Return the answer, then each aspect, the demands of the job, the objects that were read, and the unknowns."""
    return "".join(f"{line}\n" for line in _lines(simulation, screen))


def _lines(simulation: Simulation, screen: Screen) -> Iterator[str]:
    colon = ":" if simulation.answer == "nothing-found" else ""
    sign = _SIGNS[simulation.can_start]
    yield from lines_of_headline(sign, str(simulation.about), f"{colon} {simulation.headline}", screen)
    yield f"  {terminal.one_line(simulation.place.file_line_and_column)}"
    yield ""
    yield from lines_of_aspects(simulation, screen)
    yield ""
    for title, text in titled_details(simulation):
        yield from screen.wrapped(terminal.one_line(f"{title}: {text}"), "", "  ")


def lines_of_headline(sign: str, title: str, headline: str, screen: Screen) -> Iterator[str]:
    """Yield the symbol of a result, the object in bold, and the headline, in lines that fit."""
    named = terminal.one_line(title)
    first, *others = screen.wrapped(terminal.one_line(f"{named}{headline}"), _AFTER_SIGN)
    styled = first.removeprefix(_AFTER_SIGN).replace(named, screen.styled(named, "bold"), 1)
    yield f"{screen.symbol_of_result(sign)} {styled}"
    yield from others


def lines_of_aspects(simulation: Simulation, screen: Screen) -> Iterator[str]:
    """Yield a line for each aspect, or its problems."""
    for aspect in ASPECTS:
        yield from _aspect(simulation, aspect, screen)


def _aspect(simulation: Simulation, aspect: Aspect, screen: Screen) -> Iterator[str]:
    """Yield one line for an aspect, or its problems."""
    if problems := simulation.against.get(aspect):
        sign = "fail" if simulation.can_start is False else "warn"
        for number, finding in enumerate(problems):
            head = f"  {screen.symbol_of_result(sign)} {aspect:<{_WIDEST}}  " if number == 0 else ""
            yield from _problem(finding, head, screen)
        return
    label, sentence, is_known = _statement_about_aspect(simulation, aspect)
    if sentence:
        first, *others = screen.wrapped(terminal.one_line(sentence), _MARGIN)
        yield f"  {screen.symbol_of_result('pass' if is_known else 'skip')} {label:<{_WIDEST}}  {first.lstrip()}"
        yield from others


def _statement_about_aspect(simulation: Simulation, aspect: Aspect) -> tuple[str, str, bool]:
    """Return a label, a sentence, and whether the aspect is known. The sentence is "" if an earlier aspect has the
    same question.
    """
    question = next(iter(simulation.questions_about(aspect)), None)
    if open_about := simulation.unknowns_about(aspect):
        return aspect, f"not known: {_first_names_as_text(open_about)}", False
    if question is None:
        is_known = aspect != "queue" or not simulation.request.queue or bool(simulation.request.cluster_queue)
        return aspect, _sentence_about_fine_aspect(simulation, aspect), is_known
    if aspect != question.aspects[0]:
        return aspect, "", False
    if len(question.aspects) > len(ASPECTS) // 2:
        return "pods", "; ".join(each.what for each in simulation.questions), False
    questions = simulation.questions_about(aspect)
    is_partly_known = _is_partly_known(simulation, aspect) and not any(each.is_obstacle for each in questions)
    known_part = _sentence_about_fine_aspect(simulation, aspect) if is_partly_known else ""
    return aspect, "; ".join(filter(None, (known_part, *(each.what for each in questions)))), False


def _is_partly_known(simulation: Simulation, aspect: Aspect) -> bool:
    """Return whether an aspect has a result in addition to its open question."""
    if aspect == "nodes":
        if any(each.what.startswith(NOT_COMPARED) for each in simulation.questions_about(aspect)):
            return False
        return _count(simulation, "Node") > 0 and simulation.looked_at.is_whole()
    return bool(simulation.request.queue or simulation.request.volcano_queue)


def _problem(finding: Finding, head: str, screen: Screen) -> Iterator[str]:
    problem = finding.problem
    sentence = problem_as_sentence(replace(problem, fix="")) if problem else " ".join(finding.message.split())
    first, *others = screen.wrapped(terminal.one_line(f"{sentence} ({finding.rule.id})"), _MARGIN)
    yield head + first.lstrip() if head else first
    yield from others
    if problem and problem.fix:
        first, *others = screen.wrapped(f"fix: {terminal.one_line(problem.fix)}", _MARGIN, "     ")
        yield first.replace("fix:", screen.styled("fix:", "green"), 1)
        yield from others


def _sentence_about_fine_aspect(simulation: Simulation, aspect: Aspect) -> str:
    """Return a sentence about an aspect without obstacles."""
    request = simulation.request
    if aspect == "queue":
        return _queue(simulation)
    if aspect == "quota":
        return "nothing found against it" if request.queue or request.volcano_queue else "no queue counts it"
    if aspect == "claims":
        claims = dict.fromkeys(name for each in request.pod_sets for name in each.claims)
        return f"nothing found against {', '.join(claims)}" if claims else "none"
    if aspect == "nodes":
        nodes = counted(_count(simulation, "Node"), "node")
        return f"nothing found against it on {nodes}; pods that run there were not read"
    return "nothing found against it"


def _queue(simulation: Simulation) -> str:
    request = simulation.request
    if request.queue:
        parts = (("LocalQueue", request.queue), ("ClusterQueue", request.cluster_queue), ("cohort", request.cohort))
        named = ", ".join(f"{kind} {name}" for kind, name in parts if name)
        return named if request.cluster_queue else f"{named}; its ClusterQueue is not known"
    if request.volcano_queue:
        return f"Volcano's queue {request.volcano_queue}"
    return "none: pods go to the scheduler at once"


def _count(simulation: Simulation, kind: str) -> int:
    return sum(count for gvk, count in simulation.looked_at.counts.items() if gvk.kind == kind)


def titled_details(simulation: Simulation) -> Iterator[tuple[str, str]]:
    """Yield titles and texts: the demands of the job, the objects that were read, the unknowns, and other findings."""
    if simulation.request.pod_sets:
        yield "asks for", _requests_as_text(simulation)
    if simulation.request.assumed:
        yield "assuming", simulation.request.assumed
    if looked_at := looked_at_names(simulation):
        yield "looked at", _first_names_as_text(looked_at)
    for text, rules in missing_things_with_rules(simulation.unknown):
        yield "not known", f"{text} ({_first_names_as_text(rules)})"
    is_absent = any(each.is_absent for finding in simulation.unknown for each in finding.missing)
    if is_absent and not simulation.looked_at.is_whole():
        yield "fix", "add the files of these objects to --context, or use --context-is-whole if it has everything"
    elif _count(simulation, "Node") and not simulation.looked_at.is_whole():
        yield "fix", "use --context-is-whole if the files have all objects of the cluster"
    if simulation.left_out:
        title, _, text = str(simulation.left_out).partition(": ")
        yield title, text
    for text in dict.fromkeys(f"{each.rule.id}: {each.exception_reason}" for each in simulation.excepted):
        yield "excepted", text
    for finding in simulation.besides:
        yield "besides", f"{' '.join(finding.message.split())} ({finding.rule.id})"


def _requests_as_text(simulation: Simulation) -> str:
    """Return a text about the pods with their devices, and the amounts that count against their queue."""
    requests = dict(simulation.request.requests)
    sets = []
    for each in simulation.request.pod_sets:
        pods = "pods" if each.pods is None else counted(each.pods, "pod")
        amounts = ", ".join(f"{value} {name}" for name, value in requests.get(each.name, ()))
        each_pod = "" if each.pods == 1 else "each "
        devices = f", {each_pod}with {counted(each.devices, 'device')}" if each.devices else ""
        sets.append(f"{pods} in pod set `{each.name}`{devices}{f' ({amounts})' if amounts else ''}")
    return "; ".join(sets)


def looked_at_names(simulation: Simulation) -> tuple[str, ...]:
    """Return the names of the objects that were looked up by name, and the lengths of lists with other objects."""
    seen, job = simulation.looked_at, simulation.about
    own = job.kind, job.namespace, job.name
    named = [
        object_as_text(gvk.kind, namespace, name)
        for gvk, namespace, name in seen.objects
        if gvk.kind not in _HIDDEN and (gvk.kind, namespace, name) != own
    ]
    by_name = Counter(gvk for gvk, _, _ in seen.objects)
    lists = [
        f"{count} of kind {gvk.kind}"
        for gvk, count in seen.counts.items()
        if count > by_name[gvk] and gvk.kind not in _HIDDEN
    ]
    return tuple(dict.fromkeys((*sorted(named), *sorted(lists))))


def _first_names_as_text(names: Sequence[str]) -> str:
    left = len(names) - _MOST
    return ", ".join((*names[:_MOST], f"{left} more") if left > 0 else names)


def simulation_as_json(simulation: Simulation) -> dict[str, Any]:
    """Return the answer as plain JSON values."""
    request = simulation.request
    return {
        "object": str(simulation.about),
        **records.record_of_place(simulation.place),
        "answer": simulation.answer,
        "starts": simulation.can_start,
        "aspects": {
            aspect: [_finding_as_json(each) for each in simulation.against.get(aspect, ())] for aspect in ASPECTS
        },
        "leftOut": simulation.left_out.as_json(),
        "excepted": [{**_finding_as_json(each), "reason": each.exception_reason} for each in simulation.excepted],
        "besides": [_finding_as_json(each) for each in simulation.besides],
        "asks": [
            {
                "podSet": each.name,
                "pods": each.pods,
                "devices": each.devices,
                "claims": list(each.claims),
                "requests": dict(dict(request.requests).get(each.name, ())),
            }
            for each in request.pod_sets
        ],
        "queue": {
            "localQueue": request.queue,
            "clusterQueue": request.cluster_queue,
            "cohort": request.cohort,
            "volcanoQueue": request.volcano_queue,
        },
        "assumed": [request.assumed] if request.assumed else [],
        "lookedAt": list(looked_at_names(simulation)),
        "unknown": [
            *({"what": each.sentence, "aspects": list(each.aspects), "rules": []} for each in simulation.questions),
            *(
                {"what": unknown, "aspects": sorted({aspect_of(rule) for rule in rules}), "rules": list(rules)}
                for unknown, rules in missing_things_with_rules(simulation.unknown)
            ),
        ],
    }


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    problem = finding.problem
    return {
        "rule": finding.rule.id,
        "path": finding.path,
        "message": problem.found_and_message if problem else finding.message,
        "fix": problem.fix if problem else "",
        **records.record_of_place(finding.place),
    }
