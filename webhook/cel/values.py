"""The Python classes of CEL values; equality.py says when two values are equal.

JSON stays JSON: dict, list, str, int, float, bool and None are CEL's map, list, string, int, double, bool and null. The
other CEL types have classes here. A value's CEL type follows from its exact Python class (`type(x)`, never isinstance),
so a dispatch is one dictionary lookup (class: CEL type):

    bool: bool        int: int                 UInt: uint          float: double
    str: string       bytes: bytes             list: list          dict: map, string keys
    TypeValue: type   NoneType: null_type      Struct: Object{…}   Map: map, any keys
    Timestamp, Duration: the types of these names

Optionals are in library/optional_value.py. Opaque classes of the libraries (Quantity, IP …) declare
`cel_type: ClassVar[Type]`, and define `__eq__`, `__hash__`, and `__str__` for people. Rules: cel-go v0.26.0
common/types; for objects k8s.io/apiserver v0.36.1 pkg/cel/mutation/dynamic/objects.go and
pkg/cel/mutation/jsonpatch.go.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, ClassVar, Final, NoReturn

from webhook.apimachinery.attributes import JSON
from webhook.cel.types import DURATION, TIMESTAMP, Type
from webhook.errors import EvaluationError, EvaluationPanic, NoSuchOverload
from webhook.yamltext.unread import Unread

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
NANOSECONDS = 1_000_000_000
_YEAR_ONE = -62_135_596_800
"""The second in which year 1 begins."""


class UInt(int):
    """uint. Arithmetic gives plain ints, so results must be wrapped again."""

    __slots__ = ()


class Timestamp:
    """A moment of the years 1 to 9999, in nanoseconds since 1970 UTC.

    `offset` is the time zone of the printed form, in seconds east of UTC.
    """

    __slots__ = ("nanoseconds", "offset")
    cel_type: ClassVar[Type] = TIMESTAMP

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        if not _YEAR_ONE * NANOSECONDS <= nanoseconds < 253_402_300_800 * NANOSECONDS:
            raise EvaluationError("timestamp overflow")
        self.nanoseconds = nanoseconds
        self.offset = offset

    def __bool__(self) -> bool:
        """Return False for the first moment, which Go treats as unset."""
        return self.nanoseconds != _YEAR_ONE * NANOSECONDS

    def __eq__(self, other: object) -> bool:
        return type(other) is Timestamp and other.nanoseconds == self.nanoseconds

    def __hash__(self) -> int:
        return hash((Timestamp, self.nanoseconds))

    def __repr__(self) -> str:
        return f"Timestamp({self})"

    def __str__(self) -> str:
        """Return RFC 3339 in the timestamp's zone, with as many fractional digits as needed (Go's RFC3339Nano)."""
        year, month, day, hour, minute, second = civil_date_and_time(self.nanoseconds // NANOSECONDS + self.offset)
        fraction = self.nanoseconds % NANOSECONDS
        digits = f".{fraction:09d}".rstrip("0") if fraction else ""
        minutes = abs(self.offset) // 60
        zone = f"{'-' if self.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if self.offset else "Z"
        return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{digits}{zone}"


class Duration:
    """A span in nanoseconds, within int64 as Go's time.Duration."""

    __slots__ = ("nanoseconds",)
    cel_type: ClassVar[Type] = DURATION

    def __init__(self, nanoseconds: int) -> None:
        if not INT_MIN <= nanoseconds <= INT_MAX:
            raise EvaluationError("integer overflow")
        self.nanoseconds = nanoseconds

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __eq__(self, other: object) -> bool:
        return type(other) is Duration and other.nanoseconds == self.nanoseconds

    def __hash__(self) -> int:
        return hash((Duration, self.nanoseconds))

    def __repr__(self) -> str:
        return f"Duration({self})"

    def __str__(self) -> str:
        """Return the seconds as cel-go prints them: the shortest decimal of the float, then `s`."""
        whole, fraction = divmod(abs(self.nanoseconds), NANOSECONDS)
        seconds = whole + fraction / NANOSECONDS
        return f"{'-' if self.nanoseconds < 0 else ''}{plain_double_text(seconds)}s"


