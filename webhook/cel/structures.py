"""The values of Object{…}, Object.spec{…} and JSONPatch{…}, which the expressions of mutating policies build.

Source: k8s.io/apiserver v0.36.1 pkg/cel/mutation/dynamic/objects.go and pkg/cel/mutation/jsonpatch.go. Knows no
functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final, NoReturn

from webhook.cel.types import Type
from webhook.errors import EvaluationError

_TEXTS: Final = ("op", "path", "from")


class Struct(dict[str, Any]):
    """An object built by an expression: Object{…}, Object.spec{…}. `name` is its type's name.

    Only a selection from a value that is known to be an object when the expression is checked reads its fields
    (runtime.field_of). For everything else it has no fields, as upstream, where the value itself is not an indexer.
    """

    __slots__ = ("name",)
    cel_type: ClassVar[Type] = Type("type")
    """The type that `type(x)` returns; upstream it is the type of a type."""

    def __init__(self, name: str, fields: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__(fields)
        self.name = name

    def __getitem__(self, field: str) -> NoReturn:
        raise KeyError(field)


class JSONPatch(Struct):
    """One operation of a JSON patch. op, path and from are always texts, and "" if they are not set."""

    __slots__ = ()

    def __init__(self, fields: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__("JSONPatch", [*((text, "") for text in _TEXTS), *fields])

    def __getitem__(self, field: str) -> Any:
        if field in self or field == "value":
            return self.get(field)
        raise EvaluationError(f"unsupported indexer: {field}")

    def is_field_set(self, field: str) -> bool:
        """Return whether a field is set: a text must not be empty, a value may be anything.

        Raises:
            EvaluationError: an operation has no such field.
        """
        if field == "value":
            return field in self
        if field in _TEXTS:
            return bool(self.get(field))
        raise EvaluationError(f"unsupported field: {field}")
