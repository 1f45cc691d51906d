"""The language's own operators and functions: cel-go v0.26.0 common/stdlib/standard.go.

The checker reads the signatures of the logical operators, `? :`, `==`, `!=` and the index operators here. The compiler
generates their code, because these operators absorb errors or accept any type.

!true                                   // false
true && false                           // false
false || true                           // true
true ? 1 : 2                            // 1
1 == 1                                  // true
1 != 1                                  // false
1 < 2.5                                 // true
'a' < 'b'                               // true
dyn(1) < dyn('a')                       // error: no such overload
[1, 2][0]                               // 1
[1, 2][2]                               // error: index out of bounds: 2
{'a': 1}['a']                           // 1
{'a': 1}['b']                           // error: no such key: b
1 in [1, 2]                             // true
'a' in {'a': 1}                         // true
size('häh')                            // 3
[1, 2].size()                           // 2
size(dyn(1))                            // error: no such overload
'training'.contains('rain')             // true
'training'.startsWith('train')          // true
'training'.endsWith('ing')              // true
'training'.matches('^tr')                // true
'a'.startsWith(dyn(1))                  // error: no such overload
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from webhook.cel.equality import are_equal, are_equal_without_error, compare
from webhook.cel.library import arithmetic, conversions, costs, moments, regex
from webhook.cel.library.declaration import Cost, Overload
from webhook.cel.library.refusal import raise_no_such_overload
from webhook.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, A, B, Type, list_of, map_of
from webhook.cel.values import (
    ABSENT,
    MAPS,
    DictWithEmptyMaps,
    Map,
    fail_with_no_such_overload,
    map_find,
    refuse_unhashable,
    type_name,
)
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, NoSuchOverload
from webhook.yamltext.unread import refuse_unread_part

_NUMBERS = {"int64": INT, "uint64": UINT, "double": DOUBLE}


def less(left: Any, right: Any) -> bool:
    return _compare_or_refuse("_<_", left, right) < 0


def less_equals(left: Any, right: Any) -> bool:
    return _compare_or_refuse("_<=_", left, right) <= 0


def greater(left: Any, right: Any) -> bool:
    return _compare_or_refuse("_>_", left, right) > 0


def greater_equals(left: Any, right: Any) -> bool:
    return _compare_or_refuse("_>=_", left, right) >= 0


def _compare_or_refuse(name: str, left: Any, right: Any) -> int:
    try:
        return compare(left, right)
    except NoSuchOverload:
        raise_no_such_overload(name, left, right)


def negate(value: bool) -> bool:
    return not value


def contains_element(deadline: Deadline, value: Any, container: list[Any]) -> bool:
    """Return whether a list has an equal element."""
    return any(are_equal_without_error(value, item, deadline) for item in deadline.charge_for_items(container))


def contains_key(value: Any, container: dict[Any, Any]) -> bool:
    return map_find(container, value) is not ABSENT


def contains(deadline: Deadline, value: Any, container: Any) -> bool:
    kind = type(container)
    if kind is list:
        if type(value) is str:
            deadline.spend(len(container) // 8)
            return value in container
        return contains_element(deadline, value, container)
    if kind is dict or kind is DictWithEmptyMaps:
        return type(value) is str and value in container
    if kind is Map:
        return contains_key(value, container)
    if isinstance(container, dict) and hasattr(kind, "__missing__"):  # computed entries
        return type(value) is str and value in container
    return fail_with_no_such_overload()


def contains_or_panic_if_unhashable(deadline: Deadline, value: Any, container: Any) -> bool:
    """Return whether a map or list that the expression builds has a value.

    Raises:
        EvaluationPanic: the container is a map with entries, and the value cannot be a key of a map in Go.
    """
    if container and type(container) in MAPS:
        refuse_unhashable(value)
    return contains(deadline, value, container)


def element_at(container: Any, key: Any) -> Any:
    """Return container[key] for a list or a map."""
    kind = type(container)
    if kind is list:
        position = list_index(key)
        if 0 <= position < len(container):
            return container[position]
        raise EvaluationError(f"index out of bounds: {position}")
    if kind in MAPS:
        value_found = map_find(container, key)
        if value_found is not ABSENT:
            return value_found
    refuse_unread_part(container)
    raise EvaluationError(f"no such key: {conversions.format_key_for_message(key)}")


def list_index(key: Any) -> int:
    """Return a list index from a number of any class; a double must be whole (types.IndexOrError)."""
    kind = type(key)
    if kind is int or (kind is not bool and isinstance(key, int)):
        return int(key)
    if kind is float:
        if key == key // 1:
            return int(key)
        raise EvaluationError(f"unsupported index value {conversions.format_key_for_message(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def size_of_value(value: Any) -> int:
    """Return the number of characters, bytes, elements or entries of a value."""
    return len(value)


def text_contains(text: str, part: str) -> bool:
    return part in text


def _compare_cost(_: Any, left: Any, right: Any) -> int:
    return -(-min(costs.counted_size(left), costs.counted_size(right)) // 10)


def _contains_cost(_: Any, text: Any, part: Any) -> int:
    return costs.walk_cost(text) * costs.walk_cost(part)


def _in_list_cost(_: Any, __: Any, container: Any) -> int:
    return costs.counted_size(container)


def _comparison_overloads(name: str, words: str, implementation: Callable[[Any, Any], bool]) -> tuple[Overload, ...]:
    def comparison_overload(suffix: str, left: Type, right: Type, cost: Cost | None = None) -> Overload:
        return Overload(name, f"{words}_{suffix}", (left, right), BOOL, implementation, resolved_cost=cost)

    mixed = [
        comparison_overload(left if left == right else f"{left}_{right}", _NUMBERS[left], _NUMBERS[right])
        for left in _NUMBERS
        for right in _NUMBERS
    ]
    return (
        comparison_overload("bool", BOOL, BOOL),
        *mixed,
        comparison_overload("string", STRING, STRING, _compare_cost),
        comparison_overload("bytes", BYTES, BYTES, _compare_cost),
        comparison_overload("timestamp", TIMESTAMP, TIMESTAMP),
        comparison_overload("duration", DURATION, DURATION),
    )


def _text_overload(name: str, overload: str, implementation: Callable[[str, str], bool], cost: Cost) -> Overload:
    return Overload(name, overload, (STRING, STRING), BOOL, implementation, member=True, resolved_cost=cost)


def _fail_if_called(*_: Any) -> bool:
    raise AssertionError("the logical operators are compiled, not called")


_LIST, _MAP = list_of(A), map_of(A, B)

FUNCTIONS = (
    Overload("_?_:_", "conditional", (BOOL, A, A), A, _fail_if_called),
    Overload("_&&_", "logical_and", (BOOL, BOOL), BOOL, _fail_if_called),
    Overload("_||_", "logical_or", (BOOL, BOOL), BOOL, _fail_if_called),
    Overload("!_", "logical_not", (BOOL,), BOOL, negate),
    Overload("_==_", "equals", (A, A), BOOL, are_equal, cost=_compare_cost),
    Overload("_!=_", "not_equals", (A, A), BOOL, lambda left, right: not are_equal(left, right), cost=_compare_cost),
    *_comparison_overloads("_<_", "less", less),
    *_comparison_overloads("_<=_", "less_equals", less_equals),
    *_comparison_overloads("_>_", "greater", greater),
    *_comparison_overloads("_>=_", "greater_equals", greater_equals),
    *arithmetic.FUNCTIONS,
    Overload("_[_]", "index_list", (_LIST, INT), A, element_at),
    Overload("_[_]", "index_map", (_MAP, A), B, element_at),
    Overload("@in", "in_list", (A, _LIST), BOOL, contains_element, resolved_cost=_in_list_cost, metered=True),
    Overload("@in", "in_map", (A, _MAP), BOOL, contains_key),
    Overload("size", "size_bytes", (BYTES,), INT, size_of_value),
    Overload("size", "bytes_size", (BYTES,), INT, size_of_value, member=True),
    Overload("size", "size_list", (_LIST,), INT, size_of_value),
    Overload("size", "list_size", (_LIST,), INT, size_of_value, member=True),
    Overload("size", "size_map", (_MAP,), INT, size_of_value),
    Overload("size", "map_size", (_MAP,), INT, size_of_value, member=True),
    Overload("size", "size_string", (STRING,), INT, size_of_value),
    Overload("size", "string_size", (STRING,), INT, size_of_value, member=True),
    _text_overload("contains", "contains_string", text_contains, _contains_cost),
    _text_overload("endsWith", "ends_with_string", str.endswith, costs.walk_target_cost),
    _text_overload("startsWith", "starts_with_string", str.startswith, costs.walk_target_cost),
    Overload("matches", "matches", (STRING, STRING), BOOL, regex.matches, metered=True),
    Overload(
        "matches",
        "matches_string",
        (STRING, STRING),
        BOOL,
        regex.matches,
        member=True,
        resolved_cost=costs.pattern_match_cost,
        metered=True,
    ),
    *conversions.FUNCTIONS,
    *moments.FUNCTIONS,
)
