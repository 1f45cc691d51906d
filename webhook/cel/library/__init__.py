"""The functions of the language, one module for each library.

Each module has `FUNCTIONS: tuple[Overload, ...]`, the functions of a library of k8s.io/apiserver or cel-go. The
module's docstring shows the signatures with examples that a test evaluates: `expression // value`, or `expression //
error: the beginning of the message`. Source of the versions: k8s.io/apiserver v0.36.1 pkg/cel/environment/base.go.

Modules are imported on first use, so `--help` does not import them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from webhook.cel.library.declaration import Overload, Version

LIBRARIES = (
    "standard",
    "lists",
    "extended_lists",
    "strings",
    "format_string",
    "regex",
    "url",
    "ip",
    "cidr",
    "quantity",
    "semver",
    "sets",
    "named_format",
    "optional",
    "jsonpatch",
    "authorizer",
)
"""Module names, in the order in which overloads of one name are tried."""

TYPES = ("net.IP", "net.CIDR")
"""Opaque types that an expression can name, as in `type(x) == net.IP`, since 1.30. The API server declares no other
opaque type by name."""


@cache
def all_overloads() -> tuple[Overload, ...]:
    """Return all overloads of all libraries and versions."""
    modules = (import_module(f"{__name__}.{name}") for name in LIBRARIES)
    return tuple(overload for module in modules for overload in module.FUNCTIONS)


@cache
def overloads_of_version(version: Version) -> tuple[Overload, ...]:
    """Return the overloads of one Kubernetes version."""
    return tuple(
        overload
        for overload in all_overloads()
        if overload.since <= version and (overload.until is None or version < overload.until)
    )
