"""Answers of expressions that are kept for as long as little is there to be read: most objects lack most fields.

CEL has no side effects and no clock: what an expression gives, and what it costs, depends on nothing but what stands at
the paths that it reads. Where nothing stands there, or a short value, that makes a short key, and the answer is the one
that the same key had before. So a policy about claims costs a Pod without claims one look at one field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from webhook.cel import Program
from webhook.cel.check.reads import Path
from webhook.errors import EvaluationError, LookupFailed

Key: TypeAlias = tuple[object, ...]

MOST_PATHS: Final = 8
"""A longer key is not worth making."""
MOST_TEXT: Final = 64
MOST_FIELDS: Final = 4
MOST_DEPTH: Final = 2
"""Of an object or list as a part of a key, and of what stands in it: a list of a claim or two with their sources."""
MOST_KEPT: Final = 256
"""Keys of one policy, of whose values users choose some."""
_GIVEN: Final = frozenset(("object", "oldObject", "request", "params", "namespaceObject"))
_ABSENT: Final = object()
_SCALARS: Final = frozenset((bool, int, float, type(None)))
_CONTAINERS: Final = frozenset((dict, list))


class Memo:
    """What some expressions gave, by what stood at the paths that they read. Never of more than MOST_KEPT keys."""

    __slots__ = ("_kept", "_paths")

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple((path[0], path[1:]) for path in sorted(paths))
        self._kept: dict[Key, bool] = {}

    def key(self, seen: Mapping[str, Any]) -> Key | None:
        """What stands at the paths of these variables; None where it is too much to be a key."""
        made: list[object] = []
        for name, fields in self._paths:
            try:
                value = seen[name]
            except (EvaluationError, LookupFailed):
                return None  # the expression says it in its own words
            for depth, field in enumerate(fields):
                if type(value) is not dict:
                    return None
                value = value.get(field, _ABSENT)
                if value is _ABSENT:
                    made.append(depth)  # which field is the first that is not there
                    break
            else:
                part = _part(value)
                if part is None:
                    return None
                made.append(part)
        return tuple(made)

    def answer(self, key: Key) -> bool | None:
        """What was kept for a key."""
        return self._kept.get(key)

    def keep(self, key: Key, *, answer: bool) -> None:
        """Keep what the expressions gave, without an error."""
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[key] = answer


def _part(value: Any, depth: int = MOST_DEPTH) -> object:
    """A short value as a part of a key, apart from equal ones of other types and from depths; None for others."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= MOST_TEXT else None
    if kind in _SCALARS:
        return kind, repr(value)  # -0.0 is not 0.0
    if kind not in _CONTAINERS or not value:
        return kind if kind in _CONTAINERS else None
    if not depth or len(value) > MOST_FIELDS:
        return None
    parts: list[object] = [kind]
    for each in value:
        part = _part(each, depth - 1)
        parts.append(part)
        if kind is dict and part is not None:
            part = _part(value[each], depth - 1)
            parts.append(part)
        if part is None:
            return None
    return tuple(parts)


def memo(
    programs: Sequence[Program | None], variables: Mapping[str, Program | None], computed: Collection[str]
) -> Memo | None:
    """The memo of expressions that are evaluated one after the other; None where it would seldom help.

    Args:
        programs: the expressions; None where one does not compile.
        variables: what `variables` stands for in them.
        computed: names of facts, which are computed when they are read. A key would compute them all: so they have to
            be read by every evaluation of the first expression.
    """
    paths = paths_read(programs, variables)
    if paths is None or not programs or len(paths) > MOST_PATHS:
        return None
    first = programs[0]
    always = first.reads().always if first is not None else frozenset()
    names = {path[0] for path in paths}
    return Memo(paths) if names <= _GIVEN | (always & frozenset(computed)) else None


def paths_read(programs: Iterable[Program | None], variables: Mapping[str, Program | None]) -> frozenset[Path] | None:
    """What expressions read, themselves and through variables; None where nobody can say."""
    paths: set[Path] = set()
    pending, met = list(programs), set[str]()
    while pending:
        program = pending.pop()
        if program is None:
            return None
        for path in program.reads().paths:
            if path[0] != "variables":
                paths.add(path)
            elif len(path) == 1 or path[1] not in variables:
                return None
            elif path[1] not in met:
                met.add(path[1])
                pending.append(variables[path[1]])
    return frozenset(paths)
