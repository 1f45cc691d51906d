"""Checks parameters for drivers: they must be an object, and the JSON as it was sent must not be too long.

Source: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go validateRawExtension.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.dra.types import OpaqueConfiguration
from webhook.schema.values import Breach
from webhook.unread import Unread

_LARGEST: Final = 10 * 1024
"""k8s.io/api v0.36.1 resource/v1 types.go OpaqueParametersMaxLength, in bytes."""


def parameter_breaches(configurations: Iterable[OpaqueConfiguration]) -> Iterator[Breach]:
    """Yield the breaches of the parameters in some configurations."""
    for opaque in configurations:
        if opaque:
            yield from _breaches_of_parameters(opaque)


def _breaches_of_parameters(opaque: OpaqueConfiguration) -> Iterator[Breach]:
    at, parameters = opaque.path("parameters"), opaque.parameters
    if parameters is None:
        yield Breach(what="missing", at=at, expected="an object that the driver understands")
        return
    length = _length_of_json(parameters)
    if length > _LARGEST:
        yield Breach(what="tooLong", at=at, given=length, expected=str(_LARGEST))
    elif not isinstance(parameters, dict):
        yield Breach(what="parameters", at=at, given=parameters)


def _length_of_json(parameters: JSON) -> int:
    """Return the bytes of parameters as compact JSON, with those of their parts that were not read."""
    unread: list[Unread] = []
    text = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"), default=unread.append)
    return len(text.encode()) + sum(len(part.text.encode()) - len("null") for part in unread)
