"""Which packages of this room have what: the one list that names them. Nothing registers itself when it is imported.

A package is imported when a policy asks for something of it, so that start-up costs what is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

from webhook.facts.fact import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One package: its name, and the facts that `FACTS` of its `fact.py` declares."""

    name: str
    facts: tuple[str, ...] = ()


PACKAGES: Final = (
    Package(name="pods", facts=("podSets",)),
    Package(name="gpu", facts=("gpu", "portableGpu")),
    Package(name="dra", facts=("dra", "inventory")),
    Package(name="scheduling", facts=("podGroup", "priorities")),
    Package(name="trainer", facts=("trainer", "running")),
    Package(name="training_jobs", facts=("training",)),
    Package(name="opensandbox", facts=("sandbox",)),
)


def fact_names() -> tuple[str, ...]:
    """Every fact that a policy may ask for."""
    return tuple(name for package in PACKAGES for name in package.facts)


@cache
def fact(name: str) -> Fact:
    """A fact by its CEL name.

    Raises:
        KeyError: there is none.

    """
    for package in PACKAGES:
        if name in package.facts:
            declared: tuple[Fact, ...] = import_module(f"{__package__}.{package.name}.fact").FACTS
            return next(each for each in declared if each.name == name)
    raise KeyError(name)
