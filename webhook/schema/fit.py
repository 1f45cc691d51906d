"""Whether a value is of its type already, as nearly all are: each type as one function, made once.

Quicker than decoding, since it keeps no paths. A null does not fit, but as an amount in a map: decoding has
to take it out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from itertools import chain
from typing import Final, TypeAlias

from webhook.attributes import JSON
from webhook.schema.types import Fields, Items, Scalar, Type

Spend: TypeAlias = Callable[[int], None]
"""Charges work that is about to be done (`Deadline.spend`)."""
Fit: TypeAlias = Callable[[JSON, Spend], bool]

_INT32: Final = range(-(1 << 31), 1 << 31)
_INT64: Final = range(-(1 << 63), 1 << 63)
_TEXT: Final = frozenset((str,))
_OBJECT: Final = frozenset((dict,))
_NONE: Final[frozenset[str]] = frozenset()
_MANY: Final = 4
"""Entries of a list from which on it is quicker to tell them together."""
_PLAIN: Final[Mapping[Scalar, frozenset[type]]] = {
    "text": _TEXT,
    "truth": frozenset((bool,)),
}
"""Scalars that the type of a value tells alone."""


@cache
def fit(of: Type) -> Fit:
    """Says whether a value is of a type."""
    if isinstance(of, Fields):
        return _map(of.others) if not of.fields and of.others else _object(of)
    return _list(of.item) if isinstance(of, Items) else _scalar(of)


def _scalar(of: Scalar) -> Fit:
    if of in _PLAIN:
        kinds = _PLAIN[of]
        return lambda value, _: type(value) in kinds
    if of in ("any", "quantity"):
        return lambda value, _: value is not None
    bounds = _INT32 if of == "int32" else _INT64
    if of == "intOrText":
        return lambda value, _: type(value) is str or (type(value) is int and value in bounds)
    return lambda value, _: type(value) is int and value in bounds


def _object(of: Fields) -> Fit:
    """An object; the most frequent fields, plain scalars, are told without a call.

    A short one is paid by the list or the type that holds it, which bounds how many there are.
    """
    plain = {name: _PLAIN[inner] for name, inner in of.fields.items() if isinstance(inner, str) and inner in _PLAIN}
    checks = {name: fit(inner) for name, inner in of.fields.items()}
    others = fit(of.others or "any")
    most = len(checks)

    def fits(value: JSON, spend: Spend) -> bool:
        if type(value) is not dict:
            return False
        if len(value) > most:
            spend(len(value))
        for name, held in value.items():
            if name in plain:
                if type(held) not in plain[name]:
                    return False
            elif not checks.get(name, others)(held, spend):
                return False
        return True

    return fits


def _texts(of: Type) -> frozenset[str]:
    """The fields of an object that are texts."""
    return frozenset(name for name, inner in of.fields.items() if inner == "text") if isinstance(of, Fields) else _NONE


def _map(of: Type) -> Fit:
    if of == "quantity":
        return lambda value, _: type(value) is dict
    if not isinstance(of, str) or of not in _PLAIN:
        return _entries(dict, dict.values, fit(of))
    kinds = _PLAIN[of]

    def fits(value: JSON, spend: Spend) -> bool:
        if type(value) is not dict:
            return False
        spend(len(value))
        return kinds.issuperset(map(type, value.values()))

    return fits


def _list(of: Type) -> Fit:
    if of == "text":
        return _texts_alone
    check, texts = fit(of), _texts(of)
    if not texts:
        return _entries(list, lambda value: value, check)

    def fits(value: JSON, spend: Spend) -> bool:
        """Objects of nothing but texts, such as variables, are told together and not one by one."""
        if type(value) is not list:
            return False
        spend(len(value))
        if len(value) < _MANY:
            return all(check(each, spend) for each in value)
        if not _OBJECT.issuperset(map(type, value)):
            return False
        plain = [each for each in value if texts.issuperset(each)]
        if not _TEXT.issuperset(map(type, chain.from_iterable(map(dict.values, plain)))):
            return False
        return len(plain) == len(value) or all(check(each, spend) for each in value if not texts.issuperset(each))

    return fits


def _texts_alone(value: JSON, spend: Spend) -> bool:
    if type(value) is not list:
        return False
    spend(len(value))
    return _TEXT.issuperset(map(type, value))


def _entries(container: type, entries: Callable[[JSON], Collection[JSON]], check: Fit) -> Fit:
    def fits(value: JSON, spend: Spend) -> bool:
        if type(value) is not container:
            return False
        held: Collection[JSON] = entries(value)
        spend(len(held))
        for each in held:  # noqa: SIM110 - a generator costs half as much again
            if not check(each, spend):
                return False
        return True

    return fits
