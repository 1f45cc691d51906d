"""Declarations of facts and checks, the registry of facts and checks, and the subject: the object that they read.

- A `Fact` is a CEL variable with a type, the kinds that it looks up, and the function that computes the value. Each
  package declares its facts as `FACTS`, mostly in `fact.py`.
- A `Check` is validation code for an API. It reports what is wrong with an object and decides nothing. A package lists
  its checks as `CHECKS`. The rules of checks are records in the modules that find the problems. Policies name groups
  of checks and decide what follows from a problem.
- The `FactRegistry` has the facts, checks and rules of the packages that packages.py lists. It imports a package only
  when an object needs a check of the package or a policy reads a fact of the package, so that claimgate starts fast.
  declared.json has the declarations of the packages, so that they are known without an import.
- A `Subject` is one object of one request, with everything that facts and checks may read. All policies with the same
  assumptions about the cluster share one subject. A fact, or another result that several policies need, is computed
  once. The object is the object of the request, an object inside this object, or a virtual Pod of a template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec import field as struct_field

from webhook.apimachinery.attributes import JSON, Attributes, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.cel.types import Type
from webhook.cluster.interest import Interest
from webhook.deadline import Deadline
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.declared import CheckScope, Declarations, GroupKind, no_declarations, shipped_declarations
from webhook.facts.fact import FactResult, FactStructure
from webhook.facts.kinds import POD
from webhook.facts.packages import PACKAGES, FactPackage
from webhook.facts.view import ClusterView
from webhook.rules.catalogue import Catalogue, LazyCatalogue, catalogue_of_rules, rules_of_modules
from webhook.rules.problem import Problem
from webhook.rules.rule import Rule
from webhook.schema import Mismatch, decode_object
from webhook.typed.objects import Metadata, Object
from webhook.typed.pods import Pod
from webhook.typed.view import ReadingContext
from webhook.workloads.table import Table

WORK: Final = 10
"""The charge for each result of `Subject.once`, in addition to the charge for walked elements. Without this charge,
many checks that walk no element would never read the clock.
"""
_MOST_KINDS: Final = 1000
"""The most kinds for which checks are cached. The number is limited because files may name any kind."""
_T = TypeVar("_T")
Whole = TypeVar("Whole", bound=Object)
_UNKNOWN: Final = object()


class Fact(Struct, frozen=True, kw_only=True):
    """A fact, as its package declares it.

    Args:
        name: the CEL name, which a policy declares in `claimgate.dev/facts`.
        about: the meaning of the fact, in a few sentences.
        examples: expressions that read the fact; the first expression is the most typical.
        type: the CEL type of the value.
        structures: the structures inside the value.
        compute: computes the fact of one object, and charges each walked element to the subject's deadline.
        lookups: the kinds that the fact looks up in the cluster, with the fields that it reads. A live view has only
            the kinds and fields that a look-up names.
        expanded: the meanings of fields for a pod template (`claimgate.dev/expand: pods`), by field, where they
            differ from the meanings for other objects. The key "" is the whole fact.
    """

    name: str
    about: str
    examples: tuple[str, ...]
    type: Type
    structures: tuple[FactStructure, ...]
    compute: Callable[[Subject], FactResult]
    lookups: tuple[Interest, ...] = ()
    expanded: Mapping[str, str] = struct_field(default_factory=dict)


class Check(CheckScope, frozen=True, kw_only=True):
    """A check of the objects in its scope, as its package declares it.

    Args:
        group: the group of rules that the check may report; several checks may share a group.
        run: walks the object and yields the problems; charges each walked element to the subject's deadline.
        of_made_objects: whether the check also runs for an object that a controller created for another object. If not,
            it runs only for the other object.
        when: returns whether the check may report anything, called with `Subject.once`; None if the check always
            runs.
        lookups: the kinds that the check looks up in the cluster, with the fields that it reads. A live view has only
            the kinds and fields that a look-up names. For every check of TrainJobs, policy/interests.py adds the kinds
            from which Trainer creates the pods.
        lookups_of_audits: the kinds that the check looks up for advice that only audits show. A server does not have
            objects of these kinds.
        kinds_in_files: the groups and kinds that the check looks up only in files. A live view does not have objects of
            these kinds: reading them needs too many rights, or there are too many objects.
        concerns: returns whether the check may concern an object, given as plain JSON of any shape. If no check
            concerns an object, an audit does not report that the object cannot be read. None if the check concerns all
            objects of its kinds.
    """

    group: str
    run: Callable[[Subject], Iterable[Problem]]
    lookups: tuple[Interest, ...] = ()
    lookups_of_audits: tuple[Interest, ...] = ()
    kinds_in_files: frozenset[tuple[str, str]] = frozenset()
    of_made_objects: bool = True
    when: Callable[[Subject], bool] | None = None
    concerns: Callable[[JSON], bool] | None = None


def group_kinds_of_types(*types: type[Object]) -> frozenset[tuple[str, str]]:
    """Return the groups and kinds of types of objects, for the field `kinds` of a check."""
    return frozenset((each.gvk.group, each.gvk.kind) for each in types)


@dataclass(frozen=True, slots=True)
class FactRegistry:
    """The packages that policies may use. `fact_names` are the names of their facts.

    `declared` returns the declarations that are known without an import. Packages without a declaration are imported.
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
            KeyError: the fact does not exist.
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
        """Return the scope of each check of a group, without an import if the scopes are declared."""
        declared = self.declared().groups.get(group)
        return self.checks(group) if declared is None else declared.checks

    def kinds_looked_up_by_group(self, group: str) -> Iterable[GroupKind]:
        """Return the kinds that the checks of a group look up, without an import if the kinds are declared."""
        declared = self.declared().groups.get(group)
        if declared is not None:
            return declared.lookups
        return (
            kind
            for check in self.checks(group)
            for kind in (*(each.kind for each in (*check.lookups, *check.lookups_of_audits)), *check.kinds_in_files)
        )

    def kinds_looked_up_by_fact(self, name: str) -> Iterable[GroupKind]:
        """Return the kinds that a fact looks up, without an import if the kinds are declared."""
        declared = self.declared().facts.get(name)
        return (each.kind for each in self.fact(name).lookups) if declared is None else declared

    def checks_of_kind(self, kind: tuple[str, str], *, is_deleted: bool) -> ChecksOfKind:
        """Return the checks about objects of a group and kind."""
        table = self._of_kinds.get((kind, is_deleted))
        if table is None:
            table = ChecksOfKind(self, kind, is_deleted=is_deleted)
            if len(self._of_kinds) >= _MOST_KINDS:  # an object may wrap objects of any kind
                self._of_kinds.clear()
            self._of_kinds[kind, is_deleted] = table
        return table

    def has_checks_of_field_types(self, groups: tuple[str, ...]) -> bool:
        """Return whether any of these groups has checks for objects with values of wrong types."""
        return any(package.judges_types and not set(groups).isdisjoint(package.groups) for package in self.packages)

    def may_checks_apply_to(self, groups: tuple[str, ...], kind: tuple[str, str], obj: JSON) -> bool:
        """Return whether some check of these groups may concern an object; True if no check is for this kind."""
        checks = [check for group in groups for check in self.checks(group) if check.is_about(kind, is_deleted=False)]
        return not checks or any(check.concerns is None or check.concerns(obj) for check in checks)

    def import_modules(self, groups: Iterable[str]) -> None:
        """Import every module of the packages that have these groups, once before a server forks processes for reviews.
        Otherwise each process would import the modules.
        """
        for name in dict.fromkeys(package.module for package in _packages_with_groups(self.packages, groups)):
            module = import_module(name)
            for each in iter_modules(getattr(module, "__path__", ()), f"{name}."):
                import_module(each.name)

    def rule_catalogue_of_groups(self, groups: tuple[str, ...]) -> Catalogue:
        """Return the rules of some groups. The modules with the rules are imported when an existing rule is looked up.

        This look-up raises InputError for mistakes in the rules, and for an id that several rules have.
        """
        selected, declared = _packages_with_groups(self.packages, groups), self.declared().rules
        ids = None
        if all(package.module in declared for package in selected):
            modules = dict.fromkeys(package.module for package in selected)
            ids = [rule for module in modules for rule in declared[module] if rule.partition("/")[0] in groups]
        return LazyCatalogue(partial(_import_catalogue, self.packages, groups), ids)