class TypeValue:
    """A type as a value: `type(1)`, `int`. It has no parameters, so two types with the same name are equal."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is TypeValue and other.name == self.name

    def __hash__(self) -> int:
        return hash((TypeValue, self.name))

    def __repr__(self) -> str:
        return f"TypeValue({self.name})"

    def __str__(self) -> str:
        return self.name


class WrappedMapKey:
    """A map key that would equal a key of another type in Python: true and 1, 1u and 1, 1.0 and 1."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is WrappedMapKey and type(other.value) is type(self.value) and bool(other.value == self.value)
        )

    def __hash__(self) -> int:
        kind = type(self.value)
        return hash((kind, id(self.value) if kind in UNHASHABLE else self.value))


class Map(dict[Any, Any]):
    """A map with keys of any class: strings and ints unchanged, other keys in a `WrappedMapKey`. Use make_map,
    map_items, map_keys and map_find.
    """

    __slots__ = ()


class DictWithEmptyMaps(dict[str, Any]):
    """A map in which a missing text key gives an empty map. `in`, loops, sizes and equality use only stored keys."""

    __slots__ = ()

    def __missing__(self, _: str) -> dict[str, Any]:
        return {}


_PATCH_TEXTS: Final = ("op", "path", "from")


class Struct(dict[str, Any]):
    """An object that an expression builds: Object{…}, Object.spec{…}. `name` is the name of its type.

    As in the API server, `x.field` works only if the checker knows that `x` has this type (runtime.field_of). All other
    reads of a field raise KeyError.
    """

    __slots__ = ("name",)
    cel_type: ClassVar[Type] = Type("type")
    """As in the API server, `type(x)` of an object is `type`."""

    def __init__(self, name: str, fields: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__(fields)
        self.name = name

    def __getitem__(self, field: str) -> NoReturn:
        raise KeyError(field)


class JSONPatch(Struct):
    """One operation of a JSON patch; op, path and from are texts, "" if not set."""

    __slots__ = ()

    def __init__(self, fields: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__("JSONPatch", [*((text, "") for text in _PATCH_TEXTS), *fields])

    def __getitem__(self, field: str) -> Any:
        if field in self or field == "value":
            return self.get(field)
        raise EvaluationError(f"unsupported indexer: {field}")

    def is_field_set(self, field: str) -> bool:
        """Return whether a field is set: a non-empty text, or any `value`.

        Raises:
            EvaluationError: an operation has no field of this name.
        """
        if field == "value":
            return field in self
        if field in _PATCH_TEXTS:
            return bool(self.get(field))
        raise EvaluationError(f"unsupported field: {field}")


MAPS = frozenset((dict, Map))
NUMBERS = frozenset((int, float, UInt))
UNHASHABLE = frozenset((list, dict, Map, DictWithEmptyMaps, Struct, JSONPatch))


class TypeNames(dict[type, str]):
    """Maps a class to the name of its CEL type (`type(value)`). An opaque class declares its type as `cel_type`."""

    __slots__ = ()

    def __missing__(self, kind: Any) -> str:
        declared: Type = kind.cel_type
        return declared.name


TYPE_NAMES = TypeNames(
    {
        bool: "bool",
        int: "int",
        UInt: "uint",
        float: "double",
        str: "string",
        bytes: "bytes",
        list: "list",
        dict: "map",
        Map: "map",
        DictWithEmptyMaps: "map",
        type(None): "null_type",
        Timestamp: TIMESTAMP.name,
        Duration: DURATION.name,
        TypeValue: "type",
    }
)


def civil_date_and_time(seconds: int) -> tuple[int, int, int, int, int, int]:
    """Return year, month, day, hour, minute and second of Unix seconds.

    The years 0 and 10000 are also possible, because `seconds` may contain the offset of a time zone.
    """
    day, rest = divmod(seconds, 86_400)
    shift = 0
    if not -719_162 <= day <= 2_932_896:
        # datetime ends at years 1 and 9999; the Gregorian calendar repeats after 146,097 days, 400 years
        shift = 400 if day < 0 else -400
        day += 146_097 * (shift // 400)
    moment = date.fromordinal(719_163 + day)
    return moment.year - shift, moment.month, moment.day, rest // 3600, rest // 60 % 60, rest % 60


def fail_with_no_such_overload(*_: object) -> NoReturn:
    """Raise cel-go's error for values that no overload accepts."""
    raise NoSuchOverload


def type_name(value: Any) -> str:
    """Return the name of a value's CEL type."""
    return TYPE_NAMES[type(value)]


def plain_double_text(value: float) -> str:
    """Return a double in the fewest digits without an exponent, as Go's FormatFloat(x, 'f', -1, 64)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        text = shift_decimal_point(mantissa, int(exponent))
    return text.removesuffix(".0")


def shift_decimal_point(mantissa: str, places: int) -> str:
    """Return a printed number with its decimal point moved: ("1.5", 3) gives "1500"."""
    sign, digits = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = digits.partition(".")
    if places >= 0:
        moved = fraction.ljust(places, "0")
        return f"{sign}{whole}{moved[:places]}.{moved[places:] or '0'}"
    moved = whole.rjust(1 - places, "0")
    return f"{sign}{moved[:places]}.{moved[places:]}{fraction}"


# ---- maps


def make_map(entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a map of CEL keys and values, a plain dict if all keys are strings. Later entries replace earlier
    entries.
    """
    result: dict[Any, Any] = {}
    plain = True
    for key, value in entries:
        if type(key) is not str:
            plain = False
        result[map_key(key)] = value
    return result if plain else Map(result)


def map_key(key: Any) -> Any:
    """Return the Python key for a CEL key in a Map.

    Raises:
        EvaluationPanic: the value cannot be a key of a map in Go.
    """
    kind = type(key)
    if kind is str or kind is int:
        return key
    refuse_unhashable(key)
    return WrappedMapKey(key)


def refuse_unhashable(value: Any) -> None:
    """Panic, as cel-go does, if Go cannot use a value as a key.

    Raises:
        EvaluationPanic: Go cannot hash the type: bytes, or an opaque type that contains a list.
    """
    name = "types.Bytes" if type(value) is bytes else getattr(type(value), "go_unhashable", "")
    if name:
        raise EvaluationPanic(f"runtime error: hash of unhashable type {name}")


def map_keys(value: dict[Any, Any]) -> list[Any]:
    """Return the CEL keys of a map, in order."""
    if type(value) is Map:
        return [key.value if type(key) is WrappedMapKey else key for key in value]
    return list(value)


def map_items(value: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Return the CEL keys and values of a map."""
    return zip(map_keys(value), value.values(), strict=True)


ABSENT: Any = object()


def map_find(value: dict[Any, Any], key: Any) -> Any:
    """Return the value of a key, or ABSENT. As in cel-go map.go, a number of any type finds an equal int or uint key.
    Only a double finds a double key.
    """
    if type(key) is str:
        return value.get(key, ABSENT)
    return find_by_map_key(value, key) if type(value) is Map else ABSENT


def find_by_map_key(value: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a key, or ABSENT, in a mapping with results of map_key as keys."""
    kind = type(key)
    value_found = value.get(map_key(key), ABSENT)
    if value_found is not ABSENT or kind not in NUMBERS:
        return value_found
    if kind is float:
        if not math.isfinite(key) or key != math.floor(key):
            return ABSENT
        key = int(key)
    value_found = value.get(int(key), ABSENT) if kind is not int else ABSENT
    if value_found is ABSENT and kind is not UInt and key >= 0:
        value_found = value.get(WrappedMapKey(UInt(key)), ABSENT)
    return value_found


# ---- CEL values as JSON


def to_json(value: Any) -> JSON:
    """Return a value as JSON: structures as objects, times and opaque values as text, bytes as base64.

    Raises:
        EvaluationError: the value has no JSON form (a type, an absent optional, a NaN).
    """
    kind = type(value)
    if kind in (str, bool, int) or value is None or kind is Unread:
        return value
    if kind is UInt:
        return int(value)
    if kind is float:
        if not math.isfinite(value):
            raise EvaluationError(f"{plain_double_text(value)} cannot be written as JSON")
        return value
    if kind is list:
        return [to_json(item) for item in value]
    if kind in MAPS or isinstance(value, Struct):
        return {_json_key(key): to_json(item) for key, item in map_items(value)}
    if kind is bytes:
        return base64.b64encode(value).decode()
    if type_name(value) in ("type", "optional_type"):
        raise EvaluationError(f"a value of type {type_name(value)} cannot be written as JSON")
    return str(value)


def _json_key(key: Any) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    return plain_double_text(key) if type(key) is float else str(key)
