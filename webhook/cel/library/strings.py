r"""String functions: ext.Strings v2. `format` is in format_string.py.

Source: cel-go v0.26.0 ext/strings.go, and v0.22.0 and v0.29, which differ for some functions. A place is the number of
characters before it.

string.charAt(int) -> string

    'tacocat'.charAt(3) // 'o'
    'abc'.charAt(3) // ''
    'abc'.charAt(4) // error: index out of range: 4

string.indexOf(string) -> int
    The place of the first occurrence, -1 if there is none.

    'hello mellow'.indexOf('ello') // 1
    'hello'.indexOf('') // 0
    'hello'.indexOf('jello') // -1
    'a'.indexOf(dyn(1)) // error: no such overload

string.indexOf(string, int) -> int
    The first occurrence at or after a place. Before 1.32, a place after the end of the text is an error.

    'hello mellow'.indexOf('ello', 2) // 7
    'hello'.indexOf('o', 20) // -1
    'hello'.indexOf('o', -1) // error: index out of range: -1

string.lastIndexOf(string) -> int
    The place of the last occurrence, -1 if there is none.

    'hello mellow'.lastIndexOf('ello') // 7
    'hello'.lastIndexOf('') // 5
    'hello'.lastIndexOf('hello mellow') // -1
    'a'.lastIndexOf(dyn(1)) // error: no such overload

string.lastIndexOf(string, int) -> int
    The last occurrence that begins at or before a place.

    'hello mellow'.lastIndexOf('ello', 6) // 1
    'hello mellow'.lastIndexOf('ello', 20) // -1
    'hello'.lastIndexOf('h', -1) // error: index out of range: -1

list(string).join() -> string

    ['a', 'b'].join() // 'ab'
    [].join() // ''
    (dyn(['a']) + dyn([1])).join() // error: join: invalid input: 1

list(string).join(string) -> string

    ['a', 'b'].join(', ') // 'a, b'
    ['a'].join('-') // 'a'
    dyn([1]).join('-') // error: no such overload

string.lowerAscii() -> string
    ASCII letters only.

    'TacoCÆt'.lowerAscii() // 'tacocÆt'
    dyn(1).lowerAscii() // error: no such overload

string.upperAscii() -> string
    ASCII letters only.

    'TacoCæt'.upperAscii() // 'TACOCæT'
    dyn(1).upperAscii() // error: no such overload

string.replace(string, string) -> string

    'hello hello'.replace('he', 'we') // 'wello wello'
    'ab'.replace('', '-') // '-a-b-'
    'a'.replace('a', dyn(1)) // error: no such overload

string.replace(string, string, int) -> string
    At most this number of times; a negative number means every time.

    'hello hello'.replace('he', 'we', 1) // 'wello hello'
    'hello hello'.replace('he', 'we', -1) // 'wello wello'
    'a'.replace('a', 'b', dyn('1')) // error: no such overload

string.split(string) -> list(string)

    'a,b,c'.split(',') // ['a', 'b', 'c']
    'abc'.split('') // ['a', 'b', 'c']
    ''.split(',') // ['']
    'a'.split(dyn(1)) // error: no such overload

string.split(string, int) -> list(string)
    Into at most this number of parts. With a negative number there is no limit, and with 0 the list is empty.

    'a,b,c'.split(',', 2) // ['a', 'b,c']
    'a,b,c'.split(',', 0) // []
    'a,b,c'.split(',', -1) // ['a', 'b', 'c']
    'a'.split(',', dyn('1')) // error: no such overload

string.substring(int) -> string
    The text from a place to the end.

    'tacocat'.substring(4) // 'cat'
    'abc'.substring(3) // ''
    'abc'.substring(4) // error: index out of range: 4

string.substring(int, int) -> string
    The text from the first place up to the second, which is not included.

    'tacocat'.substring(0, 4) // 'taco'
    'abc'.substring(2, 1) // error: invalid substring range. start: 2, end: 1
    'abc'.substring(0, 9) // error: index out of range: 9

string.trim() -> string
    The text without white space at both ends, as Unicode defines it.

    '  \n abc \t'.trim() // 'abc'
    dyn(1).trim() // error: no such overload

strings.quote(string) -> string
    The text in double quotes, with special characters escaped.

    strings.quote('say "hi"') // '"say \\"hi\\""'
    strings.quote('a\nb') // '"a\\nb"'
    strings.quote(dyn(1)) // error: no such overload
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from webhook.cel.library import costs, lists
from webhook.cel.library.declaration import Cost, Overload, Version
from webhook.cel.library.go_text import ESCAPES
from webhook.cel.types import INT, STRING, Type, list_of
from webhook.cel.values import plain_double_text, type_name
from webhook.deadline import STEP, Deadline
from webhook.errors import EvaluationError, NoSuchOverload

_QUOTED = str.maketrans({**ESCAPES, **{chr(code): "\ufffd" for code in range(0xD800, 0xE000)}})
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""Go's unicode.IsSpace. Python's strip() also removes the separators U+001C to U+001F."""


