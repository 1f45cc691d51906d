"""Declares problems in CEL: the structure `claimgate.Problem`, the type of a code, and the function `code`.

    problems.size() == 0
    problems.filter(p, p.code == code("pod-resources/limit-required"))

code(string) -> claimgate.Code
    The code of a rule. The argument must be a literal: the id of a rule in the catalogue of the policy's checks. So a
    misspelt id is an error when the policy is loaded. A code can only be compared with codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import ClassVar, Final, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.cel.library.declaration import Overload
from webhook.cel.types import STRING, Structure, Type, list_of, object_type, opaque_type
from webhook.errors import EvaluationError
from webhook.rules.actions import REPORTED, Action
from webhook.rules.problem import Problem

PROBLEMS: Final = "problems"
CODE: Final = opaque_type("claimgate.Code")
PROBLEM: Final = Structure(
    "claimgate.Problem",
    {"code": CODE, "path": STRING, "message": STRING, "fix": STRING, "found": STRING, "action": STRING},
)
_TEXTS: Final = ("path", "message", "fix", "found")
LIST_OF_PROBLEMS: Final = list_of(object_type(PROBLEM.name))


Listed: TypeAlias = tuple[Problem, Action]
"""A problem and its action."""
_REPORTED: Final[Mapping[str, Action]] = {action: action for action in REPORTED}


class RuleCode:
    """The id of a rule as a CEL value."""

    __slots__ = ("id",)
    cel_type: ClassVar[Type] = CODE

    def __init__(self, rule: str) -> None:
        self.id = rule

    def __eq__(self, other: object) -> bool:
        return type(other) is RuleCode and self.id == other.id

    def __hash__(self) -> int:
        return hash((RuleCode, self.id))

    def __str__(self) -> str:
        return self.id


def code_function(known: Collection[str]) -> Overload:
    """Return the CEL function `code` for some rules."""

    def code(rule: str) -> RuleCode:
        if rule not in known:
            close = get_close_matches(rule, known, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"expected one of {', '.join(known)}"
            raise EvaluationError(f"unknown rule `{rule}`: {hint}")
        return RuleCode(rule)

    return Overload("code", "claimgate_code", (STRING,), CODE, code, is_literal=True)


def problem_as_cel_value(problem: Problem, action: str) -> JSON:
    """Return a problem with its action as a CEL value."""
    return {
        "code": RuleCode(problem.code),
        "path": problem.path,
        "message": problem.message,
        "fix": problem.fix,
        "found": problem.found,
        "action": action,
    }


def problems_of_cel_value(values: Iterable[JSON], made: Iterable[Problem]) -> tuple[Listed, ...]:
    """Convert the value of an expression to problems. CEL sees only some fields of a problem, so the problems `made` by
    checks are looked up by these fields. Other problems were written in CEL.
    """
    by_fields = {(problem.code, *(getattr(problem, name) for name in _TEXTS)): problem for problem in made}
    return tuple(
        (
            by_fields.get((code := str(each["code"]), *(each[name] for name in _TEXTS)))
            or Problem(code=code, **{name: each[name] for name in _TEXTS}),
            _REPORTED.get(each["action"], "Deny"),
        )
        for each in values
    )
