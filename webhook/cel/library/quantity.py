"""Resource quantities: kubernetes.quantity, since 1.28.

Sources: k8s.io/apiserver v0.36.1 pkg/cel/library/quantity.go and pkg/cel/quantity.go.
webhook/apimachinery/quantity.py has the arithmetic.

quantity(string) -> kubernetes.Quantity
    Reads a quantity. A JSON number is not a quantity: write quantity(string(x)).

    quantity('1.5Gi') == quantity('1536Mi') // true
    quantity('1000m') == quantity('1') // true
    quantity('10 Gi') // error: quantities must match the regular expression '^([+-]?[0-9.]+)

isQuantity(string) -> bool

    isQuantity('1.3G') // true
    isQuantity('10M i') // false
    isQuantity(dyn(1)) // error: no such overload

sign(kubernetes.Quantity) -> int
    -1, 0 or 1; a function, not a member.

    sign(quantity('-5')) // -1
    sign(quantity('0')) // 0
    sign(dyn('5')) // error: no such overload

kubernetes.Quantity.isGreaterThan(kubernetes.Quantity) -> bool

    quantity('200M').isGreaterThan(quantity('0.1G')) // true
    quantity('1').isGreaterThan(quantity('1')) // false
    quantity('1').isGreaterThan(dyn(1)) // error: no such overload

kubernetes.Quantity.isLessThan(kubernetes.Quantity) -> bool

    quantity('50M').isLessThan(quantity('100M')) // true
    quantity('1').isLessThan(dyn(1)) // error: no such overload

kubernetes.Quantity.compareTo(kubernetes.Quantity) -> int
    -1, 0 or 1.

    quantity('200M').compareTo(quantity('0.2G')) // 0
    quantity('50M').compareTo(quantity('50Mi')) // -1
    quantity('1').compareTo(dyn(1)) // error: no such overload

kubernetes.Quantity.asApproximateFloat() -> double

    quantity('50.703k').asApproximateFloat() // 50703.0
    dyn(1).asApproximateFloat() // error: no such overload

kubernetes.Quantity.asInteger() -> int

    quantity('50k').asInteger() // 50000
    quantity('1500m').asInteger() // error: cannot convert value to integer

kubernetes.Quantity.isInteger() -> bool
    Whether asInteger() would succeed: false for every amount with the suffix m.

    quantity('50k').isInteger() // true
    quantity('1000m').isInteger() // false
    dyn(1).isInteger() // error: no such overload

kubernetes.Quantity.add(kubernetes.Quantity) -> kubernetes.Quantity
    The argument may be an int. Up to 1.36 a sum on the right of `==` is an error.

    quantity('50k').add(quantity('20k')) == quantity('70k') // true
    quantity('50k').add(20) == quantity('50020') // true
    quantity('1').add(dyn('1')) // error: no such overload

kubernetes.Quantity.sub(kubernetes.Quantity) -> kubernetes.Quantity
    The argument may be an int.

    quantity('50k').sub(quantity('20k')) == quantity('30k') // true
    quantity('50k').sub(20) == quantity('49980') // true
    quantity('1').sub(dyn('1')) // error: no such overload
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from webhook.apimachinery import quantity as resource
from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.types import BOOL, DOUBLE, INT, STRING, Type, opaque_type
from webhook.cel.values import INT_MIN
from webhook.errors import EvaluationError
from webhook.text.caches import cache_for_short_texts

QUANTITY = opaque_type("kubernetes.Quantity")


class Quantity:
    """A resource.Quantity as a CEL value."""

    __slots__ = ("amount",)
    cel_type: ClassVar[Type] = QUANTITY

    def __init__(self, amount: resource.Quantity) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __str__(self) -> str:
        return str(self.amount)

    def __repr__(self) -> str:
        return f"Quantity({self})"


class ComputedQuantity(Quantity):
    """The result of add or sub. In Go, the result is a pointer, which the API server rejects on the right of `==`."""

    __slots__ = ()
    cel_equals: ClassVar[type] = Quantity


@cache_for_short_texts(1 << 20)
def quantity(text: str) -> Quantity:
    try:
        return Quantity(resource.parse_quantity(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def compare_quantities(left: Quantity, right: Quantity) -> int:
    """Return -1, 0 or 1."""
    left_amount, right_amount = left.amount, right.amount
    if left_amount.scale == right_amount.scale:
        return (left_amount.unscaled > right_amount.unscaled) - (left_amount.unscaled < right_amount.unscaled)
    return left_amount.compare(right_amount)


def is_less(left: Quantity, right: Quantity) -> bool:
    left_amount, right_amount = left.amount, right.amount
    return (
        left_amount.unscaled < right_amount.unscaled
        if left_amount.scale == right_amount.scale
        else left_amount.compare(right_amount) < 0
    )


def is_quantity(text: str) -> bool:
    try:
        resource.parse_quantity(text)
    except ValueError:
        return False
    return True


def as_integer(value: Quantity) -> int:
    try:
        return value.amount.as_integer()
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def add(left: Quantity, right: Quantity) -> ComputedQuantity:
    return ComputedQuantity(left.amount.add(right.amount))


def add_int(left: Quantity, right: int) -> ComputedQuantity:
    return ComputedQuantity(left.amount.add(resource.from_int(right)))


def sub(left: Quantity, right: Quantity) -> ComputedQuantity:
    return ComputedQuantity(left.amount.sub(right.amount))


def sub_int(left: Quantity, right: int) -> ComputedQuantity:
    """Return the quantity minus an int.

    Go negates the int and adds the negated int. No int64 is the negation of -2**63, and Go gets -2**63 again. So Go
    adds -2**63 instead of subtracting it, if the sum fits an int64.
    """
    number = resource.from_int(right)
    if right == INT_MIN and not (added := left.amount.add(number)).is_big:
        return ComputedQuantity(added)
    return ComputedQuantity(left.amount.sub(number))


def _parsing_overload(name: str, id_: str, result: Type, implementation: Callable[[str], Any]) -> Overload:
    return Overload(name, id_, (STRING,), result, implementation, since=(1, 28), cost=costs.walk_target_cost)


def _method_overload(name: str, id_: str, result: Type, implementation: Callable[..., Any], *more: Type) -> Overload:
    return Overload(
        name, f"quantity_{id_}", (QUANTITY, *more), result, implementation, member=name != "sign", since=(1, 28)
    )


FUNCTIONS = (
    _parsing_overload("quantity", "string_to_quantity", QUANTITY, quantity),
    _parsing_overload("isQuantity", "is_quantity_string", BOOL, is_quantity),
    _method_overload("sign", "sign", INT, lambda value: value.amount.sign()),
    _method_overload("isGreaterThan", "is_greater_than", BOOL, lambda a, b: is_less(b, a), QUANTITY),
    _method_overload("isLessThan", "is_less_than", BOOL, is_less, QUANTITY),
    _method_overload("compareTo", "compare_to", INT, compare_quantities, QUANTITY),
    _method_overload("asApproximateFloat", "get_float", DOUBLE, lambda value: value.amount.as_approximate_float()),
    _method_overload("asInteger", "get_int", INT, as_integer),
    _method_overload("isInteger", "is_integer", BOOL, lambda value: value.amount.is_integer()),
    _method_overload("add", "add", QUANTITY, add, QUANTITY),
    _method_overload("add", "add_int", QUANTITY, add_int, INT),
    _method_overload("sub", "sub", QUANTITY, sub, QUANTITY),
    _method_overload("sub", "sub_int", QUANTITY, sub_int, INT),
)
