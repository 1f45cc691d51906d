"""JSON Patch keys: kubernetes.jsonpatch, in mutating admission policies.

Source: k8s.io/apiserver v0.36.1 pkg/cel/library/jsonpatch.go.

jsonpatch.escapeKey(string) -> string
    The key as one step of a JSON Pointer: `~` becomes `~0`, `/` becomes `~1`.

    jsonpatch.escapeKey('nvidia.com/gpu') // 'nvidia.com~1gpu'
    jsonpatch.escapeKey('a~b/c') // 'a~0b~1c'
    jsonpatch.escapeKey(dyn(1)) // error: no such overload
"""

from __future__ import annotations

from webhook.cel.library import costs
from webhook.cel.library.declaration import Overload
from webhook.cel.types import STRING


def escape_key(key: str) -> str:
    """Return a key escaped as one step of a JSON Pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


FUNCTIONS = (
    Overload(
        "jsonpatch.escapeKey",
        "string_jsonpatch_escapeKey_string",
        (STRING,),
        STRING,
        escape_key,
        since=(1, 32),
        cost=costs.walk_target_cost,
    ),
)
