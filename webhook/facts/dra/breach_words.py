"""The messages about invalid values and rejected selectors in claims, classes and configurations.

A breach is an invalid value that webhook/schema/values.py or a check of this package found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from webhook.apimachinery.paths import path_as_text
from webhook.facts.dra.requests import CheckedSelector
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule
from webhook.schema.values import Breach, fault_of_name
from webhook.text.wording import counted, shown


class BreachWords(NamedTuple):
    """The message and the fix for a breach, and the invalid value for the message; "" to show no value."""

    message: str
    fix: str
    shown: str = ""


def message_and_fix(breach: Breach) -> BreachWords:
    """Return the message and the fix for a breach of the API server's validation."""
    return _WORDS[breach.what](breach)


def problem_of_breach(breach: Breach, rules: Mapping[str, Rule]) -> Problem:
    """Return the problem for a breach. `rules` maps each kind of breach to the rule that reports the breach."""
    message, fix, value = message_and_fix(breach)
    return rules[breach.what].problem(breach.at, message, fix, shown=value)


def problems_of_breaches(breaches: Iterable[Breach], rules: Mapping[str, Rule]) -> Iterator[Problem]:
    """Yield the problem for each breach. `rules` maps each kind of breach to the rule that reports the breach."""
    return (problem_of_breach(breach, rules) for breach in breaches)


def _shown_value(breach: Breach) -> str:
    return shown(breach.given) if breach.given != "" else ""


def _words_with_value(breach: Breach, message: str, fix: str) -> BreachWords:
    return BreachWords(message, fix, f"`{_shown_value(breach)}`")


def _fix_with_nearest(breach: Breach, otherwise: str = "") -> str:
    return f"write `{breach.nearest}` if that is meant" if breach.nearest else otherwise


def _words_for_wrong_type(breach: Breach) -> BreachWords:
    kind, _, examples = breach.expected.partition(" such as ")
    return _words_with_value(
        breach, f"must be {kind}", f"write a value such as {examples}" if examples else f"write {kind}"
    )


def _words_for_missing_field(breach: Breach) -> BreachWords:
    field = path_as_text(breach.at).rpartition(".")[2]
    message = f"must be set to {breach.expected}" if breach.expected else "must be set"
    return BreachWords(message, f"add the field {field}")


def _words_for_too_many(breach: Breach) -> BreachWords:
    more = breach.given - int(breach.expected)
    message = f"has {breach.given} entries, but at most {breach.expected} are allowed"
    return BreachWords(message, f"remove {counted(more, 'entry', 'entries')}")


def _words_for_too_long(breach: Breach) -> BreachWords:
    message = f"has {breach.given} bytes of JSON, but at most {breach.expected} are allowed"
    return BreachWords(message, "shorten the parameters")


def _words_for_duplicate(breach: Breach) -> BreachWords:
    return _words_with_value(breach, f"is also the entry at index {breach.expected}", "give every entry its own name")


def _words_for_bad_name(breach: Breach) -> BreachWords:
    if fault := fault_of_name(_shown_value(breach), breach.expected):
        return _words_with_value(breach, f"is not a valid name because {fault}", f"use {breach.expected}")
    return _words_with_value(breach, f"must be {breach.expected}", f"write {breach.expected}")


def _words_for_not_one_of(breach: Breach) -> BreachWords:
    return _words_with_value(breach, f"must be one of {breach.expected}", _fix_with_nearest(breach, "use one of these"))


def _words_for_forbidden_field(breach: Breach) -> BreachWords:
    return BreachWords(f"must not be set because {breach.expected}", "remove the field")


def _words_for_excluded_field(breach: Breach) -> BreachWords:
    fix = f"remove the field, or set {breach.expected}"
    return BreachWords(f"must not be set with {_shown_value(breach)}", fix)


def _words_for_unknown_field(breach: Breach) -> BreachWords:
    place = breach.expected  # the right path, relative to the parent of the field; or a fix in words; or ""
    target = path_as_text((*breach.at[:-1], *place.split(".")))
    move = (
        place if " " in place else f"move the field to {target}" if place else "remove the field, or correct its name"
    )
    return BreachWords("is ignored because this field does not exist", _fix_with_nearest(breach, move))


def _words_for_unknown_request(breach: Breach) -> BreachWords:
    fix = _fix_with_nearest(breach, "name a request, or an alternative as request/alternative")
    return _words_with_value(breach, "is not a request of this claim", fix)


def _words_for_bad_capacity_name(breach: Breach) -> BreachWords:
    message = f"cannot be the name of a capacity because {fault_of_name(_shown_value(breach), breach.expected)}"
    return _words_with_value(breach, message, "write the name of a capacity of the device")


_WORDS: Final[Mapping[str, Callable[[Breach], BreachWords]]] = {
    "wrongType": _words_for_wrong_type,
    "notQuantity": _words_for_wrong_type,
    "parameters": lambda breach: _words_with_value(breach, "must be an object", "write the parameters as an object"),
    "missing": _words_for_missing_field,
    "tooMany": _words_for_too_many,
    "tooLong": _words_for_too_long,
    "duplicate": _words_for_duplicate,
    "badName": _words_for_bad_name,
    "notOneOf": _words_for_not_one_of,
    "outOfRange": lambda breach: _words_with_value(breach, f"must be {breach.expected}", "set a number in this range"),
    "forbidden": _words_for_forbidden_field,
    "excluded": _words_for_excluded_field,
    "allocationMode": lambda breach: BreachWords("must be ExactCount or All", "set one of these", f"`{breach.given}`"),
    "noAttribute": lambda _: BreachWords("has no attribute", "set one of matchAttribute and distinctAttribute"),
    "unknownField": _words_for_unknown_field,
    "unknownRequest": _words_for_unknown_request,
    "noCapacity": _words_for_bad_capacity_name,
}


def describe_refusal(selector: CheckedSelector) -> tuple[str, str]:
    """Return the message and the fix for a selector that the API server always rejects."""
    return f"{_first_line(selector.errors.problem)}, so no device is ever selected", "correct the expression"


def describe_feature_gate(selector: CheckedSelector) -> tuple[str, str]:
    """Return the message and the fix for a selector that the API server rejects without a feature gate."""
    message = (
        "needs the feature gate DRAListTypeAttributes, which is off by default (claimgate cannot see the gate); "
        f'without the gate, the API server refuses the expression: it "{_first_line(selector.errors.gated)}"'
    )
    return message, "correct the expression, or ask the administrator of the cluster to turn the gate on"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
