"""Shipped policies report mistakes of public manifests, and nothing for the corrected form (public_mistakes.yaml)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.literals import OPTIONS, TABLE
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON, Operation
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.facts.subject import SHIPPED
from webhook.input import shipped
from webhook.policy.load import load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.yamltext import yamlfile

(DOCUMENT,) = yamlfile.read(Path(__file__).with_name("public_mistakes.yaml"))
ROWS: dict[str, Any] = DOCUMENT.value
RULES = SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups)


@cache
def shipped_policies() -> PolicySet:
    return load_policy_set([shipped.policies_folder()], OPTIONS)


def told(row: JSON, obj: JSON) -> Iterator[str]:
    """Yield the code of each problem that is denied or warned about."""
    files = ClusterWithAssumedNamespaces(FilesCluster(row.get("context", ()), is_whole=row.get("isWhole", False)))
    attributes = fixtures.attributes_of_object(obj, TABLE.row)
    if "old" in row:
        attributes = replace(attributes, operation=Operation.UPDATE, old_object=row["old"])
    verdict = run_phases(attributes, "auto", LocalAnswerer(policies=shipped_policies(), cluster=files)).verdict
    for decision in verdict.decisions:
        assert decision.evaluation != "error", decision.message
        if {"Deny", "Warn"} & {*decision.actions}:
            yield from (problem.code for problem in decision.problems)


@pytest.mark.parametrize("name", ROWS)
def test_the_mistake_is_reported_and_the_similar_valid_object_is_not(name: str) -> None:
    row = ROWS[name]
    assert row["told"] in RULES
    assert row["told"] in [*told(row, row["wrong"])]
    assert row["told"] not in [*told(row, row["right"])]


@pytest.mark.parametrize("name", ROWS)
def test_the_corrected_form_is_not_denied_for_another_reason(name: str) -> None:
    row = ROWS[name]
    denied = [rule for rule in told(row, row["right"]) if RULES[rule].level == "deny"]
    assert denied == []
