"""An owner reference that a user wrote does not disable a rule. The reference counts only if objects of its kind create
such objects.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import pytest

from tests.literals import TABLE
from tests.rows import some_quickly
from webhook.admission import phases
from webhook.apimachinery.attributes import Operation, parse_group_kind
from webhook.cli import run_command_line

ROOT = Path(__file__).parents[2]
OWNERS = {
    "a kind that creates nothing": {"apiVersion": "v1", "kind": "ConfigMap"},
    "an unknown kind": {"apiVersion": "example.com/v1", "kind": "Owner"},
    "a kind that creates other objects": {"apiVersion": "tekton.dev/v1", "kind": "PipelineRun"},
}
"""Owners that could not have created any object of the suites"""


def _told(verdict):
    return [(each.policy, each.rule, each.path, each.action, each.message) for each in verdict.decisions]


def differences(owners_of_an_object):
    """Return the answers that change after each object names an owner, and the number of compared answers."""
    found, asked, names = [], 0, cycle(OWNERS)
    ask = phases.LocalAnswerer.answer

    def answer(door, attributes, phase):
        nonlocal asked
        verdict = ask(door, attributes, phase)
        obj = attributes.object
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        if attributes.operation != Operation.CREATE or not isinstance(metadata, dict) or "ownerReferences" in metadata:
            return verdict
        for name in islice(names, owners_of_an_object):
            reference = {**OWNERS[name], "name": "o", "uid": "u", "controller": True}
            owned = replace(attributes, object={**obj, "metadata": {**metadata, "ownerReferences": [reference]}})
            asked += 1
            if _told(ask(door, owned, phase)) != _told(verdict):
                found.append((name, attributes.kind.kind, _told(verdict)))
        return verdict

    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(ROOT):
        patch.setattr(phases.LocalAnswerer, "answer", answer)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            run_command_line(["test", "policies"])
    return found, asked


@pytest.mark.parametrize("owners_of_an_object", some_quickly([1, len(OWNERS)], 2))
def test_an_owner_that_does_not_create_such_objects_disables_no_rule(owners_of_an_object):
    """In quick runs, each object names the next owner; in slow runs, each object names every owner."""
    found, asked = differences(owners_of_an_object)
    assert asked > 1_000 * owners_of_an_object
    assert found == []


def test_the_table_names_kinds_that_can_be_created():
    named = {
        kind for row in TABLE.rows for kind in (*row.makes, *(made for each in row.between for made in each.makes))
    }
    unknown = [kind for kind in named if TABLE.row(*parse_group_kind(kind)) is None]
    assert unknown == []


@pytest.mark.parametrize(
    ("owner", "made"),
    [
        ("ReplicaSet.apps", "Pod"),
        ("Deployment.apps", "ReplicaSet.apps"),
        ("CronJob.batch", "Job.batch"),
        ("JobSet.jobset.x-k8s.io", "Job.batch"),
        ("TrainJob.trainer.kubeflow.org", "JobSet.jobset.x-k8s.io"),
        ("PyTorchJob.kubeflow.org", "Pod"),
        ("RayJob.ray.io", "RayCluster.ray.io"),
        ("CronJob.batch.volcano.sh", "Job.batch.volcano.sh"),
        ("PodClique.grove.io", "Pod"),
        ("Job.batch.volcano.sh", "PodGroup.scheduling.volcano.sh"),
    ],
)
def test_the_kinds_that_a_controller_creates_are_known(owner, made):
    assert TABLE.does_kind_make(parse_group_kind(owner), parse_group_kind(made))


@pytest.mark.parametrize(
    ("owner", "made"),
    [
        ("ConfigMap", "Job.batch"),
        ("Pod", "Pod"),
        ("Deployment.apps", "Pod"),
        ("CronJob.batch", "Job.batch.volcano.sh"),
        ("TrainingRuntime.trainer.kubeflow.org", "JobSet.jobset.x-k8s.io"),
        ("ConfigMap", "PodGroup.scheduling.volcano.sh"),
    ],
)
def test_an_owner_that_does_not_create_the_kind_is_ignored(owner, made):
    assert not TABLE.does_kind_make(parse_group_kind(owner), parse_group_kind(made))
