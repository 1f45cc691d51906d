"""Reads `rules.yaml` in the folder of a policy that has only CEL. The file names a rule for each validation.

group: gpu-portable
policies:
  gpu-portable:            # a policy, and its rules in the order of its validations
  - {rule: vendor-name, title: …, why: …, source: …}
  gpu-portable-claims:
  - rule: vendor-name      # the same rule, in another policy
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from webhook.apimachinery.paths import FieldPath
from webhook.errors import InputError, InputProblem
from webhook.rules.rule import NAME, TEXTS, Rule, default_severity_of_level, rule_errors
from webhook.yamltext import yamlfile

FILE: Final = "rules.yaml"
_OF_EACH_RULE: Final = (*TEXTS, "fails", "issues")
"""The fields that each rule may have."""
_SHARED: Final = ("group", "refused_by", "source", "fails")
_FIELDS: Final = (*_SHARED, "policies")
_RULE: Final = ("rule", *_OF_EACH_RULE)


def read_policy_rules(document: yamlfile.Document) -> Mapping[str, tuple[Rule, ...]]:
    """Return the rules of policies, by the name of the policy.

    Raises:
        InputError: the file has mistakes. The error lists all of them, with line and column.
    """
    reading = RuleReader()
    value = reading.read_known_fields(document, (), document.value, _FIELDS)
    rules: dict[str, tuple[Rule, ...]] = {}
    policies = value.get("policies")
    if not isinstance(policies, dict):
        reading.report_mistake(document, ("policies",), "must be a map of policies, each with a list of rules")
        policies = {}
    if reading.is_rule_or_group_name(document, ("group",), value.get("group")):
        shared = {name: value[name] for name in _SHARED if name in value}
        rules = {
            str(name): tuple(_rules_of_policy(document, reading, name, each, shared)) for name, each in policies.items()
        }
    if reading.problems:
        raise InputError(*reading.problems)
    return rules


def _rules_of_policy(
    document: yamlfile.Document, reading: RuleReader, policy: str, given: Any, shared: Mapping[str, Any]
) -> Iterator[Rule]:
    where: FieldPath = ("policies", policy)
    if not isinstance(given, list):
        reading.report_mistake(document, where, "must be a list of rules, one for each validation of the policy")
        return
    for index, each in enumerate(given):
        path = (*where, index)
        own = reading.read_known_fields(document, path, each, _RULE)
        if own and reading.is_rule_or_group_name(document, (*path, "rule"), own.get("rule")):
            known = reading.rules.get(f"{shared['group']}/{own['rule']}") if own.keys() == {"rule"} else None
            rule = known or reading.create_rule(document, path, {**shared, **own, "name": own["rule"]})
            if rule is not None:
                if rule is not known:
                    reading.add_rule(document, rule, path)
                yield rule


class RuleReader:
    """The rules that were read so far, and the mistakes in them."""

    def __init__(self) -> None:
        self.rules: dict[str, Rule] = {}
        self.problems: list[InputProblem] = []

    def add_rule(self, document: yamlfile.Document, rule: Rule, path: FieldPath) -> None:
        """Add a rule, unless another rule has the same id."""
        if rule.id in self.rules:
            self.report_mistake(document, path, f"rule `{rule.id}` is declared twice: remove one")
        self.rules.setdefault(rule.id, rule)

    def report_mistake(self, document: yamlfile.Document, path: FieldPath, message: str) -> None:
        """Add a mistake with its place to `problems`."""
        self.problems.append(document.problem(path, message))

    def read_known_fields(
        self, document: yamlfile.Document, path: FieldPath, value: Any, known: Iterable[str]
    ) -> Mapping[str, Any]:
        """Return a value that is a map. Report unknown fields, and a value of another type."""
        if not isinstance(value, dict):
            self.report_mistake(document, path, f"must be a map with the fields {', '.join(known)}")
            return {}
        for name in value:
            if name not in known:
                self.report_mistake(document, (*path, name), f"unknown field: expected one of {', '.join(known)}")
        return value

    def is_rule_or_group_name(self, document: yamlfile.Document, path: FieldPath, value: Any) -> bool:
        """Return whether a value is the name of a group or a rule. If not, report the mistake."""
        if isinstance(value, str) and NAME.fullmatch(value):
            return True
        self.report_mistake(document, path, "must be a name of lower case letters, digits and dashes")
        return False

    def create_rule(self, document: yamlfile.Document, path: FieldPath, given: Mapping[str, Any]) -> Rule | None:
        """Return the rule with these fields; None if the fields have mistakes. Level and severity have defaults."""
        wrong = list(rule_errors(given))
        for name, message in wrong:
            self.report_mistake(document, (*path, name), message)
        if wrong:
            return None
        level = given.get("level", "deny")
        texts: dict[str, Any] = {name: " ".join((given.get(name) or "").split()) for name in TEXTS}
        return Rule(
            id=f"{given['group']}/{given['name']}",
            level=level,
            severity=given.get("severity") or default_severity_of_level(level),
            fails=given.get("fails", ""),
            issues=tuple(given.get("issues", ())),
            yields_to=tuple(given.get("yields_to", ())),
            **texts,
        )
