"""Unification of CEL's static types.

`dyn` and ERROR fit every type. null fits opaque types, structures, timestamps and durations. A type variable is bound
to the most general type that it meets. Source: cel-go v0.26's checker/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from webhook.cel.library.declaration import Overload
from webhook.cel.types import ANY, DURATION, DYN, ERROR, NULL, TIMESTAMP, Type

_SHOWN = {"null_type": "null", "google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}


def type_text(shown: Type) -> str:
    """Return the name of a type in the checker's messages."""
    if shown == ERROR:
        return "!error!"
    if not shown.parameters:
        return _SHOWN.get(shown.name, shown.name)
    return f"{shown.name}({', '.join(map(type_text, shown.parameters))})"


def is_optional(kind: Type) -> bool:
    """Return whether a type is optional_type(T)."""
    return kind.name == "optional_type" and bool(kind.parameters)


@lru_cache(maxsize=4096)
def type_variables_of(overload: Overload) -> tuple[str, ...]:
    """Return the names of the type variables of a signature."""
    names: dict[str, None] = {}
    pending = [*overload.parameters, overload.result]
    while pending:
        kind = pending.pop()
        if kind.kind == "param":
            names[kind.name] = None
        pending.extend(kind.parameters)
    return tuple(names)


class TypeInference:
    """The type variables of one expression and their types."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._count = 0
        self._undo: list[tuple[str, Type | None]] = []

    def new_type_variable(self) -> Type:
        self._count += 1
        return Type(f"_var{self._count}", kind="param")

    def instantiate(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Return the parameters and the result of a signature, with new type variables."""
        names = type_variables_of(overload)
        if not names:
            return overload.parameters, overload.result
        new_variables = {name: self.new_type_variable() for name in names}
        return tuple(
            _with_renamed_variables(each, new_variables) for each in overload.parameters
        ), _with_renamed_variables(overload.result, new_variables)

    def fits(self, target: Type, actual: Type) -> bool:
        """Return whether `actual` is assignable to `target`. If it is, bind type variables."""
        return self.all_fit((target,), (actual,))

    def all_fit(self, targets: Sequence[Type], types: Sequence[Type]) -> bool:
        """Return whether all types fit their targets. If they fit, bind type variables."""
        if len(targets) != len(types):
            return False
        for target, actual in zip(targets, types, strict=True):
            if target is not actual and not self._is_assignable(target, actual):
                self._roll_back_bindings()
                return False
        self._undo.clear()
        return True

    def _roll_back_bindings(self) -> None:
        while self._undo:
            name, before = self._undo.pop()
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before

    def final_types(self, kinds: Mapping[int, Type]) -> dict[int, Type]:
        """Return the types without variables, under the same keys; unbound variables become dyn.

        A nested type that several types share is replaced only once, because in lists of lists each type contains all
        inner types.
        """
        finals: dict[int, tuple[Type, Type]] = {}
        return {key: self._final_type(kind, finals) for key, kind in kinds.items()}

    def _final_type(self, kind: Type, finals: dict[int, tuple[Type, Type]]) -> Type:
        # `known`: the old and the new type by the id of the old type
        if not kind.parameters and kind.kind != "param":
            return kind
        before = finals.get(id(kind))
        if before is None:
            bound = self._bound_type(kind)
            parameters = tuple(self._final_type(each, finals) for each in bound.parameters)
            is_same = all(new is old for new, old in zip(parameters, bound.parameters, strict=True))
            before = finals[id(kind)] = kind, bound if is_same else Type(bound.name, parameters, bound.kind)
        return before[1]

    def _bound_type(self, kind: Type) -> Type:
        # an unbound variable becomes dyn; parameters of the result may still be variables
        while kind.kind == "param":
            kind = self._bound.get(kind.name, DYN)
        return kind

    def resolved_type(self, kind: Type, *, final: bool = False) -> Type:
        """Return the type with its variables replaced; with `final`, unbound variables become dyn."""
        while kind.kind == "param":
            bound = self._bound.get(kind.name)
            if bound is None:
                return DYN if final else kind
            kind = bound
        if not kind.parameters:
            return kind
        parameters = tuple(self.resolved_type(each, final=final) for each in kind.parameters)
        if all(new is old for new, old in zip(parameters, kind.parameters, strict=True)):
            return kind
        return Type(kind.name, parameters, kind.kind)

    def _bind_variable(self, name: str, kind: Type) -> None:
        self._undo.append((name, self._bound.get(name)))
        self._bound[name] = kind

    def _is_assignable(self, first: Type, second: Type) -> bool:
        if second.kind == "param":
            valid, bound = self._may_substitute(first, second)
            if valid or bound:
                return valid
        if first.kind == "param":
            return self._may_substitute(second, first)[0]
        if first is DYN or second is DYN or first.name in _WILD or second.name in _WILD:
            return True
        if first.name == NULL.name:
            return _is_nullable(second)
        if second.name == NULL.name:
            return _is_nullable(first)
        if first.name == "type":
            return second.name == "type"
        if first.name != second.name or first.kind != second.kind or len(first.parameters) != len(second.parameters):
            return False
        return all(map(self._is_assignable, first.parameters, second.parameters))

    def _may_substitute(self, kind: Type, variable: Type) -> tuple[bool, bool]:
        # returns whether the type may replace the variable, and whether the variable was bound before
        if kind == variable:
            return True, True
        bound = self._bound.get(variable.name)
        if bound is None:
            if not self._occurs_in_type(variable.name, kind):
                self._bind_variable(variable.name, kind)
                return True, False
            return False, False
        if kind == bound:
            return True, True
        if not self._is_assignable(kind, bound):
            return False, True
        general = most_general(kind, bound)
        if not self._occurs_in_type(variable.name, general):
            self._bind_variable(variable.name, general)
        return True, True

    def _occurs_in_type(self, name: str, within: Type) -> bool:
        while within.kind == "param":
            if within.name == name:
                return True
            bound = self._bound.get(within.name)
            if bound is None:
                return False
            within = bound
        return any(self._occurs_in_type(name, each) for each in within.parameters)


UNKNOWN = frozenset({DYN.name, ANY.name})
"""Types that are known only at run time."""
_WILD = UNKNOWN | {ERROR.name}


def _is_nullable(kind: Type) -> bool:
    return kind.name in (NULL.name, TIMESTAMP.name, DURATION.name, "optional_type") or kind.kind in (
        "opaque",
        "object",
    )


def most_general(first: Type, second: Type) -> Type:
    """Return the more general of two types that fit each other."""
    return first if _is_less_specific(first, second) else second


def _is_less_specific(first: Type, second: Type) -> bool:
    if first.name in UNKNOWN or first.kind == "param":
        return True
    if second.name in UNKNOWN or second.kind == "param":
        return False
    if first.name == "type" and second.name == "type":
        return True
    if first.name != second.name or first.kind != second.kind or len(first.parameters) != len(second.parameters):
        return False
    return all(map(_is_less_specific, first.parameters, second.parameters))


def _with_renamed_variables(kind: Type, names: dict[str, Type]) -> Type:
    if kind.kind == "param":
        return names[kind.name]
    if not kind.parameters:
        return kind
    return Type(kind.name, tuple(_with_renamed_variables(each, names) for each in kind.parameters), kind.kind)
