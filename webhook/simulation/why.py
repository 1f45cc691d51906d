"""Explains why a job of a cluster does not run: with the statements of controllers, and the findings of rules about
its next start.

If Kueue or Volcano has created an object for the job, this object says whether the job waits for others. In this case,
findings about waiting for other jobs and questions about admission checks are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from msgspec import Struct

from webhook.apimachinery.attributes import plural_of_kind
from webhook.report.screen import Screen
from webhook.simulation.outcome import ANSWERS, WAITS, Answer, Simulation
from webhook.simulation.text import lines_of_aspects, lines_of_headline, simulation_as_json, titled_details
from webhook.status.explanation import STATES, Explanation, State
from webhook.status.statement import ObjectName, Statement
from webhook.text import terminal
from webhook.text.wording import counted

_SIGNS: Final[dict[State, str]] = {
    "failed": "fail",
    "stuck": "fail",
    "waits": "warn",
    "starting": "warn",
    "running": "pass",
    "done": "pass",
    "unknown": "skip",
}
_MARGIN: Final = " " * 8
_MOST_STATEMENTS: Final = 12


class Why(Struct, frozen=True, kw_only=True):
    """The answer about one job of a cluster.

    Args:
        explanation: the statements of controllers.
        next: the simulation of the job as if it were created now; None if the job runs or is done, or has no pods.
        source: the source of the object: `the cluster`, or a file.
    """

    explanation: Explanation
    next: Simulation | None
    source: str

    @property
    def headline(self) -> str:
        """Return the state of the job and its cause. If only rules say why the job does not run, the headline has the
        state alone.
        """
        is_silent = self.explanation.state == "unknown" and not self.explanation.statements
        if is_silent and self.next is not None and self.next.against:
            return STATES["unknown"]
        return self.explanation.headline

    @property
    def exit_code(self) -> int:
        """Return 0 if nothing must be fixed, 1 if something must be fixed, 3 if unknown."""
        state = self.explanation.state
        if state in ("running", "done"):
            return 0
        if state in ("failed", "stuck") or (self.next is not None and self.next.can_start is False):
            return 1
        is_open = state == "unknown" or (self.next is not None and self.next.answer == "unknown")
        return 3 if is_open or self.explanation.unknown else 0


def without_waiting(simulation: Simulation) -> Simulation:
    """Return the simulation without findings and questions about waiting for other jobs or for Kueue."""
    obstacles = {
        aspect: remaining
        for aspect, findings in simulation.against.items()
        if (remaining := tuple(each for each in findings if each.rule.id not in WAITS))
    }
    questions = tuple(each for each in simulation.questions if not each.is_wait)
    answer: Answer = simulation.answer
    if answer == "waits":
        answer = "nothing-found" if any(each.is_about_nodes_alone for each in questions) else "can-start"
    return replace(simulation, against=obstacles, questions=questions, answer=answer)


def why_as_text(why: Why, screen: Screen) -> str:
    """Return the state with the statements about the job, then the findings of rules about the next start, then the
    unknowns.
    """
    return "".join(f"{line}\n" for line in _lines(why, screen))


def _lines(why: Why, screen: Screen) -> Iterator[str]:
    explanation = why.explanation
    sign = _SIGNS[explanation.state]
    yield from lines_of_headline(sign, str(explanation.about), f" {why.headline}", screen)
    made_by = "".join(f", made by {each}" for each in explanation.made_by)
    yield from screen.wrapped(terminal.one_line(f"{why.source}{made_by}"), "  ")
    for number, statement in enumerate(explanation.statements[:_MOST_STATEMENTS]):
        yield ""
        yield from _statement(statement, "now" if number == 0 else "also", screen)
    if why.next is not None:
        yield ""
        yield from screen.wrapped(terminal.one_line(f"next, {_next_sentence(why.next)}"), "", "  ")
        yield from lines_of_aspects(why.next, screen)
    yield ""
    for title, text in _titled_lines(why):
        yield from screen.wrapped(terminal.one_line(f"{title}: {text}"), "", "  ")


def _statement(statement: Statement, label: str, screen: Screen) -> Iterator[str]:
    others_with_statement = f" and {counted(statement.alike, 'other')}" if statement.alike else ""
    text = terminal.one_line(f"{statement.about}{others_with_statement}: {statement.sentence}")
    first, *others = screen.wrapped(text, _MARGIN)
    yield f"  {label:<{len(_MARGIN) - 2}}{first.lstrip()}"
    yield from others
    if statement.words:
        yield from screen.wrapped(terminal.one_line(f"it says: {statement.words}"), _MARGIN, "  ")
    if statement.fix:
        first, *others = screen.wrapped(f"fix: {terminal.one_line(statement.fix)}", _MARGIN, "     ")
        yield first.replace("fix:", screen.styled("fix:", "green"), 1)
        yield from others


def _next_sentence(simulation: Simulation) -> str:
    job = simulation.about
    return f"if {job.kind} {job.name} were created now: {ANSWERS[simulation.answer]}"


def _titled_lines(why: Why) -> Iterator[tuple[str, str]]:
    explanation = why.explanation
    if explanation.made:
        created = ", ".join(f"{count} {_kind_in_plural(kind, count)}" for kind, count in explanation.made.items())
        count, ready = explanation.pods
        yield "created for it", f"{created}; {ready} of {counted(count, 'pod')} ready" if count else created
    if len(explanation.statements) > _MOST_STATEMENTS:
        yield "left out", f"{len(explanation.statements) - _MOST_STATEMENTS} more statements, which -o json has"
    for each in explanation.unknown:
        yield "not known", each
    if why.next is not None:
        yield from titled_details(why.next)


def _kind_in_plural(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}{plural_of_kind(kind)[len(kind) :]}"


def why_as_json(why: Why) -> dict[str, Any]:
    """Return plain JSON values: the answer of `simulate` about the job, and its current state in the cluster."""
    explanation = why.explanation
    simulated = simulation_as_json(why.next) if why.next is not None else {"answer": None, "unknown": []}
    unknown = [{"what": each, "aspects": [], "rules": []} for each in explanation.unknown]
    return {
        **simulated,
        "object": str(explanation.about),
        "file": why.source,
        "state": explanation.state,
        "headline": why.headline,
        "madeBy": [str(each) for each in explanation.made_by],
        "now": [_statement_as_json(each) for each in explanation.statements],
        "made": dict(explanation.made),
        "pods": dict(zip(("count", "ready"), explanation.pods, strict=True)),
        "unknown": [*unknown, *simulated["unknown"]],
    }


def _statement_as_json(statement: Statement) -> dict[str, Any]:
    return {
        "object": _object_as_json(statement.about),
        "alike": statement.alike,
        "standing": statement.standing,
        "says": statement.sentence,
        "words": statement.words,
        "fix": statement.fix,
    }


def _object_as_json(name: ObjectName) -> dict[str, str]:
    return {"kind": name.kind, "namespace": name.namespace, "name": name.name}
