r"""'…'.format([…]): ext.Strings v2, since 1.29. Source: cel-go v0.26.0 ext/formatting.go.

string.format(list(dyn)) -> string
    Each `%` clause uses the next element. A literal text with a literal list is checked before the expression runs.

    %s  any text, number, bool, bytes, null, type, duration, timestamp, list or map
    %d  int or uint                 %b  int, uint or bool in binary
    %f  double, %.3f with three digits after the point; thousands are separated
    %e  double in scientific notation; in %.12e, 12 is the width
    %x  int, uint, text or bytes in hexadecimal, %X in upper case; %o  int or uint in octal
    %%  a percent sign

    'pod %s has %d containers'.format(['a', 2]) // 'pod a has 2 containers'
    '%s'.format([[1, 2]]) // '[1, 2]'
    '%s'.format([{'b': 1.5, 'a': 'x'}]) // '{"a":"x", "b":1.500000}'
    '%.2f'.format([1234.567]) // '1,234.57'
    '%e'.format([12345.678]) // '1.234568×10⁰⁴'
    '%x %X %b %o'.format([255, 'k', 5u, -8]) // 'ff 6B 101 -10'
    '100%%'.format([]) // '100%'
    '%d'.format(dyn(['x'])) // error: error during formatting: decimal clause can only be used on integers
    '%q'.format(dyn([1])) // error: could not parse formatting clause: unrecognized formatting clause "q"
    '%s'.format(dyn([])) // error: index 0 out of range
"""  # noqa: RUF002

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from webhook.cel.library import costs, go_text
from webhook.cel.library.conversions import bytes_to_string, format_key_for_message
from webhook.cel.library.declaration import Overload
from webhook.cel.types import LIST_DYN, STRING
from webhook.cel.values import MAPS, Duration, Timestamp, TypeValue, UInt, map_items, plain_double_text, type_name
from webhook.deadline import Deadline
from webhook.errors import EvaluationError

DEFAULT_PRECISION = 6
_DIGITS = re.compile("[0-9]*")
_CLAUSES = frozenset("sdfebxXo")
_SPECIAL_DOUBLES = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

REFUSALS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
"""The error of each clause for an argument of another type."""


class FormatClause(Struct, frozen=True):
    """One `%` clause: its lower-case letter, its precision or None, and whether the letter was `X`."""

    letter: str
    precision: int | None = None
    upper: bool = False


class FormatProblem(ValueError):
    """A format text is invalid or has more clauses than arguments."""


def split_into_clauses(text: str, count: int) -> Iterator[str | FormatClause]:
    """Yield the literal texts and the clauses of a format text with `count` arguments.

    Raises:
        FormatProblem: the next clause has no argument or is invalid.
    """
    place = used = 0
    while (start := text.find("%", place)) >= 0:
        yield text[place:start]
        if text.startswith("%%", start):
            yield "%"
            place = start + 2
            continue
        if used >= count:
            raise FormatProblem(f"index {used} out of range")
        if start + 1 == len(text):
            raise FormatProblem("unexpected end of string")
        clause, place = _parse_clause(text, start + 1)
        yield clause
        used += 1
    yield text[place:]


def _parse_clause(text: str, place: int) -> tuple[FormatClause, int]:
    precision, place = _parse_precision(text, place)
    letter = text[place]
    if letter not in _CLAUSES:
        shown = chr(letter.encode("utf-8", "replace")[0])  # Go reads one byte, not one character
        raise FormatProblem(f'could not parse formatting clause: unrecognized formatting clause "{shown}"')
    return FormatClause(letter.lower(), precision, letter == "X"), place + 1


def _parse_precision(text: str, place: int) -> tuple[int | None, int]:
    if text[place] != ".":
        return None, place
    end = _DIGITS.match(text, place + 1).end()  # type: ignore[union-attr]  # matches an empty text too
    prefix = "could not parse formatting clause: error while parsing precision: "
    if end == len(text):
        raise FormatProblem(f"{prefix}could not find end of precision specifier")
    digits = text[place + 1 : end]
    if not digits or len(digits.lstrip("0")) > 19 or int(digits) >= 2**63:
        reason = "value out of range" if digits else "invalid syntax"
        raise FormatProblem(
            f'{prefix}error while converting precision to integer: strconv.Atoi: parsing "{digits}": {reason}'
        )
    return int(digits), end


def format_string(deadline: Deadline, text: str, arguments: list[Any]) -> str:
    """Return the text with clauses replaced by arguments; surplus arguments are ignored."""
    values = iter(arguments)
    result: list[str] = []
    length = 0
    try:
        for part in split_into_clauses(text, len(arguments)):
            deadline.spend(2)
            piece = part if isinstance(part, str) else _WRITERS[part.letter](next(values), part, deadline)
            deadline.spend_text(piece)
            length += len(piece)
            costs.refuse_above_bound(length, costs.MAX_CHARACTERS)
            result.append(piece)
    except FormatProblem as problem:
        raise EvaluationError(str(problem)) from None
    return "".join(result)


