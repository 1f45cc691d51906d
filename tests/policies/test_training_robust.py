"""Training jobs with any value at any place: every rule is evaluated, and its text is readable.

Each node of the published manifests becomes null, and a value of every other type. A null counts as absent. The API
server refuses a value of another type, and an audit of files reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.literals import TABLE, shipped_policies
from tests.rows import all_rows
from tests.thorough import some
from tests.yamldata import documents
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces

POLICIES = shipped_policies("pod-template-shape", "training-jobs", "service-mesh")
MESH = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"istio-injection": "enabled"}}}
DOOR = LocalAnswerer(policies=POLICIES, cluster=ClusterWithAssumedNamespaces(FilesCluster([MESH])))
KINDS = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
MANIFESTS = Path(__file__).parents[1] / "data" / "manifests"
OTHERS = (None, "text", 7, True, ["x"], {"x": 1})
READABLE = re.compile(r"(metadata\.name|spec)[\w.\[\]\"/-]*( \(likewise [^\n]+\))?: [^\n]+")


def jobs() -> Iterator[JSON]:
    for file in sorted(MANIFESTS.rglob("*.yaml")):
        for document in documents(file):
            if isinstance(document, dict) and document.get("kind") in KINDS:
                document["metadata"]["namespace"] = "team"
                yield pytest.param(document, id=f"{file.parent.name}/{file.name}")


def changed(value: JSON) -> Iterator[JSON]:
    """Yield copies of a value. Each copy has a value of another type at one place."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        for other in (*(each for each in OTHERS if type(each) is not type(inner)), *changed(inner)):
            copy = value.copy()
            copy[step] = other
            yield copy


@all_rows("job", jobs)
def test_every_value_at_every_place_gets_a_readable_answer(job: JSON) -> None:
    for spec in (*OTHERS, *some(changed(job["spec"]), 7)):
        attributes = fixtures.attributes_of_object({**job, "spec": spec}, TABLE.row)
        for _, made in run_phases(attributes, "auto", DOOR).decisions:
            assert made.evaluation != "error", (made.policy, made.message, spec)
            assert made.evaluation == "admit" or READABLE.match(made.message), made.message


@all_rows("job", jobs)
def test_a_null_has_the_same_findings_as_an_unset_field(job: JSON) -> None:
    """Every field that is not set becomes null, and the findings stay the same."""

    def said(obj: JSON) -> list[str]:
        decisions = run_phases(fixtures.attributes_of_object(obj, TABLE.row), "auto", DOOR).decisions
        return [made.message for _, made in decisions if made.evaluation == "deny"]

    nothing = dict.fromkeys(("nprocPerNode", "elasticPolicy", "slotsPerWorker", "mpiImplementation", "successPolicy"))
    nothing["runPolicy"] = dict.fromkeys(("managedBy", "cleanPodPolicy", "backoffLimit", "schedulingPolicy"))
    spec = {**nothing, **job["spec"]}
    spec["runPolicy"] = {**nothing["runPolicy"], **(spec["runPolicy"] or {})}
    assert said({**job, "spec": spec}) == said(job)
