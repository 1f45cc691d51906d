"""Knows the types of all values in objects, and finds values of other types.

There are two levels. A decoder checks types: object, list, text, number, boolean, quantity and others. A validation
checks values: forms of names, ranges, choices, and unknown fields. The declarations are data: those of built-in kinds
are in the table of patch/, those of custom kinds in `data/`.
"""

from webhook.schema.decode import DecodedValue, Mismatch, decode, has_undeclared_field
from webhook.schema.kinds import decode_object, type_of
from webhook.schema.types import kubernetes_type

__all__ = ["DecodedValue", "Mismatch", "decode", "decode_object", "has_undeclared_field", "kubernetes_type", "type_of"]