def _refused_value_error(letter: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {REFUSALS[letter].format(type_name(value))}")


def _format_as_string(value: Any, _: FormatClause, deadline: Deadline) -> str:
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is list:
        return _format_list(value, deadline)
    if kind in MAPS and type_name(value) == "map":
        return _format_map(value, deadline)
    if kind in _SHOWN:
        return _value_as_string(value)
    raise _refused_value_error("s", value)


def _format_as_decimal(value: Any, _: FormatClause, __: Deadline) -> str:
    if type(value) not in _INTEGERS:
        raise _refused_value_error("d", value)
    return str(int(value))


def _double_to_format(value: Any, letter: str) -> float:
    if type(value) is float:
        return value
    if type(value) is not str or value not in _SPECIAL_DOUBLES:
        raise _refused_value_error(letter, value)
    return _SPECIAL_DOUBLES[value]


def _format_as_fixed(value: Any, clause: FormatClause, _: Deadline) -> str:
    precision = DEFAULT_PRECISION if clause.precision is None else clause.precision
    return go_text.fixed_notation(_double_to_format(value, "f"), precision)


def _format_as_scientific(value: Any, clause: FormatClause, _: Deadline) -> str:
    width = DEFAULT_PRECISION if clause.precision is None else clause.precision
    return go_text.scientific_notation(_double_to_format(value, "e"), width)


def _format_as_binary(value: Any, _: FormatClause, __: Deadline) -> str:
    if type(value) is not bool and type(value) not in _INTEGERS:
        raise _refused_value_error("b", value)
    return f"{int(value):b}"


def _format_as_hexadecimal(value: Any, clause: FormatClause, _: Deadline) -> str:
    kind = type(value)
    if kind in _INTEGERS:
        text = f"{int(value):x}"
    elif kind is bytes:
        text = value.hex()
    elif kind is str:
        text = value.encode("utf-8", "replace").hex()
    else:
        raise _refused_value_error("x", value)
    return text.upper() if clause.upper else text


def _format_as_octal(value: Any, _: FormatClause, __: Deadline) -> str:
    if type(value) not in _INTEGERS:
        raise _refused_value_error("o", value)
    return f"{int(value):o}"


_INTEGERS = frozenset((int, UInt))
_SHOWN = frozenset((int, UInt, float, bool, bytes, type(None), Timestamp, Duration, TypeValue))
_WRITERS: dict[str, Callable[[Any, FormatClause, Deadline], str]] = {
    "s": _format_as_string,
    "d": _format_as_decimal,
    "f": _format_as_fixed,
    "e": _format_as_scientific,
    "b": _format_as_binary,
    "x": _format_as_hexadecimal,
    "o": _format_as_octal,
}


# ---- values inside lists and maps are written as CEL literals


def _value_as_string(value: Any) -> str:
    # as string() of CEL
    if value is None:
        return "null"
    try:
        return bytes_to_string(value) if type(value) is bytes else format_key_for_message(value)
    except EvaluationError as error:
        raise EvaluationError(
            f"error during formatting: could not convert argument {go_text.quote_as_go(str(error))} to string"
        ) from None


def _format_list(values: list[Any], deadline: Deadline) -> str:
    return f"[{', '.join([_format_element(each, deadline) for each in deadline.charge_for_items(values)])}]"


def _format_map(value: dict[Any, Any], deadline: Deadline) -> str:
    entries = [
        (_format_map_key(key, deadline), _format_element(item, deadline))
        for key, item in deadline.items_with_clock_checks(map_items(value))
    ]
    entries.sort(key=lambda entry: entry[0])
    return f"{{{', '.join(f'{key}:{item}' for key, item in entries)}}}"


def _format_map_key(key: Any, deadline: Deadline) -> str:
    if type(key) not in (str, bool, int, UInt):
        raise EvaluationError(f"error during formatting: no formatting function for map key of type {type_name(key)}")
    return _format_element(key, deadline)


def _format_element(value: Any, deadline: Deadline) -> str:
    kind = type(value)
    if kind is str:
        return go_text.quote_as_go(value, deadline)
    if kind is list:
        return _format_list(value, deadline)
    if kind in MAPS and type_name(value) == "map":
        return _format_map(value, deadline)
    if kind is float:
        return f"{value:.6f}" if value - value == 0 else f'"{plain_double_text(value)}"'
    if kind not in _SHOWN:
        raise EvaluationError(f"error during formatting: no formatting function for {type_name(value)}")
    text = _value_as_string(value)
    if kind is bytes:
        return f"b{go_text.quote_as_go(text)}"
    if kind is Timestamp or kind is Duration:
        return f"{'timestamp' if kind is Timestamp else 'duration'}({go_text.quote_as_go(text)})"
    return text


FUNCTIONS = (
    Overload(
        "format",
        "string_format",
        (STRING, LIST_DYN),
        STRING,
        format_string,
        member=True,
        since=(1, 29),
        cost=costs.walk_target_cost,
        metered=True,
    ),
)
