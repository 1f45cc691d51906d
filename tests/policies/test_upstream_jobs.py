"""The policies on training jobs refuse what the operators' own code refuses, and otherwise only jobs that fail later.

tests/data/training/upstream.jsonl has random jobs with the results of upstream's validation.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.literals import TABLE, shipped_policies
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON, Operation
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.rules.decisions import ValidationAction

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "training" / "upstream.jsonl").read_text().splitlines()
]
DOOR = LocalAnswerer(
    policies=shipped_policies("training-jobs"),
    cluster=ClusterWithAssumedNamespaces(FilesCluster()),
)
LATER = {
    # fields that upstream does not check, and the consequence
    "roles-required": "no pod is ever made",
    "restart-policy": "no API server takes the pods",
    "not-negative": "the job fails at its first look",
    "name-length": "no API server takes the last service",
    "container-name-required": "no API server takes the pods",
    "slots-not-negative": "mpirun cannot read the hostfile of an MPIJob v1",
    "queue-immutable": "the rule of the CRD refuses it",
}
LATER_BETA = {"image-required": "no API server takes the pods"}


def problems(case: JSON, action: ValidationAction) -> list[str]:
    attributes = dataclasses.replace(fixtures.attributes_of_object(case["object"], TABLE.row), is_plain=False)
    if "old" in case:
        attributes = dataclasses.replace(attributes, operation=Operation.UPDATE, old_object=case["old"])
    decisions = run_phases(attributes, "auto", DOOR).decisions
    assert all(made.evaluation != "error" for _, made in decisions)
    return [
        problem.code.removeprefix("training-job/")
        for _, made in decisions
        if made.evaluation == "deny" and action in made.actions
        for problem in made.problems
    ]


@pytest.mark.parametrize("kind", ["PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob"])
def test_objects_that_upstream_refuses_are_refused_and_few_other_objects(kind: str) -> None:
    for case in CASES:
        if case["object"]["kind"] != kind:
            continue
        found = problems(case, ValidationAction.DENY)
        if case["refused"]:
            # No webhook refuses MPIJobs: a stored problem may be changed, and is reported.
            stored = kind == "MPIJob" and "old" in case and problems(case, ValidationAction.WARN)
            assert found or stored, case
            continue
        later = LATER | (LATER_BETA if case["object"]["apiVersion"].endswith("v2beta1") else {})
        assert [each for each in found if each not in later] == [], case


def test_the_recorded_cases_cover_every_kind_and_result() -> None:
    found = {(case["object"]["kind"], case["object"]["apiVersion"], bool(case["refused"])) for case in CASES}
    assert len(found) == 14
    assert {case["refused"] for case in CASES} == {"", "error", "panic"}
