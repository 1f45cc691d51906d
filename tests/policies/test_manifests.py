"""All findings of the shipped policies about published manifests, reviewed one by one: tests/data/golden/manifests.

Each folder is audited with its own objects as the cluster. `pytest --update-golden tests/policies/test_manifests.py`
rewrites the files, and the difference is reviewed like code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from tests.golden import compare_with_golden_file
from tests.literals import TABLE, shipped_policies
from tests.yamldata import documents
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.rules.decisions import ValidationAction

DATA = Path(__file__).parents[1] / "data"
POLICIES = shipped_policies()

FOLDERS = ("kubeflow", "dra", "kueue", "volcano", "opensandbox")

INVALID = {
    # file -> why it is not valid; only these files have denials
    "dra/nvidia-dra-driver/mig+mps__sharing-demo-claims.yaml": "resource.k8s.io/v1alpha2",
    "dra/nvidia-dra-driver/mig+mps__sharing-demo-job-1.yaml": "`source:` of v1alpha2",
    "dra/nvidia-dra-driver/mig+mps__sharing-demo-job.yaml": "`source:` of v1alpha2",
    "dra/nvidia-dra-driver/selectors__claims.yaml": "resource.k8s.io/v1alpha2",
    "dra/nvidia-dra-driver/selectors__pods.yaml": "`source:` of v1alpha2",
    "kubeflow/kep2782/aug-795c1a553-1.yaml": "requests of v1 without `exactly`, as v1beta1 has them",
    "kubeflow/kep2782/june-06f52b006-1.yaml": "replicated job `Node` is not a DNS label",
    "kubeflow/kep2782/june-06f52b006-2.yaml": "a TrainJob on the runtime of june-06f52b006-1, which has no trainer step",
    "kubeflow/kep2782/june-06f52b006-3.yaml": "manager `user` without a domain, on that runtime",
    "kubeflow/trainer-05-multi-step.yaml": "initializer without its volumeMount, refused since Trainer 2.3",
    "opensandbox/sandbox_v1alpha1_batchsandbox-with-task.yaml": "a number among the arguments of a task, which are texts",
    "volcano/volcano__invalid_jobs_duplicatedTaskName-webhook-deny.yaml": "two tasks with one name, as in upstream's test",
}


def objects(folder: str) -> Iterator[tuple[str, dict]]:
    for file in sorted((DATA / "manifests" / folder).rglob("*.yaml")):
        for document in documents(file):
            if isinstance(document, dict) and document.get("apiVersion") and document.get("kind"):
                yield str(file.relative_to(DATA / "manifests")), document


@dataclass(frozen=True)
class Found:
    file: str
    about: str
    action: str
    policy: str
    severity: str
    message: str

    def __str__(self) -> str:
        return f"    {self.action} [{self.severity or 'unrated'}] {self.policy}: {self.message}\n"


def named(document: dict) -> str:
    metadata = document.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName") or ""
    return f"{document['kind']} {'/'.join(filter(None, (metadata.get('namespace'), name)))}"


@cache
def findings(folder: str) -> tuple[Found, ...]:
    """Return the findings about a folder, in the order of its files and of the policies."""
    known = list(objects(folder))
    door = LocalAnswerer(
        policies=POLICIES, cluster=ClusterWithAssumedNamespaces(FilesCluster(document for _, document in known))
    )
    found = []
    for file, document in known:
        outcome = run_phases(fixtures.attributes_of_object(document, TABLE.row), "auto", door)
        for _, made in outcome.decisions:
            if made.evaluation in ("deny", "error"):
                action = "deny" if ValidationAction.DENY in made.actions or made.kind == "mutating" else "warn"
                action += " (error)" if made.evaluation == "error" else ""
                found.append(Found(file, named(document), action, made.policy, made.severity, made.message))
    return tuple(found)


def written(found: Iterable[Found]) -> str:
    grouped = groupby(found, key=lambda each: (each.file, each.about))
    return "".join(f"{file}: {about}\n{''.join(map(str, said))}" for (file, about), said in grouped)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_valid_manifest_is_denied(folder: str) -> None:
    assert [each for each in findings(folder) if each.action.startswith("deny") and each.file not in INVALID] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_finding_about_published_manifests_is_reviewed(folder: str, pytestconfig: pytest.Config) -> None:
    compare_with_golden_file(DATA / "golden" / "manifests" / f"{folder}.txt", written(findings(folder)), pytestconfig)


def test_every_invalid_manifest_is_reported() -> None:
    denied = {each.file for folder in FOLDERS for each in findings(folder) if each.action.startswith("deny")}
    assert denied == set(INVALID)
