"""The environment variables of a container as names and values. A container may have hundreds of variables, so a
variable is not an object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from webhook.deadline import Deadline
from webhook.typed.fields import Field
from webhook.typed.view import Typed

_NAMES: Final = frozenset((str,))
_NAME_OF: Final = itemgetter("name")
_VALUES: Final = frozenset((str, type(None)))


class Environment(NamedTuple):
    """Variables in order: their names, "" if not set, and their values, None if a value has another source."""

    names: Sequence[str] = ()
    values: Sequence[str | None] = ()

    def pairs(self) -> tuple[tuple[str, str | None], ...]:
        return tuple(zip(self.names, self.values, strict=True))

    def by_name(self) -> Mapping[str, str | None]:
        """Return the values by their names; the last value of a name counts."""
        return dict(zip(self.names, self.values, strict=True))


_NONE: Final = Environment()


class EnvironmentField(Field[Environment]):
    """The field of a list of environment variables."""

    def read(self, value: Any, owner: Typed) -> Environment:
        return read_environment(value, owner.reading.deadline) if isinstance(value, list) and value else _NONE


def read_environment(listed: Sequence[Any], deadline: Deadline) -> Environment:
    """Return the variables of a list. This is fast if all names and values have the right types."""
    deadline.spend(len(listed))
    try:
        names, values = [variable["name"] for variable in listed], [variable.get("value") for variable in listed]
    except (KeyError, TypeError, AttributeError):
        objects = [variable if isinstance(variable, dict) else {} for variable in deadline.charge_for_items(listed)]
        names, values = [each.get("name") for each in objects], [each.get("value") for each in objects]
    if not (_NAMES.issuperset(map(type, names)) and _VALUES.issuperset(map(type, values))):
        return Environment(
            [name if isinstance(name, str) else "" for name in names],
            [value if isinstance(value, str) else None for value in values],
        )
    return Environment(names, values)


def first_value(name: str, listed: Any, deadline: Deadline) -> str:
    """Return the text of the first variable of a name, without reading other variables; "" if no variable has the name
    or the variable has no text.
    """
    if not isinstance(listed, list):
        return ""
    deadline.spend(len(listed))
    try:
        if name not in map(_NAME_OF, listed):  # the usual case
            return ""
    except (KeyError, TypeError):
        pass  # an entry has no name, or is not an object
    for variable in listed:
        if isinstance(variable, dict) and variable.get("name") == name:
            value = variable.get("value")
            return value if isinstance(value, str) else ""
    return ""


def has_source(listed: Any, deadline: Deadline) -> bool:
    """Return whether a variable has `valueFrom`, without creating an object for each variable."""
    variables = deadline.charge_for_items(listed) if isinstance(listed, list) else ()
    return any("valueFrom" in variable for variable in variables if isinstance(variable, dict))
