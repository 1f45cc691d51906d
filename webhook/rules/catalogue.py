"""Collects rules in a catalogue.

A rule of checks is a record (rule.py) in the module with its check. webhook/facts/packages.py names these modules.
Policies that have only CEL declare the rules of their validations in `rules.yaml` (policy_rules.py). Rules have the
order of their modules, the most important first. The rules that only `claimgate audit` has are here, because no check
and no policy can find what they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Final, TypeAlias

from webhook.errors import InputError, InputProblem
from webhook.rules.rule import Rule, RuleGroup

Catalogue: TypeAlias = Mapping[str, Rule]
"""Rules by their ids, the most important first."""
_MANIFEST: Final = RuleGroup("manifest", fails="create")
REPEATED_KEY: Final = _MANIFEST.rule(
    "manifest/repeated-key",
    title="A mapping has a key twice",
    why=(
        "kubectl sends only the last value, without a warning, so a Pod can lose its GPUs. kustomize refuses the file. "
        "A decoded object does not have the first value, so only an audit of files finds this mistake."
    ),
    refused_by="kustomize, but not kubectl",
    source="https://yaml.org/spec/1.2.2/#mapping",
    level="warn",
    severity="high",
    fails="silent",
)
UNKNOWN_KIND: Final = _MANIFEST.rule(
    "manifest/unknown-kind",
    title="The API group does not have the kind in this version",
    why=(
        "The API server refuses the object, because it has no resource of this kind. Policies name resources, so no "
        "policy matches the object."
    ),
    refused_by="the API server",
    source="https://kubernetes.io/docs/reference/using-api/api-concepts/",
    level="warn",
    severity="high",
)
RULES_OF_FILES: Final[Catalogue] = {rule.id: rule for rule in (REPEATED_KEY, UNKNOWN_KIND)}
"""The rules that an audit of files has without a policy."""


def rules_of_modules(*modules: ModuleType) -> tuple[Rule, ...]:
    """Return the rules that some modules define or import, in the order of the modules."""
    records = (value for module in modules for value in vars(module).values() if isinstance(value, Rule))
    return tuple({id(rule): rule for rule in records}.values())


class UnlistedRuleError(KeyError):
    """A check reports a rule that no listed module has. The text says how to fix this."""

    def __init__(self, rule: str) -> None:
        super().__init__(
            f"the rule `{rule}` is not listed: add the module of its record to `rules` of the package's row in "
            "webhook/facts/packages.py, then run `make docs`"
        )


class LazyCatalogue(Mapping[str, Rule]):
    """A catalogue that is read when a rule is first looked up. The catalogue must have rules.

    `read` reads the catalogue. `ids` are the ids of the rules in the same order, if they are known in advance.
    """

    def __init__(self, read: Callable[[], Catalogue], ids: Sequence[str] | None = None) -> None:
        self._read = read
        self._known_ids = ids

    @cached_property
    def _rules(self) -> Catalogue:
        return self._read()

    @cached_property
    def _ids(self) -> Mapping[str, None]:
        return dict.fromkeys(self._rules if self._known_ids is None else self._known_ids)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, rule: object) -> bool:
        return rule in self._ids

    def __getitem__(self, rule: str) -> Rule:
        if rule not in self._ids:
            raise UnlistedRuleError(rule)
        return self._rules[rule]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def catalogue_of_rules(rules: Iterable[Rule]) -> Catalogue:
    """Return rules by their ids.

    Raises:
        InputError: several rules have the same id.
    """
    by_id: dict[str, Rule] = {}
    twice = [rule.id for rule in rules if by_id.setdefault(rule.id, rule) is not rule]
    if twice:
        raise InputError(*(InputProblem(message=f"rule `{rule}` is declared twice: remove one") for rule in twice))
    return by_id
