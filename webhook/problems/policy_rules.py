"""The rules of policies that are CEL alone: `rules.yaml` beside a policy names each of its validations.

group: gpu-portable
policies:
  gpu-portable:            # a policy, and its rules in the order of its validations
  - {rule: vendor-name, title: …, why: …, source: …}
  gpu-portable-claims:
  - rule: vendor-name      # the same rule, in another policy
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webhook import yamlfile
from webhook.errors import InputError
from webhook.paths import FieldPath
from webhook.problems.catalogue import OWN, Reading, Rule

FILE: Final = "rules.yaml"
_SHARED: Final = ("group", "refused_by", "source", "fails")
_FIELDS: Final = (*_SHARED, "policies")
_RULE: Final = ("rule", *OWN)


def read(document: yamlfile.Document) -> Mapping[str, tuple[Rule, ...]]:
    """Policies with their rules.

    Raises:
        InputError: every mistake, with line and column.
    """
    reading = Reading()
    value = reading.fields(document, (), document.value, _FIELDS)
    rules: dict[str, tuple[Rule, ...]] = {}
    policies = value.get("policies")
    if not isinstance(policies, dict):
        reading.refuse(document, ("policies",), "must be a map of policies, each with a list of rules")
        policies = {}
    if reading.is_name(document, ("group",), value.get("group")):
        shared = {name: value[name] for name in _SHARED if name in value}
        rules = {str(name): tuple(_rules(document, reading, name, each, shared)) for name, each in policies.items()}
    if reading.problems:
        raise InputError(*reading.problems)
    return rules


def _rules(
    document: yamlfile.Document, reading: Reading, policy: str, given: Any, shared: Mapping[str, Any]
) -> Iterator[Rule]:
    where: FieldPath = ("policies", policy)
    if not isinstance(given, list):
        reading.refuse(document, where, "must be a list of rules, one for each validation of the policy")
        return
    for index, each in enumerate(given):
        path = (*where, index)
        own = reading.fields(document, path, each, _RULE)
        if own and reading.is_name(document, (*path, "rule"), own.get("rule")):
            known = reading.rules.get(f"{shared['group']}/{own['rule']}") if own.keys() == {"rule"} else None
            rule = known or reading.rule(document, path, {**shared, **own, "name": own["rule"]})
            if rule is not None:
                if rule is not known:
                    reading.keep(document, rule, path)
                yield rule
