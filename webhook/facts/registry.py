"""Facts, checks and rules by their names, from the packages that `packages.py` lists.

A package is imported when one of its checks is about an object, or one of its facts is read, so that a start costs what
is used. The declarations of a package are known from declared.json without an import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

from webhook.apimachinery.attributes import JSON
from webhook.facts.declared import CheckScope, Declarations, GroupKind, no_declarations, shipped_declarations
from webhook.facts.fact import Fact
from webhook.facts.packages import PACKAGES, FactPackage
from webhook.rules.catalogue import Catalogue, LazyCatalogue, catalogue_of_rules, rules_of_modules
from webhook.rules.rule import Rule

if TYPE_CHECKING:
    from webhook.facts.check import Check

_MOST_KINDS: Final = 1000
"""Kinds of objects with listed checks: files may name any kind."""


@dataclass(frozen=True, slots=True)
class FactRegistry:
    """The packages that policies may ask for. `fact_names` are the facts that they have.

    `declared` are the declarations of the packages that were written ahead; the modules say the same of all others.
    """

    packages: tuple[FactPackage, ...]
    declared: Callable[[], Declarations] = field(default=no_declarations, compare=False, repr=False)
    fact_names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    _facts: dict[str, Fact] = field(default_factory=dict, compare=False, repr=False)
    _checks: dict[str, Sequence[Check]] = field(default_factory=dict, compare=False, repr=False)
    _of_kinds: dict[tuple[tuple[str, str], bool], ChecksOfKind] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fact_names", tuple(name for package in self.packages for name in package.facts))

    @property
    def check_groups(self) -> tuple[str, ...]:
        """Return every group of checks."""
        return tuple(group for package in self.packages for group in package.groups)

    def fact(self, name: str) -> Fact:
        """Return a fact by its CEL name.

        Raises:
            KeyError: it does not exist.
        """
        known = self._facts.get(name)
        if known is None:
            known = self._facts[name] = _import_fact(self.packages, name)
        return known

    def checks(self, group: str) -> Sequence[Check]:
        """Return the checks of a group."""
        known = self._checks.get(group)
        if known is None:
            known = self._checks[group] = _import_checks(self.packages, group)
        return known

    def scopes_of_checks(self, group: str) -> Sequence[CheckScope]:
        """Return the kinds that each check of a group concerns, without an import if they are declared."""
        declared = self.declared().groups.get(group)
        return self.checks(group) if declared is None else declared.checks

    def kinds_looked_up_by_group(self, group: str) -> Iterable[GroupKind]:
        """Return the group and kind of the look-ups of a group of checks, without an import if they are declared."""
        declared = self.declared().groups.get(group)
        if declared is not None:
            return declared.lookups
        return (each.kind for check in self.checks(group) for each in (*check.lookups, *check.lookups_of_audits))

    def kinds_looked_up_by_fact(self, name: str) -> Iterable[GroupKind]:
        """Return the group and kind of the look-ups of a fact, without an import if they are declared."""
        declared = self.declared().facts.get(name)
        return (each.kind for each in self.fact(name).lookups) if declared is None else declared

    def checks_of_kind(self, kind: tuple[str, str], *, is_deleted: bool) -> ChecksOfKind:
        """Return the checks about objects of a group and kind."""
        table = self._of_kinds.get((kind, is_deleted))
        if table is None:
            table = ChecksOfKind(self, kind, is_deleted=is_deleted)
            if len(self._of_kinds) >= _MOST_KINDS:  # users name kinds, in what an object wraps
                self._of_kinds.clear()
            self._of_kinds[kind, is_deleted] = table
        return table

    def has_checks_of_field_types(self, groups: tuple[str, ...]) -> bool:
        """Return whether any of these groups has checks of objects with fields of a wrong type."""
        return any(package.judges_types and not set(groups).isdisjoint(package.groups) for package in self.packages)

    def may_checks_apply_to(self, groups: tuple[str, ...], kind: tuple[str, str], obj: JSON) -> bool:
        """Return whether checks of some groups may be about an object of a group and kind, of its types or not."""
        checks = [check for group in groups for check in self.checks(group) if check.is_about(kind, is_deleted=False)]
        return not checks or any(check.concerns is None or check.concerns(obj) for check in checks)

    def import_modules(self, groups: Iterable[str]) -> None:
        """Import every module of the packages with some groups: checks import modules when they need them, and a
        worker that a server forks would import them again for each review.
        """
        for name in dict.fromkeys(package.module for package in _packages_with_groups(self.packages, groups)):
            module = import_module(name)
            for each in iter_modules(getattr(module, "__path__", ()), f"{name}."):
                import_module(each.name)

    def rule_catalogue_of_groups(self, groups: tuple[str, ...]) -> Catalogue:
        """Return the rules of some groups; their modules are imported when an existing rule is looked up.

        Looking for one raises InputError for every mistake in them, and for an id that several rules have.
        """
        asked, declared = _packages_with_groups(self.packages, groups), self.declared().rules
        ids = None
        if all(package.module in declared for package in asked):
            modules = dict.fromkeys(package.module for package in asked)
            ids = [rule for module in modules for rule in declared[module] if rule.partition("/")[0] in groups]
        return LazyCatalogue(partial(_import_catalogue, self.packages, groups), ids)


class ChecksOfKind(dict[str, "tuple[Check, ...]"]):
    """The checks of each group for objects of one kind; listed when a group is first needed."""

    __slots__ = ("_is_deleted", "_kind", "_needed_parts", "_registry")

    def __init__(self, registry: FactRegistry, kind: tuple[str, str], *, is_deleted: bool) -> None:
        super().__init__()
        self._registry = registry
        self._kind = kind
        self._is_deleted = is_deleted
        self._needed_parts: dict[str, frozenset[str]] = {}

    def __missing__(self, group: str) -> tuple[Check, ...]:
        checks = self._registry.checks(group) if any(self._scopes(group)) else ()
        about = tuple(each for each in checks if each.is_about(self._kind, is_deleted=self._is_deleted))
        self[group] = about
        return about

    def _scopes(self, group: str) -> Iterator[CheckScope]:
        for scope in self._registry.scopes_of_checks(group):
            if scope.is_about(self._kind, is_deleted=self._is_deleted):
                yield scope

    def pod_parts_that_checks_need(self, groups: Iterable[str]) -> frozenset[str]:
        """Return the parts of a Pod that checks of groups need, at least one of them; () if some check needs none."""
        parts = [scope.of_pods_with for group in groups for scope in self._scopes(group)]
        return frozenset().union(*parts) if all(parts) else frozenset()

    def pod_parts_that_group_needs(self, group: str) -> frozenset[str]:
        """Do as `pod_parts_that_checks_need` for one group, which most Pods ask about in vain."""
        parts = self._needed_parts.get(group)
        if parts is None:
            parts = self._needed_parts[group] = self.pod_parts_that_checks_need((group,))
        return parts


def _import_fact(packages: tuple[FactPackage, ...], name: str) -> Fact:
    for package in packages:
        if name in package.facts:
            declared: tuple[Fact, ...] = import_module(package.fact_module).FACTS
            return next(each for each in declared if each.name == name)
    raise KeyError(name)


def _import_checks(packages: tuple[FactPackage, ...], group: str) -> Sequence[Check]:
    package = next(package for package in packages if group in package.groups)
    declared: tuple[Check, ...] = import_module(package.checks_module).CHECKS
    return tuple(check for check in declared if check.group == group)


def _packages_with_groups(packages: Iterable[FactPackage], groups: Iterable[str]) -> list[FactPackage]:
    return [package for package in packages if not set(groups).isdisjoint(package.groups)]


@cache
def _import_catalogue(packages: tuple[FactPackage, ...], groups: tuple[str, ...]) -> Catalogue:
    asked = _packages_with_groups(packages, groups)
    rules = catalogue_of_rules(rule for package in asked for rule in rules_of_package(package))
    return {name: rule for name, rule in rules.items() if rule.group in groups}


@cache
def rules_of_package(package: FactPackage) -> tuple[Rule, ...]:
    """Import the modules with a package's rules and return the rules."""
    return rules_of_modules(*map(import_module, package.rule_modules))


SHIPPED: Final = FactRegistry(PACKAGES, shipped_declarations)
"""The packages of claimgate."""