def _out_of_range_error(place: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {place}")


def char_at(text: str, place: int) -> str:
    """Return the character at an index, '' at the end of the text."""
    if not 0 <= place <= len(text):
        raise _out_of_range_error(place)
    return text[place : place + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """Return the index of the first occurrence from `start` on, or -1; since 1.32."""
    if not part:
        return start
    if start < 0:
        raise _out_of_range_error(start)
    return text.find(part, start)


def index_of_strict(text: str, part: str, start: int = 0) -> int:
    """As index_of, but fail for a start outside the text, even for ''.indexOf('a'); before 1.32."""
    if part and not 0 <= start < len(text):
        raise _out_of_range_error(start)
    return index_of(text, part, start)


def index_of_clamped(text: str, part: str, start: int = 0) -> int:
    """As index_of, but find the empty part only inside the text or at its end; since 1.37."""
    if start < 0:
        raise _out_of_range_error(start)
    return index_of(text, part, start) if part else min(start, len(text))


def last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def last_index_of_strict(text: str, part: str) -> int:
    """As last_index_of, but fail for an empty text with a part that is not empty; before 1.34."""
    if not text and part:
        raise _out_of_range_error(-1)
    return text.rfind(part)


def last_index_from(text: str, part: str, last: int) -> int:
    """Return the index of the last occurrence that starts at or before `last`, or -1; since 1.32."""
    if not part:
        return last
    if last < 0:
        raise _out_of_range_error(last)
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


def last_index_from_strict(text: str, part: str, last: int) -> int:
    """As last_index_from, but fail for a `last` outside the text; before 1.32."""
    if part and not 0 <= last < len(text):
        raise _out_of_range_error(last)
    return last_index_from(text, part, last)


def last_index_from_clamped(text: str, part: str, last: int) -> int:
    """As last_index_from, but find the empty part only inside the text or at its end; since 1.37."""
    if last < 0:
        raise _out_of_range_error(last)
    return last_index_from(text, part, last) if part else min(last, len(text))


def join(deadline: Deadline, parts: list[Any], separator: str = "") -> str:
    if parts and type(parts[0]) is not str:
        raise NoSuchOverload
    for part in deadline.charge_for_items(parts):
        if type(part) is not str:
            raise EvaluationError(f"join: invalid input: {_element_as_text(part)}")
    length = sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0)
    costs.refuse_above_bound(length, costs.MAX_CHARACTERS)
    return separator.join(parts)


def _element_as_text(value: Any) -> str:
    kind = type(value)
    if kind is float:
        return plain_double_text(value)
    return str(value) if kind is int else type_name(value)


def lower_ascii(text: str) -> str:
    return text.lower() if text.isascii() else _change_ascii_letters(text, bytes.lower)


def upper_ascii(text: str) -> str:
    return text.upper() if text.isascii() else _change_ascii_letters(text, bytes.upper)


def _change_ascii_letters(text: str, change: Callable[[bytes], bytes]) -> str:
    # in UTF-8, no byte of another character is an ASCII letter
    return change(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def replace(deadline: Deadline, text: str, old: str, new: str, limit: int = -1) -> str:
    """Return the text with the first `limit` occurrences replaced. A negative limit replaces all."""
    deadline.spend_text(text)
    count = text.count(old)
    times = count if limit < 0 else min(limit, count)
    if len(new) > len(old):
        costs.refuse_above_bound(len(text) + (len(new) - len(old)) * times, costs.MAX_CHARACTERS)
    if times == count:
        return _replace_in_pieces(deadline, text, old, new)
    deadline.spend(times)
    return text.replace(old, new, times)


def split(deadline: Deadline, text: str, separator: str, limit: int = -1) -> list[str]:
    """Return the parts between separators, at most `limit` parts. A negative limit returns all parts."""
    return lists.record_string_list(_split_parts(deadline, text, separator, limit) if limit else [])


def _split_parts(deadline: Deadline, text: str, separator: str, limit: int) -> list[str]:
    deadline.spend_text(text)
    if 0 < limit <= (text.count(separator) if separator else len(text) - 1):
        deadline.spend(limit)
        return text.split(separator, limit - 1) if separator else [*text[: limit - 1], text[limit - 1 :]]
    return _split_in_pieces(deadline, text, separator) if separator else _split_into_characters(deadline, text)


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range_error(start)
    return text[start:]


def substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for place in (start, end):
        if not 0 <= place <= len(text):
            raise _out_of_range_error(place)
    return text[start:end]


def trim(text: str) -> str:
    """Return the text without white space at its ends."""
    return text.strip(_SPACE)


def quote(deadline: Deadline, text: str) -> str:
    """Return the text in double quotes with special characters escaped."""
    return f'"{"".join(piece.translate(_QUOTED) for piece in deadline.pieces(text))}"'


# ---- long texts piece by piece

# Python's split() and replace() take up to 0.1 s for a few megabytes. So a long text is cut at some occurrences of the
# separator, and the clock is read between the pieces. A separator that can overlap itself, such as `aa`, cuts no text.


_LONG: Final = 20_000
"""Characters that one call of split() or replace() handles in less than a millisecond."""
_CHARACTERS: Final = _LONG // STEP
"""Characters that split() handles in one unit of work."""


def _split_in_pieces(deadline: Deadline, text: str, part: str) -> list[str]:
    # as str.split; the part must not be empty
    if len(text) <= _LONG or _may_overlap_itself(part):
        deadline.spend(len(text) // _CHARACTERS)
        return text.split(part)
    return [each for piece in _text_pieces(deadline, text, part) for each in piece.split(part)]


def _split_into_characters(deadline: Deadline, text: str) -> list[str]:
    texts: list[str] = []
    for start in range(0, len(text), _LONG):
        deadline.spend(min(_LONG, len(text) - start) // _CHARACTERS)
        texts += text[start : start + _LONG]
    return texts


def _replace_in_pieces(deadline: Deadline, text: str, old: str, new: str) -> str:
    # as str.replace
    if len(text) <= _LONG or not old or _may_overlap_itself(old):
        deadline.spend(len(text) // _CHARACTERS)
        return text.replace(old, new)
    return new.join([piece.replace(old, new) for piece in _text_pieces(deadline, text, old)])


def _may_overlap_itself(part: str) -> bool:
    # for a long part, True without a test: a long part cannot occur often
    return len(part) > STEP or any(part.startswith(part[place:]) for place in range(1, len(part)))


def _text_pieces(deadline: Deadline, text: str, part: str) -> Iterator[str]:
    # `part` is between the pieces; every piece except the last has at least _LONG characters
    start = 0
    while start >= 0:
        deadline.spend(STEP + 1)
        end = text.find(part, start + _LONG)
        yield text[start:end] if end >= 0 else text[start:]
        start = end + len(part) if end >= 0 else -1


# ---- signatures


def _method_overload(
    name: str,
    suffix: str,
    implementation: Callable[..., Any],
    *more: Type,
    result: Type = STRING,
    cost: Cost | None = None,
    since: Version = (1, 0),
    until: Version | None = None,
    metered: bool = False,
) -> Overload:
    return Overload(
        name,
        f"string_{suffix}",
        (STRING, *more),
        result,
        implementation,
        member=True,
        cost=cost,
        since=since,
        until=until,
        metered=metered,
    )


def _search_overloads(
    name: str, suffix: str, by_version: tuple[tuple[Callable[..., int], Version, Version | None], ...]
) -> list[Overload]:
    # one overload for each range of versions
    more = (STRING, INT) if suffix.endswith("_int") else (STRING,)
    return [
        _method_overload(
            name, suffix, implementation, *more, result=INT, cost=costs.traverse_target_cost, since=since, until=until
        )
        for implementation, since, until in by_version
    ]


def _rewriting_overload(
    name: str, suffix: str, implementation: Callable[..., Any], *more: Type, result: Type = STRING
) -> Overload:
    # the overload of a function that reads and writes the whole text
    return _method_overload(
        name, suffix, implementation, *more, result=result, cost=costs.walk_target_twice_cost, metered=True
    )


def _twice_result_cost(result: Any, *_: Any) -> int:
    return costs.walk_cost(result, 2 * costs.STRING)


_STRINGS = list_of(STRING)

FUNCTIONS = (
    _method_overload("charAt", "char_at_int", char_at, INT),
    *_search_overloads("indexOf", "index_of_string", ((index_of_strict, (1, 0), (1, 32)), (index_of, (1, 32), None))),
    *_search_overloads(
        "indexOf",
        "index_of_string_int",
        ((index_of_strict, (1, 0), (1, 32)), (index_of, (1, 32), (1, 37)), (index_of_clamped, (1, 37), None)),
    ),
    *_search_overloads(
        "lastIndexOf",
        "last_index_of_string",
        ((last_index_of_strict, (1, 0), (1, 34)), (last_index_of, (1, 34), None)),
    ),
    *_search_overloads(
        "lastIndexOf",
        "last_index_of_string_int",
        (
            (last_index_from_strict, (1, 0), (1, 32)),
            (last_index_from, (1, 32), (1, 37)),
            (last_index_from_clamped, (1, 37), None),
        ),
    ),
    Overload("join", "list_join", (_STRINGS,), STRING, join, member=True, cost=_twice_result_cost, metered=True),
    Overload(
        "join", "list_join_string", (_STRINGS, STRING), STRING, join, member=True, cost=_twice_result_cost, metered=True
    ),
    _method_overload("lowerAscii", "lower_ascii", lower_ascii, cost=costs.walk_target_cost),
    _method_overload("upperAscii", "upper_ascii", upper_ascii, cost=costs.walk_target_cost),
    _rewriting_overload("replace", "replace_string_string", replace, STRING, STRING),
    _rewriting_overload("replace", "replace_string_string_int", replace, STRING, STRING, INT),
    _rewriting_overload("split", "split_string", split, STRING, result=_STRINGS),
    _rewriting_overload("split", "split_string_int", split, STRING, INT, result=_STRINGS),
    _method_overload("substring", "substring_int", substring, INT, cost=costs.walk_target_cost),
    _method_overload("substring", "substring_int_int", substring_between, INT, INT, cost=costs.walk_target_cost),
    _method_overload("trim", "trim", trim, cost=costs.walk_target_cost),
    Overload(
        "strings.quote",
        "strings_quote",
        (STRING,),
        STRING,
        quote,
        since=(1, 29),
        cost=costs.walk_target_cost,
        metered=True,
    ),
)
