"""Forms of names that Kubernetes and drivers accept: each form has a name, a test and a description.

Sources: k8s.io/kubernetes v1.36.1 pkg/apis/resource/validation/validation.go (validateQualifiedName, validatePoolName),
pkg/apis/core/validation ValidateCSIDriverName, pkg/apis/core/v1/helper IsExtendedResourceName, and
k8s.io/apimachinery pkg/util/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from webhook.apimachinery.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    forbidden_character_fault,
    label_fault,
    label_value_errors,
    label_value_fault,
    qualified_name_errors,
    qualified_name_fault,
    subdomain_fault,
)

_LONGEST_DRIVER, _LONGEST_ID = 63, 32
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DURATION = re.compile(r"[-+]?(0|(([0-9]++[.]?[0-9]*+|[.][0-9]++)(ns|us|µs|μs|ms|s|m|h))++)")
"""Possessive: otherwise every part of a text of 100,000 digits would be tried, which takes minutes."""
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)
_DEVICE = re.compile(r"[0-9]+|(GPU|MIG)-[0-9A-Za-z/-]+")


def is_dns_label(value: str) -> bool:
    """Return whether a text is a DNS label: a name without dots."""
    return not dns1123_label_errors(value)


def is_subdomain(value: str) -> bool:
    """Return whether a text is a DNS subdomain, as the names of most objects are."""
    return not dns1123_subdomain_errors(value)


def is_driver(value: str) -> bool:
    """Return whether a text is the name of a driver, which may have upper case letters (core validation
    ValidateCSIDriverName).
    """
    return len(value) <= _LONGEST_DRIVER and not dns1123_subdomain_errors(value.lower())


def is_identifier(value: str) -> bool:
    """Return whether a text may be the last part of an attribute's or a capacity's name."""
    return len(value) <= _LONGEST_ID and _IDENTIFIER.fullmatch(value) is not None


def is_capacity_name(value: str) -> bool:
    """Return whether a text is the name of an attribute or a capacity, with or without a domain."""
    domain, slash, id_ = value.partition("/")
    return is_identifier(value) if not slash else is_driver(domain) and is_identifier(id_)


def is_qualified_attribute_name(value: str) -> bool:
    """Return whether a text is an attribute's name with its domain; one with several slashes passes, as in
    Kubernetes.
    """
    return value.count("/") > 1 or ("/" in value and is_capacity_name(value))


def is_extended_resource(value: str) -> bool:
    """Return whether a text is the name of an extended resource that a quota can name with `requests.`."""
    if "/" not in value or "kubernetes.io/" in value or value.startswith("requests."):
        return False
    return not qualified_name_errors(f"requests.{value}")


def _fault_of_identifier(name: str) -> str:
    if len(name) > _LONGEST_ID:
        return f"it has {len(name)} characters, and at most {_LONGEST_ID} are allowed"
    if name[:1].isdigit():
        return f"it begins with the digit `{name[0]}`"
    return forbidden_character_fault(name, "_") or "it is empty"


def _fault_of_capacity_name(name: str) -> str:
    domain, slash, id_ = name.partition("/")
    if slash and not is_driver(domain):
        return f"before the slash, {subdomain_fault(domain.lower())}"
    return _fault_of_identifier(id_ if slash else name)


def _fault_of_attribute_name(name: str) -> str:
    return _fault_of_capacity_name(name) if "/" in name else "it has no domain"


def _extended_resource_fault(name: str) -> str:
    if "/" not in name:
        return "it has no domain"
    if "kubernetes.io/" in name:
        return "its domain is kubernetes.io"
    return "it begins with `requests.`" if name.startswith("requests.") else qualified_name_fault(name)


def is_pool(value: str) -> bool:
    """Return whether a text is the name of a pool of devices: subdomains separated by slashes."""
    return len(value) <= 253 and all(map(is_subdomain, value.split("/")))


def is_duration(value: str) -> bool:
    """Return whether a text is a duration as Go writes it (time.ParseDuration)."""
    return _DURATION.fullmatch(value) is not None


_LABEL = "at most 63 lower-case letters, digits and dashes, starting and ending with a letter or digit"
_SUBDOMAIN = "lower-case letters, digits, dashes and dots, starting and ending with a letter or digit"
_KEY = "at most 63 letters, digits, dashes, dots and underscores, with or without a domain and a slash before them"
FORMS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "label": (is_dns_label, _LABEL),
    "subdomain": (is_subdomain, _SUBDOMAIN),
    "driver": (is_driver, "the name of a driver: at most 63 letters, digits, dashes and dots"),
    "attribute": (is_qualified_attribute_name, "a domain, a slash, and at most 32 letters, digits and underscores"),
    "capacity": (
        is_capacity_name,
        "at most 32 letters, digits and underscores, with or without a domain and a slash before them",
    ),
    "extendedResource": (
        is_extended_resource,
        "a name with a domain other than kubernetes.io, such as example.com/gpu",
    ),
    "pool": (is_pool, "lower-case names separated by slashes, with at most 253 characters in all"),
    "labelKey": (lambda value: not qualified_name_errors(value), _KEY),
    "annotationKey": (lambda value: not qualified_name_errors(value.lower()), _KEY),
    "labelValue": (
        lambda value: not label_value_errors(value),
        "at most 63 letters, digits, dashes, dots and underscores",
    ),
    "nvidiaDevice": (lambda value: _DEVICE.fullmatch(value) is not None, "an index from 0 or the UUID of a device"),
    "duration": (is_duration, "a duration such as 30s or 1h30m"),
    "mountPath": (lambda value: value != "" and ":" not in value, "a path without a colon"),
    "absolutePath": (lambda value: value.startswith("/"), "a path that begins with /"),
    "decimal": (lambda value: _DECIMAL.fullmatch(value) is not None, "a number in quotes such as 0.5"),
    "text": (lambda _: True, "a string"),
    "some": (lambda value: value != "", "a string that is not empty"),
}
_FAULTS: Final[Mapping[str, Callable[[str], str]]] = {
    "label": label_fault,
    "subdomain": subdomain_fault,
    "driver": lambda value: subdomain_fault(value.lower()),
    "attribute": _fault_of_attribute_name,
    "capacity": _fault_of_capacity_name,
    "extendedResource": _extended_resource_fault,
    "labelKey": qualified_name_fault,
    "annotationKey": qualified_name_fault,
    "labelValue": label_value_fault,
}
_FAULT_OF: Final = {FORMS[form][1]: fault for form, fault in _FAULTS.items()}


def fault_of_name(value: str, expected: str) -> str:
    """Return the fault of a name of an expected form: `it contains `-``; "" if the form is not a name."""
    return _FAULT_OF[expected](value) if expected in _FAULT_OF else ""
