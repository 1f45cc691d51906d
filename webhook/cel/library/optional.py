"""Functions of optional values: cel-go's optional library, since 1.28; first, last and unwrap since 1.33.

Sources: cel-go v0.26.0 cel/library.go and common/types/optional.go, v0.28.0 for `or` on a value that is not optional.
The language has the syntax `a.?b`, `a[?k]`, `{?k: v}`, `[?e]` and the macros optMap and optFlatMap. The compiler
generates the code of `or` and `orValue`, because both functions evaluate their argument only if the optional is absent.

optional.of(T) -> optional_type(T)

    optional.of(1).value() // 1
    optional.of(1 / 0) // error: division by zero

optional.ofNonZeroValue(T) -> optional_type(T)
    Absent for zero, false, null, and an empty text, list or map.

    optional.ofNonZeroValue('') // optional.none()
    optional.ofNonZeroValue('a') // optional.of('a')
    optional.ofNonZeroValue(1 / 0) // error: division by zero

optional.none() -> optional_type(T)

    optional.none().hasValue() // false
    optional.none().value() // error: optional.none() dereference

optional_type(T).hasValue() -> bool

    optional.of(null).hasValue() // true
    dyn(1).hasValue() // error: no such overload

optional_type(T).value() -> T

    optional.of([1]).value() // [1]
    {'a': 1}.?b.value() // error: optional.none() dereference

optional_type(T).or(optional_type(T)) -> optional_type(T)
    The first optional that has a value. Up to 1.36 a value that is not optional is returned unchanged.

    optional.none().or(optional.of(2)).value() // 2
    optional.of(1).or(optional.of(1 / 0)).value() // 1
    optional.none().or(optional.of(1 / 0)) // error: division by zero

optional_type(T).orValue(T) -> T
    The value of the optional, otherwise the argument. Up to 1.36 a value that is not optional is returned unchanged.

    {'a': 1}.?b.orValue(7) // 7
    {'a': 1}.?a.orValue(1 / 0) // 1
    optional.none().orValue(1 / 0) // error: division by zero

list(T).first() -> optional_type(T)

    [1, 2].first().value() // 1
    [].first().hasValue() // false
    dyn({}).first() // error: no such overload

list(T).last() -> optional_type(T)

    [1, 2].last().value() // 2
    [].last() // optional.none()
    dyn('ab').last() // error: no such overload

optional.unwrap(list(optional_type(T))) -> list(T)
    The values of the optionals that have a value.

    optional.unwrap([optional.of(1), optional.none(), optional.of(3)]) // [1, 3]
    optional.unwrap(dyn([1])) // error: no such overload

list(optional_type(T)).unwrapOpt() -> list(T)
    optional.unwrap as a member function.

    [optional.of(1), optional.none()].unwrapOpt() // [1]
    dyn([1]).unwrapOpt() // error: no such overload

list(T)[?int] -> optional_type(T)
map(K, V)[?K] -> optional_type(V)
    The element, if there is one. The operand may be an optional list or map.

    [1, 2][?0].value() // 1
    [1, 2][?5].hasValue() // false
    {'a': 1}[?'b'].orValue(7) // 7
    {'a': {'b': 1}}[?'a'][?'b'].value() // 1
    {'a': {'b': 1}}[?'a']['b'].value() // 1
    dyn([1])[?'a'] // error: unsupported index type 'string' in list
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload, Version
from webhook.cel.library.optional_value import NONE, Optional, is_zero, look_up_optional
from webhook.cel.library.runtime import value_at_key
from webhook.cel.types import BOOL, INT, A, B, Type, list_of, map_of, optional_of
from webhook.cel.values import ABSENT, TypeValue, type_name
from webhook.deadline import Deadline
from webhook.errors import EvaluationError, NoSuchOverload

_OPTIONAL = optional_of(A)
_GO_TYPES: Final = {
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "kubernetes.URL": "*url.URL",
    "net.CIDR": "netip.Prefix",
    "net.IP": "netip.Addr",
}


def convert_branch_value_as_go(value: Any) -> Any:
    """Return the value of an optional that `? :`, optMap or optFlatMap returns, converted to Go and back.

    cel-go converts the value because cel-go treats the branch as a path without steps. An inner optional becomes its
    value, and a type becomes its name (cel-go v0.26.0 interpreter/attributes.go relativeAttribute.Resolve,
    applyQualifiers).

    Raises:
        EvaluationError: an opaque value cannot be converted back.
    """
    kind = type(value)
    if value is ABSENT:
        return value
    if kind is Optional:
        return convert_branch_value_as_go(value.value) if value.present else None
    if kind is TypeValue:
        return value.name
    native = _GO_TYPES.get(type_name(value))
    if native is not None:
        raise EvaluationError(f"unsupported conversion to ref.Val: ({native}){value}")
    return value


def convert_branch_optional_as_go(value: Any) -> Any:
    """Return an optional with its value converted by convert_branch_value_as_go; other values unchanged."""
    return Optional(convert_branch_value_as_go(value.value)) if type(value) is Optional and value.present else value


def of_non_zero_value(value: Any) -> Optional:
    """Return an optional of the value; optional.none() for a zero or empty value."""
    return NONE if is_zero(value) else Optional(value)


def empty_optional() -> Optional:
    return NONE


def value_of(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def or_else(optional: Any, other: Any) -> Any:
    """Return `other` if the first argument is an optional without a value, otherwise the first argument."""
    return other if type(optional) is Optional and not optional.present else optional


def or_value(optional: Any, other: Any) -> Any:
    """Return the value of an optional, or `other` if the optional has no value. Other values are returned unchanged."""
    if type(optional) is not Optional:
        return optional
    return optional.value if optional.present else other


def or_else_strict(optional: Any, other: Any) -> Any:
    """As or_else, but fail if the first argument is not optional; since 1.37."""
    if type(optional) is not Optional:
        raise NoSuchOverload
    return or_else(optional, other)


def or_value_strict(optional: Any, other: Any) -> Any:
    """As or_value, but fail if the first argument is not optional; since 1.37."""
    if type(optional) is not Optional:
        raise NoSuchOverload
    return or_value(optional, other)


def first_element(values: list[Any]) -> Optional:
    return Optional(values[0]) if values else NONE


def last_element(values: list[Any]) -> Optional:
    return Optional(values[-1]) if values else NONE


def present_values(deadline: Deadline, optionals: list[Any]) -> list[Any]:
    if optionals and type(optionals[0]) is not Optional:
        raise NoSuchOverload
    for item in deadline.charge_for_items(optionals):
        if type(item) is not Optional:
            shown = item if type(item) in (int, str) else type_name(item)
            raise EvaluationError(f"value {shown} is not optional")
    return [item.value for item in deadline.charge_for_items(optionals) if item.present]


def _method_overload(
    name: str,
    id_: str,
    types: tuple[tuple[Type, ...], Type],
    implementation: Callable[..., Any],
    *,
    since: Version = (1, 28),
    until: Version | None = None,
) -> Overload:
    cost = costs.cost_zero if name.startswith("or") else None
    return Overload(
        name,
        id_,
        *types,
        implementation,
        member=True,
        since=since,
        until=until,
        cost=cost,
        metered=implementation is present_values,
    )


_LIST = list_of(A)
_OPTIONALS = list_of(_OPTIONAL)

FUNCTIONS = (
    Overload("optional.of", "optional_of", (A,), _OPTIONAL, Optional, since=(1, 28)),
    Overload("optional.ofNonZeroValue", "optional_ofNonZeroValue", (A,), _OPTIONAL, of_non_zero_value, since=(1, 28)),
    Overload("optional.none", "optional_none", (), _OPTIONAL, empty_optional, since=(1, 28)),
    _method_overload("value", "optional_value", ((_OPTIONAL,), A), value_of),
    _method_overload("hasValue", "optional_hasValue", ((_OPTIONAL,), BOOL), lambda optional: optional.present),
    _method_overload("or", "optional_or_optional", ((_OPTIONAL, _OPTIONAL), _OPTIONAL), or_else, until=(1, 37)),
    _method_overload("or", "optional_or_optional", ((_OPTIONAL, _OPTIONAL), _OPTIONAL), or_else_strict, since=(1, 37)),
    _method_overload("orValue", "optional_orValue_value", ((_OPTIONAL, A), A), or_value, until=(1, 37)),
    _method_overload("orValue", "optional_orValue_value", ((_OPTIONAL, A), A), or_value_strict, since=(1, 37)),
    _method_overload("first", "list_first", ((_LIST,), _OPTIONAL), first_element, since=(1, 33)),
    _method_overload("last", "list_last", ((_LIST,), _OPTIONAL), last_element, since=(1, 33)),
    Overload("optional.unwrap", "optional_unwrap", (_OPTIONALS,), _LIST, present_values, since=(1, 33), metered=True),
    _method_overload("unwrapOpt", "optional_unwrapOpt", ((_OPTIONALS,), _LIST), present_values, since=(1, 33)),
)


_MAP = map_of(A, B)

INDEX_FUNCTIONS = (
    Overload("_[?_]", "list_optindex_optional_int", (_LIST, INT), optional_of(A), look_up_optional, since=(1, 28)),
    Overload(
        "_[?_]",
        "optional_list_optindex_optional_int",
        (optional_of(_LIST), INT),
        optional_of(A),
        look_up_optional,
        since=(1, 28),
    ),
    Overload("_[?_]", "map_optindex_optional_value", (_MAP, A), optional_of(B), look_up_optional, since=(1, 28)),
    Overload(
        "_[?_]",
        "optional_map_optindex_optional_value",
        (optional_of(_MAP), A),
        optional_of(B),
        look_up_optional,
        since=(1, 28),
    ),
    Overload("_[_]", "optional_list_index_int", (optional_of(_LIST), INT), optional_of(A), value_at_key, since=(1, 28)),
    Overload("_[_]", "optional_map_index_value", (optional_of(_MAP), A), optional_of(B), value_at_key, since=(1, 28)),
)
"""The signatures of `a[?k]`, and of `a[k]` for an optional list or map. The compiler generates their code."""
