"""A rule that is noise in more than half of all cases is advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.precision.__main__ import folders_in, spoken, table
from tests.precision.judged import Judged, first_repositories, judged
from webhook.facts.subject import SHIPPED

RULES = judged()
LEVELS = SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups)


@pytest.mark.parametrize(("rule", "known"), RULES.items(), ids=RULES)
def test_a_rule_that_is_seldom_useful_is_advice_or_has_changed(rule: str, known: Judged) -> None:
    if not known.is_useful and not known.changed:
        assert LEVELS[rule].level in ("advice", "off")


def test_most_of_the_first_useful_warnings_are_not_advice() -> None:
    rows = first_repositories()
    assert sum(row.useful for row in rows.values()) == 115
    assert sum(row.told for row in rows.values()) >= 105
    assert [rule for rule, row in rows.items() if row.told and LEVELS[rule].level not in ("deny", "warn")] == []
    assert [lost for row in rows.values() for lost in row.lost if ": " not in lost] == []


def test_a_chart_in_a_tree_can_state_the_release(tmp_path: Path) -> None:
    job = """apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: j, namespace: team, labels: {kueue.x-k8s.io/queue-name: user-queue}}
spec: {pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{name: pytorch, image: "x:1"}]}}}}}
"""
    chart = "apiVersion: v2\nname: kueue\nversion: 0.1.0\nappVersion: "
    for name, version in (("old", "v0.18.3"), ("new", "v0.19.2"), ("none", "")):
        (tmp_path / name / "charts/kueue").mkdir(parents=True)
        (tmp_path / name / "jobs").mkdir()
        (tmp_path / name / "jobs/j.yaml").write_text(job)
        if version:
            (tmp_path / name / "charts/kueue/Chart.yaml").write_text(f"{chart}{version}\n")
        found = spoken([tmp_path / name])
        told = [line for line in table(found, is_verbose=False) if "kueue-unmanaged/integration-off" in line]
        assert len(told) == (name == "new"), name


def test_the_table_counts_findings_for_each_folder(tmp_path: Path) -> None:
    claim = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: []}}\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "claim.yaml").write_text(claim)
    first, *lines = table(spoken(folders_in([tmp_path])), is_verbose=True)
    assert first.split() == ["times", "told", "as", "level", "useful/noise/false", "rule"]
    assert any(line.split() == ["2", "warn", "warn", "19/0/0", "resource-claims/deprecated-version"] for line in lines)
    assert any(line.strip().startswith("two/claim.yaml:1: apiVersion: ") for line in lines)
