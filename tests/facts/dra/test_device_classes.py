"""Findings about device classes and taint rules beyond the cases of the policies."""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.check import problems_of_group


def rules(version: str, spec: JSON) -> list[str]:
    rule = {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
    problems = problems_of_group("device-classes", subject({**rule, "spec": spec})).problems
    return [problem.code.removeprefix("device-classes/") for problem in problems]


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_a_value_of_another_type_is_left_to_the_rules_about_types(version: str) -> None:
    """No release serves v1 or v1beta1 of DeviceTaintRule, so no schema decodes these versions."""
    taint = {"key": 1, "value": "A b", "effect": "NoSchedule"}
    assert "name-format" in rules(version, {"taint": taint, "deviceSelector": {"driver": "d"}})
