"""Indexes with optionals: `a[?k]`, and `a[k]` of an optional list or map. Optional selections need no signatures.

Source: cel-go v0.26.0 cel/library.go, optionalLib. The compiler generates its own code for indexes.

list(T)[?int] -> optional_type(T)
map(K, V)[?K] -> optional_type(V)
    The element, if there is one. The operand may be an optional list or map.

    [1, 2][?0].value() // 1
    [1, 2][?5].hasValue() // false
    {'a': 1}[?'b'].orValue(7) // 7
    {'a': {'b': 1}}[?'a'][?'b'].value() // 1
    {'a': {'b': 1}}[?'a']['b'].value() // 1
    dyn([1])[?'a'] // error: unsupported index type 'string' in list
"""

from __future__ import annotations

from webhook.cel.library.declaration import Overload
from webhook.cel.library.optional_value import look_up_optional
from webhook.cel.library.runtime import value_at_key
from webhook.cel.types import INT, A, B, list_of, map_of, optional_of

_LIST, _MAP = list_of(A), map_of(A, B)

FUNCTIONS = (
    Overload("_[?_]", "list_optindex_optional_int", (_LIST, INT), optional_of(A), look_up_optional, since=(1, 28)),
    Overload(
        "_[?_]",
        "optional_list_optindex_optional_int",
        (optional_of(_LIST), INT),
        optional_of(A),
        look_up_optional,
        since=(1, 28),
    ),
    Overload("_[?_]", "map_optindex_optional_value", (_MAP, A), optional_of(B), look_up_optional, since=(1, 28)),
    Overload(
        "_[?_]",
        "optional_map_optindex_optional_value",
        (optional_of(_MAP), A),
        optional_of(B),
        look_up_optional,
        since=(1, 28),
    ),
    Overload("_[_]", "optional_list_index_int", (optional_of(_LIST), INT), optional_of(A), value_at_key, since=(1, 28)),
    Overload("_[_]", "optional_map_index_value", (optional_of(_MAP), A), optional_of(B), value_at_key, since=(1, 28)),
)
