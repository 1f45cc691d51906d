"""The types of all values of an object, and the mistakes in values that have another type.

Two levels. Types, for a decoder: object, list, text, number, truth, quantity, and the like. Values, for a validation:
forms of names, ranges, choices, fields that do not exist. The declarations are data: those of Kubernetes' own kinds
come from the table of patch/, those of custom kinds are in `data/`. Knows no rule of any API.
"""

from webhook.schema.decode import DecodedValue, Mismatch, decode, has_undeclared_field
from webhook.schema.kinds import decode_object, type_of
from webhook.schema.types import kubernetes_type

__all__ = ["DecodedValue", "Mismatch", "decode", "decode_object", "has_undeclared_field", "kubernetes_type", "type_of"]
