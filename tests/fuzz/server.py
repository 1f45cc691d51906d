"""Compares the values of random expressions with those of a live API server.

Each expression becomes a ValidatingAdmissionPolicy that always denies. Its messageExpression shows the value or the
error in a dry-run create of an object with the policy's label. When the policy is created, the server may refuse it or
drop the connection.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.fuzz.expressions import BINDINGS, Expressions
from tests.fuzz.live import BATCH, Question, Server, Told, server
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.types import DYN
from webhook.errors import CompileError, EvaluationError

KIND = "Fuzzed"
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
OBJECT = {name: value for name, value in BINDINGS.items() if name not in {"u", "t"}}
_NAME = re.compile(r"(?<![\w.'%\\])(self|n|s|xs|m|u|t)\b(?!')")
_WRITTEN = {"u": "dyn(3u)", "t": "dyn(duration('90s'))"}
_RESULT = re.compile("denied request: (.*)", re.DOTALL)
_REFUSAL = re.compile(r"compilation failed: (.*?)(?:, spec\.|\]$|$)", re.DOTALL)
ENVIRONMENT = Environment(version=(1, 36), variables={"object": DYN})


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an expression: `refused`, `crashed`, `failed` or `value`, and a text with details."""

    phase: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is sent to the API server for an expression: the validation, and the message that shows the value."""

    source: str
    validation: str
    message: str
    own: Answer


def over_an_object(text: str) -> str:
    return _NAME.sub(lambda match: _WRITTEN.get(match[1], f"object.spec.{match[1]}"), text)


def asked(text: str) -> Asked:
    """Return what is sent for an expression, with claimgate's own answer."""
    source = over_an_object(text)
    validation = f"[({source})].size() == 0"
    shown = f"'<' + '%s'.format([({source})]) + '>'"
    engine = compiled_engine()
    try:
        program = engine.compile(validation, ENVIRONMENT)
    except CompileError as error:
        return Asked(source, validation, "'<>'", Answer("refused", str(error)))
    if program.api_server_panics():
        return Asked(source, validation, "'<>'", Answer("crashed", program.api_server_panics()[0]))
    activation = {"object": {"spec": OBJECT, "metadata": {}}}
    try:
        program.evaluate(activation, CostMeter())
    except EvaluationError as error:
        return Asked(source, validation, "'<>'", Answer("failed", str(error)))
    try:
        value = engine.compile(shown, ENVIRONMENT).evaluate(activation, CostMeter())
    except (CompileError, EvaluationError):  # no message can show the value of an opaque type
        return Asked(source, validation, "'<>'", Answer("value", "<>"))
    return Asked(source, validation, shown, Answer("value", value))


def answers(remote: Server, batch: Sequence[Asked]) -> list[Answer]:
    denies = {"validationActions": ["Deny"]}
    rules = [[{"expression": each.validation, "messageExpression": each.message}] for each in batch]
    told = remote.answers(KIND, [Question({"validations": rule}, denies, OBJECT) for rule in rules])
    return [_answer(each) for each in told]


def _answer(told: Told) -> Answer:
    if told.phase == "refused":
        found = _REFUSAL.search(told.message)
        return Answer("refused", found[1] if found else told.message)
    if told.phase != "denied":
        return Answer(told.phase)
    found = _RESULT.search(told.message)
    text = found[1] if found else told.message
    _, error, reason = text.partition("resulted in error: ")
    return Answer("failed", reason) if error else Answer("value", text)


def difference(own: Answer, theirs: Answer) -> str:
    """Return `same …`, or `text of …` if only the words differ. Otherwise return the difference."""
    if own.phase != theirs.phase:
        return f"{theirs.phase} there, {own.phase} here"
    if own.phase == "crashed" or own.text == theirs.text:
        return f"same {own.phase}"
    # no message can have this value, for example because it has a line break
    if theirs.text.startswith("failed expression: "):
        return "value not shown"
    return "other value" if own.phase == "value" else f"text of {own.phase}"


def compare(count: int, seed: int, kubeconfig: str, shown: int = 3) -> Counter[str]:
    """Return the number of each result."""
    expressions, outcomes = Expressions(seed), Counter[str]()
    with server(kubeconfig) as remote:
        remote.serve(KIND, SCHEMA)
        for start in range(0, count, BATCH):
            batch = [asked(expressions.draw()) for _ in range(min(BATCH, count - start))]
            for each, theirs in zip(batch, answers(remote, batch), strict=True):
                kind = difference(each.own, theirs)
                outcomes[kind] += 1
                if not kind.startswith(("same", "value not")) and outcomes[kind] <= shown:
                    print(f"{kind}: {each.source}\n  there: {theirs.text}\n  here:  {each.own.text}")
    return outcomes
