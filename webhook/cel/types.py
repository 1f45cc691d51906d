"""CEL's static types, as the checker sees them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Type(Struct, frozen=True):
    """A CEL type: a name and its parameters. `list(int)` is Type("list", (INT,)).

    kind is "" for the language's own types, and "object" for a declared structure. It is "opaque" for types such as
    kubernetes.Quantity, and "param" for a type variable of an overload (T, K, V).
    """

    name: str
    parameters: tuple[Type, ...] = ()
    kind: str = ""

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


DYN = Type("dyn")
ANY = Type("any")
"""Like dyn, but a loop cannot run over a value of this type, and a list or map literal cannot mix such values with
values of other types.

Kubernetes declares attributes of devices with this type (k8s.io/apiserver v0.36.1 pkg/cel/types.go AnyType).
"""
ERROR = Type("*error*")
NULL = Type("null_type")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
TIMESTAMP = Type("google.protobuf.Timestamp")
DURATION = Type("google.protobuf.Duration")
A = Type("A", kind="param")
B = Type("B", kind="param")


def list_of(element: Type) -> Type:
    """Return list(element)."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return map(key, value)."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return optional_type(value)."""
    return Type("optional_type", (value,))


def type_of_type(value: Type) -> Type:
    """Return type(value)."""
    return Type("type", (value,))


def opaque_type(name: str) -> Type:
    """Return an opaque type, such as kubernetes.Quantity: only the functions of one library read its values."""
    return Type(name, kind="opaque")


def object_type(name: str) -> Type:
    """Return the type of a declared structure (Environment.structures)."""
    return Type(name, kind="object")


LIST_DYN = list_of(DYN)
MAP_DYN = map_of(DYN, DYN)


class Structure(Struct, frozen=True):
    """A declared structure: fields by name; `open` accepts any other field as dyn."""

    name: str
    fields: Mapping[str, Type] = field(default_factory=dict)
    open: bool = False
