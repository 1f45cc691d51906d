"""Lists and maps that charge a request for their iteration, because users can make them long.

A walk charges the length; a long walk also reads the clock. Access to one entry costs nothing.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar, overload

from webhook.deadline import STEP, Deadline

Item = TypeVar("Item")
Value = TypeVar("Value")
Other = TypeVar("Other")


class Items(Sequence[Item]):
    """A list of values that charges its iteration."""

    __slots__ = ("_deadline", "_values")

    def __init__(self, values: Sequence[Item], deadline: Deadline) -> None:
        self._values = values
        self._deadline = deadline

    def of(self, values: Sequence[Other]) -> Items[Other]:
        """Return other values as a list that charges the same request."""
        return Items(values, self._deadline)

    def __len__(self) -> int:
        return len(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)  # without a call of len(), which each review would make dozens of times

    def __iter__(self) -> Iterator[Item]:
        values, deadline = self._values, self._deadline
        work = len(values)
        if work > STEP:
            return iter(deadline.charge_for_items(values))
        deadline.left -= work  # as `charge_for_items`, without a call, which each review would make thousands of times
        if deadline.left < 0:
            deadline.check_clock()
        return iter(values)

    def __contains__(self, value: object) -> bool:
        self._deadline.spend(len(self._values))
        return value in self._values

    def has_any_of(self, values: AbstractSet[object]) -> bool:
        """Return whether any value of the list is in a set."""
        self._deadline.spend(len(self._values))
        return not values.isdisjoint(self._values)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> Items[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | Items[Item]:
        if isinstance(index, slice):
            return Items(self._values[index], self._deadline)
        return self._values[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return f"Items({list(self._values)!r})"


class Entries(Mapping[str, Value]):
    """A map from texts to values that charges its iteration."""

    __slots__ = ("_deadline", "_values")

    def __init__(self, values: Mapping[str, Value], deadline: Deadline) -> None:
        self._values = values
        self._deadline = deadline

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._deadline.charge_for_items(self._values))

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __getitem__(self, key: str) -> Value:
        return self._values[key]

    @overload
    def get(self, key: str, /) -> Value | None: ...

    @overload
    def get(self, key: str, default: Value | Other, /) -> Value | Other: ...

    def get(self, key: str, default: Any = None, /) -> Any:
        return self._values.get(key, default)

    def keys(self) -> KeysView[str]:
        """Return the keys, and charge for them."""
        self._deadline.spend(len(self._values))
        return self._values.keys()

    def values(self) -> ValuesView[Value]:
        """Return the values, and charge for them."""
        self._deadline.spend(len(self._values))
        return self._values.values()

    def items(self) -> ItemsView[str, Value]:
        """Return the entries. If there are many, the iteration reads the clock."""
        values, deadline = self._values, self._deadline
        work = len(values)
        if work > STEP:
            return _ChargedItems(values, deadline)
        deadline.left -= work  # as `spend`, without a call, which each review would make dozens of times
        if deadline.left < 0:
            deadline.check_clock()
        return values.items()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Entries):
            return bool(self._values == other._values)
        return self._values == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as a dict

    def __repr__(self) -> str:
        return f"Entries({dict(self._values)!r})"


class _ChargedItems(ItemsView[str, Value]):
    """The entries of a map, charged during their iteration."""

    __slots__ = ("_deadline",)

    def __init__(self, values: Mapping[str, Value], deadline: Deadline) -> None:
        super().__init__(values)
        self._deadline = deadline

    def __iter__(self) -> Iterator[tuple[str, Value]]:
        return iter(self._deadline.charge_for_items(self._mapping.items()))  # type: ignore[attr-defined]
