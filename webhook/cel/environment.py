"""The variables, structures, functions and syntax of expressions in one Kubernetes version.

An Overload has the versions of its function (`since`, `until`), and this module has the versions of macros. Source:
k8s.io/apiserver v0.36.1 pkg/cel/environment/base.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from webhook.apimachinery import releases
from webhook.cel import library
from webhook.cel.library.declaration import Overload, Version
from webhook.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST_DYN,
    MAP_DYN,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Structure,
    Type,
    opaque_type,
    optional_of,
)

OPTIONALS: Version = (1, 28)
"""The first version with optional types and their syntax."""

_ALWAYS: Version = (1, 0)
_MACROS: Mapping[tuple[str, int, bool], Version] = {
    ("has", 1, False): _ALWAYS,
    ("all", 2, True): _ALWAYS,
    ("exists", 2, True): _ALWAYS,
    ("exists_one", 2, True): _ALWAYS,
    ("map", 2, True): _ALWAYS,
    ("map", 3, True): _ALWAYS,
    ("filter", 2, True): _ALWAYS,
    ("optMap", 2, True): OPTIONALS,
    ("optFlatMap", 2, True): OPTIONALS,
    ("all", 3, True): (1, 32),
    ("exists", 3, True): (1, 32),
    ("existsOne", 3, True): (1, 32),
    ("exists_one", 3, True): (1, 32),
    ("transformList", 3, True): (1, 32),
    ("transformList", 4, True): (1, 32),
    ("transformMap", 3, True): (1, 32),
    ("transformMap", 4, True): (1, 32),
    ("transformMapEntry", 3, True): (1, 32),
    ("transformMapEntry", 4, True): (1, 32),
    ("sortBy", 2, True): (1, 34),
}
_WITH_FUNCTIONS = frozenset(("math", "encoders", "format"))
"""The extensions that add functions. The other extension, `bindings`, adds only a macro."""

_TYPE_NAMES: Mapping[str, Type] = {
    each.name: each for each in (BOOL, BYTES, DOUBLE, DURATION, INT, LIST_DYN, MAP_DYN, NULL, STRING, TIMESTAMP, UINT)
} | {"type": Type("type"), "optional_type": optional_of(DYN)}

JSON_PATCH = Structure("JSONPatch", {"op": STRING, "from": STRING, "path": STRING, "value": DYN})


class Environment(Struct, frozen=True, eq=False, kw_only=True):
    """What an expression may use: an immutable value, which is compared by identity.

    Args:
        version: the Kubernetes version of the functions and macros.
        variables: name -> type. A dotted name (`authorizer.requestResource`) is one variable, and takes precedence over
            the fields of a shorter variable.
        structures: name of an object type -> its fields.
        container: the namespace in which unqualified names are looked up first; "" in Kubernetes.
        functions: more functions than those of the libraries.
        mutation: allow `Object{…}`, `Object.spec{…}` and `JSONPatch{…}` with jsonpatch.escapeKey, as in mutating
            policies.
        extensions: parts of cel-go that Kubernetes leaves out: `math`, `encoders` (with string.reverse), `bindings`,
            and `format`, the newer string.format.
        escaped_fields: accept a.`b-c`, which Kubernetes does not (apiserver v0.36.1 never sets cel-go's
            EnableIdentifierEscapeSyntax).
        homogeneous: refuse list and map literals with elements of several types, as Kubernetes does.
        planned: refuse constants that always fail, such as `int('x')`, as Kubernetes does when it plans a program. With
            False, these constants fail at evaluation.
        macros: with False, calls of macros are ordinary calls.
        strict: report the errors of the checker, as Kubernetes does. With False, only syntax errors are reported: every
            type becomes dyn, and a wrong operand fails at evaluation.
    """

    version: Version = releases.DEFAULT
    variables: Mapping[str, Type] = field(default_factory=dict)
    structures: Mapping[str, Structure] = field(default_factory=dict)
    container: str = ""
    functions: tuple[Overload, ...] = ()
    mutation: bool = False
    extensions: frozenset[str] = frozenset()
    escaped_fields: bool = False
    homogeneous: bool = True
    planned: bool = True
    macros: bool = True
    strict: bool = True

    def overloads_of_function(self, name: str) -> tuple[Overload, ...]:
        """Return all signatures of a function at this version, of both call styles."""
        overloads = _overload_table(self.version, self.mutation, self.extensions).get(name, ())
        return (*overloads, *(each for each in self.functions if each.name == name)) if self.functions else overloads

    def is_macro_call(self, name: str, arguments: int, *, member: bool) -> bool:
        """Return whether a call of this shape is a macro at this version."""
        if not self.macros:
            return False
        since = _MACROS.get((name, arguments, member))
        if since is not None:
            return since <= self.version
        if "math" in self.extensions and member and name in ("greatest", "least"):
            return True
        return "bindings" in self.extensions and (name, arguments, member) == ("bind", 3, True)

    @property
    def has_optional_syntax(self) -> bool:
        """Return whether this version has `a.?b`, `a[?b]`, `[?a]` and `{?k: v}`."""
        return self.version >= OPTIONALS

    def structure_named(self, name: str) -> Structure | None:
        """Return the structure with this name. With `mutation`, `Object` and `Object.…` accept any field."""
        structure = self.structures.get(name)
        if structure is None and self.mutation:
            if name == JSON_PATCH.name:
                return JSON_PATCH
            if name == "Object" or name.startswith("Object."):
                return Structure(name, open=True)
        return structure

    def type_named(self, name: str) -> Type | None:
        """Return the type of a name that is a value: `int`, `google.protobuf.Timestamp`, `net.IP`."""
        kind = _TYPE_NAMES.get(name)
        if kind is None and name in library.TYPES and self.version >= (1, 30):
            return opaque_type(name)
        return kind

    def extended_with(
        self,
        *,
        variables: Mapping[str, Type] = MappingProxyType({}),
        structures: Mapping[str, Structure] = MappingProxyType({}),
    ) -> Environment:
        """Return an environment with more variables and structures. They replace those with the same name."""
        return replace(self, variables={**self.variables, **variables}, structures={**self.structures, **structures})


@cache
def _overload_table(version: Version, mutation: bool, extensions: frozenset[str]) -> Mapping[str, tuple[Overload, ...]]:
    table: dict[str, list[Overload]] = {}
    indexes = import_module("webhook.cel.library.optional").INDEX_FUNCTIONS if version >= OPTIONALS else ()
    for overload in (*library.overloads_of_version(version), *indexes):
        if mutation or not overload.name.startswith("jsonpatch."):
            table.setdefault(overload.name, []).append(overload)
    for extension in sorted(extensions & _WITH_FUNCTIONS):
        for overload in import_module("webhook.cel.library.extensions").FUNCTIONS_OF_EXTENSION[extension]:
            overloads_of_name = table.setdefault(overload.name, [])
            overloads_of_name[:] = [*(each for each in overloads_of_name if each.id != overload.id), overload]
    return {name: tuple(overloads) for name, overloads in table.items()}
