"""Knows the types of all values in objects, and finds values of other types.

There are two levels. A decoder checks types, such as list, text, number or quantity. A validation checks values: forms
of names, ranges, choices, and unknown fields. The types of built-in kinds are in the table of patch/. The types of
custom kinds are in `data/`.
"""

from webhook.schema.decode import DecodedValue, Mismatch, decode, has_undeclared_field
from webhook.schema.kinds import decode_object, type_of
from webhook.schema.types import kubernetes_type

__all__ = ["DecodedValue", "Mismatch", "decode", "decode_object", "has_undeclared_field", "kubernetes_type", "type_of"]
