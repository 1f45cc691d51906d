"""Objects with only some known fields: reading another field is an error, and never an absent field.

A policy that reads such a field is not evaluated. Expressions, facts and checks read these objects as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from webhook.apimachinery.attributes import JSON
from webhook.errors import NoDecision


class PartialObject(dict[str, Any]):
    """A JSON object with some unknown fields.

    Args:
        fields: the fields that are set and known.
        is_known: returns whether it is known if a field is set, and to what.
        where: the path of the object, with a dot at its end.
        told: the text for an unknown field, with `{}` for its path.
    """

    def __init__(self, fields: JSON, is_known: Callable[[str], bool], where: str, told: str) -> None:
        super().__init__(fields)
        self._is_known = is_known
        self._where = where
        self._told = told

    def with_field(self, name: str, value: JSON) -> PartialObject:
        """Return a copy with another value of a field."""
        fields = {**dict(dict.items(self)), name: value}
        return PartialObject(fields, self._is_known, self._where, self._told)

    def _refuse(self, name: str) -> NoReturn:
        raise NoDecision(self._told.format(f"{self._where}{name}"))

    def __missing__(self, name: str) -> NoReturn:
        if not self._is_known(name):
            self._refuse(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Return whether a field is set.

        Raises:
            NoDecision: it is not known.
        """
        if super().__contains__(name):
            return True
        return isinstance(name, str) and not self._is_known(name) and self._refuse(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or the default if it is known to be absent."""
        is_set = name in self
        return self[name] if is_set else default

    def _refuse_whole(self, *_: object) -> NoReturn:
        self._refuse("*")

    def __iter__(self) -> Iterator[str]:
        self._refuse_whole()

    keys = values = items = copy = __eq__ = __ne__ = __or__ = _refuse_whole
    __hash__ = None
