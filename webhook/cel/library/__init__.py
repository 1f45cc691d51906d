"""The functions of the language, with one file for each library, and the Kubernetes versions that have each function.

A library is a module with `FUNCTIONS: tuple[Overload, ...]`, after k8s.io/apiserver and cel-go libraries of the same
name. Its docstring shows each function's signature with examples that a test evaluates: `expression // value`, or
`expression // error: how its text begins`. Source of the versions: k8s.io/apiserver v0.36.1
pkg/cel/environment/base.go.

Modules are imported on first use, so that a program that only prints its help does not import them.
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
"""Module names, in the order in which their overloads of one name are tried."""

TYPES = ("net.IP", "net.CIDR")
"""Opaque types whose names are values in an expression, as in `type(x) == net.IP`, since 1.30. The API server does
not declare the names of other opaque types.
"""


@cache
def all_overloads() -> tuple[Overload, ...]:
    """Return all overloads of all libraries and versions."""
    modules = (import_module(f"{__name__}.{name}") for name in LIBRARIES)
    return tuple(overload for module in modules for overload in module.FUNCTIONS)


@cache
def overloads_of_version(version: Version) -> tuple[Overload, ...]:
    """Return the overloads that one Kubernetes version has."""
    return tuple(
        overload
        for overload in all_overloads()
        if overload.since <= version and (overload.until is None or version < overload.until)
    )
