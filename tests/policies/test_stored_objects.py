"""A stored object that breaks a rule still accepts updates of fields that the rule does not read.

Every bad example of every suite is stored. Then controllers or people change its finalizers, labels, annotations, status
and replicas. Fields that a rule may read (an image, a number) can also change, unless the webhook of the API or the API
server refuses this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.literals import OPTIONS
from tests.rows import some_quickly
from webhook.apimachinery.attributes import JSON, Operation
from webhook.facts.subject import SHIPPED
from webhook.input import shipped
from webhook.policy.load import load_policy_set
from webhook.rules.rule import Rule
from webhook.suites import own
from webhook.suites.case import Request, answer_of_case
from webhook.suites.files import Suite

FOLDERS = sorted(path.parent for path in Path(shipped.policies_folder()).glob("*/suite.yaml"))


def without_finalizers(obj: JSON) -> tuple[JSON, JSON]:
    """Return an object in deletion without finalizers, and the same object with the finalizer that its controller
    removes.
    """
    gone = {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {**obj, "metadata": gone}, {**obj, "metadata": {**gone, "finalizers": ["example.org/x"]}}


def with_labels(obj: JSON) -> tuple[JSON, JSON]:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "example.org/seen": "yes"}
    annotations = {**(metadata.get("annotations") or {}), "example.org/seen": "yes"}
    return {**obj, "metadata": {**metadata, "labels": labels, "annotations": annotations}}, obj


def with_status(obj: JSON) -> tuple[JSON, JSON]:
    status = obj.get("status") if isinstance(obj.get("status"), dict) else {}
    return {**obj, "status": {**status, "observedGeneration": 7}}, obj


def with_replicas(obj: JSON) -> tuple[JSON, JSON] | None:
    """Return an object after `kubectl scale --replicas=0`, and before; None if it has no replicas."""
    spec = obj.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    if type(replicas) is not int or replicas < 1:
        return None
    return {**obj, "spec": {**spec, "replicas": 0}}, obj


CHANGES = {"finalizers": without_finalizers, "labels": with_labels, "status": with_status, "replicas": with_replicas}


def stored(folder: Path) -> Iterator[tuple[str, Request, JSON]]:
    """Yield the name, the request and the object of each bad example."""
    suite = Suite(file=folder / "suite.yaml", root=folder)
    policies = load_policy_set([folder], OPTIONS)
    for case in own.cases(suite):
        if case.expect.allowed or case.expect.errors:
            continue
        request = own.request_of_case(case, suite, lambda: policies, OPTIONS)
        obj = request.attributes.object
        if obj is not None and isinstance(obj.get("metadata"), dict) and not request.attributes.sub_resource:
            yield case.name, request, obj


def updated(request: Request, now: JSON, old: JSON, sub_resource: str = "") -> Request:
    given = request.attributes
    made = replace(
        given, operation=Operation.UPDATE, object=deepcopy(now), old_object=deepcopy(old), sub_resource=sub_resource
    )
    return structs.replace(request, attributes=made)


def denials(name: str, request: Request, change: str, obj: JSON) -> Iterator[str]:
    pair = CHANGES[change](obj)
    if pair is None:
        return
    for sub_resource in ("", "status") if change == "status" else ("",):
        verdict = answer_of_case(updated(request, *pair, sub_resource)).verdict
        if not verdict.allowed:
            yield f"{name}: {verdict.status and verdict.status.message}"


def containers(value: Any) -> Iterator[JSON]:
    """Yield the containers of every list `containers` inside a value."""
    for name, each in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        if name == "containers" and isinstance(each, list):
            yield from (one for one in each if isinstance(one, dict))
        else:
            yield from containers(each)


def with_image(obj: JSON) -> tuple[JSON, JSON] | None:
    new = deepcopy(obj)
    pulled = [each for each in containers(new) if isinstance(each.get("image"), str)]
    for each in pulled:
        each["image"] = "registry.example/other:2"
    return (new, obj) if pulled else None


def with_new_field(obj: JSON) -> tuple[JSON, JSON] | None:
    return ({**obj, "spec": {**obj["spec"], "aNewField": "x"}}, obj) if isinstance(obj.get("spec"), dict) else None


def with_another_number_of_pods(obj: JSON) -> tuple[JSON, JSON] | None:
    """Return a Volcano Job after and before a user scales it, by the numbers of pods of its tasks; None for other
    objects.
    """
    spec = obj.get("spec")
    tasks = spec.get("tasks") if isinstance(spec, dict) and obj.get("kind") == "Job" else None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        return None
    scaled = [
        {**task, "replicas": task["replicas"] + 1} if type(task.get("replicas")) is int else task for task in tasks
    ]
    return ({**obj, "spec": {**spec, "tasks": scaled}}, obj) if scaled != tasks else None


REFUSED_UPSTREAM = {("an elastic Deployment is denied", "replicas"): ("kueue-job/elastic-job", "Deployment")}
"""Updates that the webhook of the API also refuses, by case and change, with rule and kind. Source: kubernetes-sigs/kueue
ff69552e pkg/controller/jobs/deployment/deployment_webhook.go ValidateUpdate calls ValidateElasticJobAnnotation."""
SPEC_CHANGES = {"image": with_image, "new field": with_new_field, "tasks": with_another_number_of_pods}
RULES = SHIPPED.rule_catalogue_of_groups(SHIPPED.check_groups)
NAMED_FUNCTION = re.compile(r"(pkg|manifests|config|resource)/[\w./*-]+(, | )[\w.() ]+")


def refusals(folder: Path, change: str) -> Iterator[tuple[bool, str]]:
    """Yield pairs: whether only claimgate refuses the update, and the text of a problem that denies the update."""
    rules = {
        rule.id: rule for policy in load_policy_set([folder], OPTIONS).validating for rule in policy.catalogue.values()
    }
    for name, request, obj in stored(folder):
        pair = SPEC_CHANGES[change](obj)
        decisions = answer_of_case(updated(request, *pair)).verdict.decisions if pair else ()
        for decision in decisions:
            if decision.action == "deny" and decision.is_enforced:
                for each in decision.problems:
                    is_ours = not rules[each.code].refuses_updates_of(request.attributes.kind.kind)
                    yield is_ours, f"{name}: {each.code} {each.path} {each.found_and_message}"


@pytest.mark.parametrize("folder", some_quickly(FOLDERS, 3), ids=lambda folder: folder.name)
@pytest.mark.parametrize("change", SPEC_CHANGES)
def test_a_stored_problem_that_only_claimgate_finds_does_not_stop_an_update(folder: Path, change: str) -> None:
    assert [problem for is_ours, problem in refusals(folder, change) if is_ours] == []


@pytest.mark.parametrize("rule", [rule for rule in RULES.values() if rule.refused_on_updates], ids=lambda rule: rule.id)
def test_a_rule_that_denies_updates_names_its_upstream_source(rule: Rule) -> None:
    assert NAMED_FUNCTION.match(rule.refused_on_updates), rule.refused_on_updates


@pytest.mark.parametrize(
    ("rule_id", "kind", "is_refused"),
    [
        ("training-job/image-required", "PyTorchJob", True),
        # no webhook of the Training Operator or the MPI Operator checks MPIJobs
        ("training-job/image-required", "MPIJob", False),
        ("training-job/mpi-workers", "MPIJob", False),
        ("train-job/tune-model", "TrainJob", True),
        ("train-job/claim-count", "TrainJob", False),  # the CRD compares with the old object
        ("training-runtime/one-policy", "TrainingRuntime", False),
        ("volcano-job/min-available", "Job", True),
        ("volcano-job/task-name-twice", "Job", False),  # validateJobUpdate reads only numbers of pods
        ("volcano-pod-group/queue-open", "PodGroup", False),  # the webhook is registered only for CREATE
        ("volcano-queue/quantity", "Queue", True),
        ("volcano-queue/parent-exists", "Queue", False),  # checked only if the parent changed
        ("kueue-queue/preemption", "ClusterQueue", True),
        ("resource-claims/admin-access", "ResourceClaim", False),  # the spec cannot change
        ("device-classes/selector", "DeviceClass", True),
    ],
)
def test_updates_are_refused_as_upstream_refuses_them(rule_id: str, kind: str, is_refused: bool) -> None:
    assert RULES[rule_id].refuses_updates_of(kind) is is_refused


def test_some_updates_are_refused_as_upstream_does() -> None:
    found = [problem for folder in FOLDERS for _, problem in refusals(folder, "image")]
    assert any("training-job/image-required" in each for each in found)
    assert any("volcano-job/min-available" in each for each in found)


@pytest.mark.parametrize("folder", some_quickly(FOLDERS, 3), ids=lambda folder: folder.name)
@pytest.mark.parametrize("change", CHANGES)
def test_stored_objects_can_change_in_fields_that_no_rule_reads(folder: Path, change: str) -> None:
    bad: list[Any] = [each for each in stored(folder) if (each[0], change) not in REFUSED_UPSTREAM]
    assert [text for each in bad for text in denials(each[0], each[1], change, each[2])] == []


def test_an_excluded_update_is_refused_by_the_rule_of_upstream() -> None:
    for (name, change), (rule, kind) in REFUSED_UPSTREAM.items():
        (case,) = [each for folder in FOLDERS for each in stored(folder) if each[0] == name]
        (said,) = denials(*case[:2], change, case[2])
        assert said.endswith(f"({rule})")
        assert RULES[rule].refuses_updates_of(kind)
