"""Whether a device selector compiles: CEL in the environment of dynamic resource allocation.

k8s.io/dynamic-resource-allocation v0.36.1 cel/compile.go: the variable `device`, a result of bool or of an attribute's
unknown type, at most 10 KiB. `cel.bind` is theirs alone and not known here; an expression that uses it is not judged.
"""

from __future__ import annotations

from functools import cache, lru_cache

from webhook.cel import Engine, Environment, compiled_engine
from webhook.cel.types import BOOL, DYN, STRING, Structure, map_of, object_type, opaque
from webhook.errors import CompileError

_LONGEST = 10 * 1024  # resource/v1 types.go CELSelectorExpressionMaxLength
_DEVICE = Structure(
    "DRADevice",
    {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, opaque("kubernetes.Quantity"))),
        "allowMultipleAllocations": BOOL,
    },
)


@cache
def _environment() -> Environment:
    return Environment(variables={"device": object_type(_DEVICE.name)}, structures={_DEVICE.name: _DEVICE})


@cache
def _engine() -> Engine:
    return compiled_engine()


@lru_cache(maxsize=1024)
def problem(expression: str) -> str:
    """What is wrong with a selector's expression, in one line; "" for nothing."""
    if not expression:
        return "there is no expression"
    if len(expression) > _LONGEST:
        return f"the expression has {len(expression)} characters, at most {_LONGEST} are allowed"
    if "cel.bind" in expression:
        return ""
    try:
        program = _engine().compile(expression, _environment())
    except CompileError as error:
        return error.issues[0].message
    return "" if program.result in (BOOL, DYN) else f"the result is {program.result}, expected bool"