class ChecksOfKind(dict[str, "tuple[Check, ...]"]):
    """The checks for objects of one kind, by group. The checks of a group are selected when first needed."""

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
        """Return the parts of a Pod that let checks of these groups run. For a Pod that lacks all of these parts, no
        check of the groups runs. Empty if a check runs for all Pods.
        """
        parts = [scope.of_pods_with for group in groups for scope in self._scopes(group)]
        return frozenset().union(*parts) if all(parts) else frozenset()

    def pod_parts_that_group_needs(self, group: str) -> frozenset[str]:
        """Return `pod_parts_that_checks_need` of one group, computed once."""
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
    selected = _packages_with_groups(packages, groups)
    rules = catalogue_of_rules(rule for package in selected for rule in rules_of_package(package))
    return {name: rule for name, rule in rules.items() if rule.group in groups}


@cache
def rules_of_package(package: FactPackage) -> tuple[Rule, ...]:
    """Import the modules with the rules of a package, and return the rules."""
    return rules_of_modules(*map(import_module, package.rule_modules))


SHIPPED: Final = FactRegistry(PACKAGES, shipped_declarations)
"""The packages of claimgate."""


@dataclass(slots=True, kw_only=True, eq=False)
class Subject:
    """An object, and what facts and checks may read about it.

    Args:
        object: the object; null on DELETE.
        old_object: the object before the request; null if it did not exist.
        written: the object before decoding, with its nulls; null if it is not known.
        attributes: kind, operation and namespace of the request; the kind of a virtual Pod is Pod.
        cluster: the other objects of the cluster, as seen from the request's namespace.
        table: the workload table: the kinds with pods.
        assumptions: the assumptions about the cluster, from the policy's param.
        pods: how many pods a virtual Pod represents; None if the number is not known; 1 for other objects.
        template_of: the kind of the object with the template of a virtual Pod; None for other objects.
        pod_set: the name of the pod set of a virtual Pod, such as its role in a job; "" for other objects.
        is_decoded: whether an API server has decoded the object.
        is_patch: whether a virtual Pod is a part that is merged into a template of another object.
        registry: the existing facts and checks.
        mismatches: the values of wrong types. If there are any, only checks of types run.
        deadline: the deadline to which every walked element is charged.
        group_kind: group and kind of the object.
        checks: the checks of the object's kind, by group.
        omitted: the paths at which `object` lacks a part that the user wrote: a placeholder, or a pod template that
            cannot be decoded. A check that reports a missing field looks here first.
        typed_objects: the object with typed fields, by type. The subjects of the same object with other assumptions
            share this dict.
        pod_parts: the rare parts of a Pod (typed/pod_parts.py); None before the first read.
        results: the results of `once` by function, and the problems of checks by group.

    """

    object: JSON
    old_object: JSON
    attributes: Attributes
    cluster: ClusterView
    table: Table
    written: JSON = None
    assumptions: ClusterAssumptions = field(default_factory=ClusterAssumptions)
    pods: int | None = 1
    template_of: GroupVersionKind | None = None
    pod_set: str = ""
    is_decoded: bool = False
    is_patch: bool = False
    registry: FactRegistry = SHIPPED
    mismatches: tuple[Mismatch, ...] = ()
    omitted: frozenset[FieldPath] = frozenset()
    typed_objects: dict[type[Object], Any] = field(default_factory=dict, repr=False)
    deadline: Deadline = field(init=False)
    group_kind: tuple[str, str] = field(init=False)
    checks: ChecksOfKind = field(init=False, repr=False)
    pod_parts: AbstractSet[str] | None = field(default=None, init=False, repr=False)
    results: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.deadline = self.cluster.deadline
        self.group_kind = self.attributes.kind.group, self.attributes.kind.kind
        self.checks = self.registry.checks_of_kind(self.group_kind, is_deleted=self.object is None)

    @property
    def namespace(self) -> str:
        """Return the namespace of the request; "" for cluster-scoped objects."""
        return self.attributes.namespace

    def cluster_view(self) -> ClusterView:
        """Return the cluster as seen from the object's namespace, in a new view that has noted no missing object."""
        return self.cluster.copy_without_missing_objects()

    def typed(self, kind: type[Whole]) -> Whole:
        """Return the object with typed fields; the result is false on DELETE."""
        known = self.typed_objects.get(kind)
        if known is None:
            reading = ReadingContext(self.deadline, self.omitted, self.is_decoded)
            known = self.typed_objects[kind] = kind.of(self.object, (), reading)
        typed: Whole = known
        return typed

    @property
    def reading_context(self) -> ReadingContext:
        """Return a context for reading parts of the object with typed fields: the deadline and the omitted fields."""
        return ReadingContext(self.deadline, self.omitted)

    @property
    def metadata(self) -> Metadata:
        """Return the metadata of the object, from the typed object that most checks of the kind use."""
        return self.typed(Pod if self.group_kind == POD else Object).metadata

    def typed_old(self, kind: type[Whole]) -> Whole:
        """Return the old object with typed fields; the result is false if there is no old object."""
        return kind.of(self.old_object, (), ReadingContext(self.deadline))

    def fact(self, name: str) -> JSON:
        """Return the value of a fact of the object."""
        return self.fact_result(name).value

    def fact_result(self, name: str) -> FactResult:
        """Return a fact of the object, with the objects that were missing for the fact.

        Raises:
            KeyError: the fact does not exist.
        """
        return self.once(self.registry.fact(name).compute)

    def once(self, compute: Callable[[Subject], _T]) -> _T:
        """Return the result of `compute` for this subject. Only the first call computes it."""
        known: Any = self.results.get(compute, _UNKNOWN)
        if known is _UNKNOWN:
            until = self.deadline
            until.left -= WORK  # as `spend`, without the cost of a call
            if until.left < 0:
                until.check_clock()
            known = self.results[compute] = compute(self)
        result: _T = known
        return result

    def subject_of_inner_object(self, obj: JSON) -> Subject:
        """Return the subject for an object inside this object, decoded as a separate object."""
        group, version, kind = (*str(obj["apiVersion"]).rpartition("/")[::2], str(obj["kind"]))
        return self.subject_of_other_object(
            decode_object(obj, GroupVersionKind(group, version, kind), self.deadline).value
        )

    def subject_of_other_object(
        self, obj: JSON, attributes: Attributes | None = None, template_of: GroupVersionKind | None = None
    ) -> Subject:
        """Return the subject for another decoded object in the same cluster, by default with the attributes of the
        request.
        """
        return Subject(
            object=obj,
            old_object=None,
            attributes=attributes or self.attributes,
            cluster=self.cluster,
            table=self.table,
            assumptions=self.assumptions,
            template_of=template_of,
            registry=self.registry,
        )
