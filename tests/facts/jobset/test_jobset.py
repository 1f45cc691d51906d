"""The mistakes that JobSet refuses: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from tests.facts.subjects import subject
from tests.rows import all_rows
from webhook.facts.check import problems_of_group
from webhook.facts.jobset import names_and_keys
from webhook.facts.jobset.checks import validate_create
from webhook.typed.job_sets import JobSetSpec
from webhook.typed.view import ReadingContext


def job(name: str = "node", *mounts: str, volumes: tuple[str, ...] = (), **more: Any) -> dict:
    container = {
        "name": "a",
        "image": "x",
        "volumeMounts": [{"name": each, "mountPath": f"/{each}"} for each in mounts],
    }
    pod = {"containers": [container], "volumes": [{"name": each, "emptyDir": {}} for each in volumes]}
    template = {**more.pop("spec", {}), "template": {"spec": pod}}
    return {"name": name, "template": {"spec": template}, **more}


def typed(spec: dict) -> JobSetSpec:
    return JobSetSpec(spec, (), ReadingContext())


def told(spec: dict) -> list[tuple[str, str, str]]:
    found = validate_create(typed(spec))
    return [(each.code.removeprefix("job-set/"), each.path, f"{each.found} {each.message}".strip()) for each in found]


def claims(*names: str, **metadata: str) -> list[dict]:
    return [{"templates": [{"metadata": {"name": name, **metadata}} for name in names]}]


INDEXED = {"completions": 2, "parallelism": 2}
RULES = "failurePolicy.rules"


@all_rows(
    ("spec", "what", "at", "words"),
    [
        (
            {"network": {"subdomain": "1x"}},
            "dns-label",
            "network.subdomain",
            "`1x` cannot be the name of a Service because it begins with the digit `1`",
        ),
        (
            {"network": {"subdomain": "a.b"}},
            "dns-label",
            "network.subdomain",
            "`a.b` cannot be the name of a Service because it contains `.`",
        ),
        ({"network": {"subdomain": "a" * 64}}, "dns-label", "network.subdomain", "`aaa"),
        (
            {"replicatedJobs": [job("A")]},
            "dns-label",
            "replicatedJobs[0].name",
            "`A` cannot be a part of the names of pods because it contains the capital letter `A`",
        ),
        (
            {"replicatedJobs": [job(groupName="-")]},
            "dns-label",
            "replicatedJobs[0].groupName",
            "`-` cannot be the name of a group because it begins with `-`",
        ),
        (
            {"replicatedJobs": [job(replicas=2**16, spec={"parallelism": 2**15, "completions": 2**15})]},
            "most-pods",
            "replicatedJobs[0].replicas",
            "`65536` creates more than 2147483647 pods together with the parallelism of 32768",
        ),
        (
            {"replicatedJobs": [job(dependsOn=[{"name": "b"}]), job("b")]},
            "dependency-order",
            "replicatedJobs[0].dependsOn[0].name",
            "`b` must not be set because the first replicated job cannot depend on another",
        ),
        (
            {"replicatedJobs": [job(), job("b", dependsOn=[{"name": "c"}]), job("c")]},
            "dependency-order",
            "replicatedJobs[1].dependsOn[0].name",
            "`c` must come before",
        ),
        (
            {"replicatedJobs": [job(), job("b", dependsOn=[{"name": "b"}])]},
            "self-dependency",
            "replicatedJobs[1].dependsOn[0].name",
            "`b` is the replicated job itself",
        ),
        (
            {"replicatedJobs": [job(), job("b", dependsOn=[{"name": "nod"}])]},
            "dependency-exists",
            "replicatedJobs[1].dependsOn[0].name",
            "`nod` is not the name of a replicated job of this JobSet",
        ),
        (
            {"successPolicy": {"targetReplicatedJobs": ["launcher"]}},
            "target-exists",
            "successPolicy.targetReplicatedJobs[0]",
            "`launcher` is not the name of a replicated job of this JobSet",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "1", "action": "FailJobSet"}]}},
            "failure-rule-name",
            f"{RULES}[0].name",
            "`1` must begin with a letter",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "host:", "action": "FailJobSet"}]}},
            "failure-rule-name",
            f"{RULES}[0].name",
            "`host:` must end with a letter, a digit or an underscore",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "host-failure", "action": "FailJobSet"}]}},
            "failure-rule-name",
            f"{RULES}[0].name",
            "`host-failure` must have only letters from a to z, digits, underscores, commas and colons",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "a" * 129, "action": "FailJobSet"}]}},
            "failure-rule-name",
            f"{RULES}[0].name",
            f"`{'a' * 129}` has 129 characters, but at most 128 are allowed",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "a"}, {"name": "a"}]}},
            "failure-rule-twice",
            f"{RULES}[1].name",
            "`a` is also the name of an earlier rule",
        ),
        (
            {"failurePolicy": {"rules": [{}, {"name": "failurePolicyRule0"}]}},
            "failure-rule-twice",
            f"{RULES}[1].name",
            "`failurePolicyRule0` is also the name of an earlier rule",
        ),
        (
            {"failurePolicy": {"rules": [{"targetReplicatedJobs": ["x"]}]}},
            "target-exists",
            f"{RULES}[0].targetReplicatedJobs[0]",
            "`x` is not the name of a replicated job of this JobSet",
        ),
        (
            {"failurePolicy": {"rules": [{"onJobFailureReasons": ["OOMKilled"]}]}},
            "failure-reason",
            f"{RULES}[0].onJobFailureReasons[0]",
            "`OOMKilled` must be a reason that Kubernetes gives for a failed Job",
        ),
        (
            {"failurePolicy": {"rules": [{"action": "RestartJob"}]}, "replicatedJobs": [job(replicas=1025)]},
            "restarted-replicas",
            "replicatedJobs[0].replicas",
            "`1025` must not be above 1024 because RestartJob",
        ),
        (
            {
                "startupPolicy": {"startupPolicyOrder": "InOrder"},
                "replicatedJobs": [job(), job("b", dependsOn=[{"name": "node"}])],
            },
            "startup-order",
            "startupPolicy",
            "must not be InOrder",
        ),
        (
            {"coordinator": {"replicatedJob": "x"}},
            "coordinator-exists",
            "coordinator.replicatedJob",
            "`x` is not the name of a replicated job of this JobSet",
        ),
        (
            {"coordinator": {"replicatedJob": "node"}},
            "coordinator-indexed",
            "coordinator.replicatedJob",
            "`node` cannot be the job of the coordinator because its Job template has no completions",
        ),
        (
            {
                "coordinator": {"replicatedJob": "node"},
                "replicatedJobs": [job(spec={**INDEXED, "completionMode": "NonIndexed"})],
            },
            "coordinator-indexed",
            "coordinator.replicatedJob",
            "`node` cannot be the job of the coordinator because its Job template is not Indexed",
        ),
        (
            {"coordinator": {"replicatedJob": "node", "jobIndex": 1}, "replicatedJobs": [job(spec=INDEXED)]},
            "coordinator-index",
            "coordinator.jobIndex",
            "`1` is not the index of a job because replicated job `node` has 1 job",
        ),
        (
            {"coordinator": {"replicatedJob": "node", "podIndex": 2}, "replicatedJobs": [job(spec=INDEXED)]},
            "coordinator-index",
            "coordinator.podIndex",
            "`2` is not the index of a pod because replicated job `node` has 2 pods",
        ),
        (
            {"coordinator": {"replicatedJob": "node", "podIndex": -1}, "replicatedJobs": [job(spec=INDEXED)]},
            "coordinator-index",
            "coordinator.podIndex",
            "`-1` is not the index of a pod because replicated job `node` has 2 pods",
        ),
        (
            {"coordinator": {"replicatedJob": "node"}, "replicatedJobs": [job(spec=INDEXED) | {"replicas": 0}]},
            "coordinator-index",
            "coordinator.jobIndex",
            "`0` is not the index of a job because replicated job `node` has 0 jobs",
        ),
        (
            {"volumeClaimPolicies": claims("a", "a"), "replicatedJobs": [job("node", "a")]},
            "claim-template-twice",
            "volumeClaimPolicies[0].templates[1].metadata.name",
            "`a` is also the name of an earlier template",
        ),
        (
            {"volumeClaimPolicies": claims("A")},
            "claim-template-name",
            "volumeClaimPolicies[0].templates[0].metadata.name",
            "`A` cannot be a part of the names of claims because it contains the capital letter `A`",
        ),
        (
            {"volumeClaimPolicies": claims("a"), "replicatedJobs": [job("node", "a", volumes=("a",))]},
            "volume-conflict",
            "volumeClaimPolicies[0].templates[0].metadata.name",
            "`a` is also the name of a volume in the pods of replicated job `node`",
        ),
        (
            {"volumeClaimPolicies": claims("a")},
            "unmounted-claim",
            "volumeClaimPolicies[0].templates[0].metadata.name",
            "`a` is not mounted by any container",
        ),
        (
            {"volumeClaimPolicies": claims("a", namespace="team"), "replicatedJobs": [job("node", "a")]},
            "claim-namespace",
            "volumeClaimPolicies[0].templates[0].metadata.namespace",
            "must not be set because the claims are created in the namespace of the JobSet",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value and "." not in value else "",
)
def test_jobset_refuses(spec: dict, what: str, at: str, words: str) -> None:
    ((found, where, text),) = (each for each in told({"replicatedJobs": [job()], **spec}) if each[0] != "alpha-feature")
    assert (found, where) == (what, at)
    assert text.startswith(words)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"replicatedJobs": [job(), job("b", dependsOn=[{"name": "node"}])], "network": {"subdomain": "x"}},
        {"replicatedJobs": [job("${NAME}", groupName="{{ group }}", dependsOn=[{"name": "$OTHER"}])]},
        {"network": {"subdomain": "$NAME"}, "successPolicy": {"targetReplicatedJobs": ["${NAME}"]}},
        {"failurePolicy": {"rules": [{"name": "a"}, {}, {"onJobFailureReasons": ["PodFailurePolicy", "$REASON"]}]}},
        {"coordinator": {"replicatedJob": "node", "podIndex": 1}, "replicatedJobs": [job(spec=INDEXED)]},
        {"coordinator": {"replicatedJob": "${NAME}"}},
        {"volumeClaimPolicies": claims("a", "b.c", "${X}"), "replicatedJobs": [job("node", "a", "b.c")]},
        {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
        {"failurePolicy": {"rules": [{"action": "RestartJob"}]}, "replicatedJobs": [job(replicas=1024)]},
        {"failurePolicy": {}, "volumeClaimPolicies": [{}]},
    ],
)
def test_jobset_accepts(spec: dict) -> None:
    found = [rule for rule, _, _ in told({"replicatedJobs": [job()], **spec})]
    assert [rule for rule in found if rule != "alpha-feature"] == []


def test_alpha_features_are_reported_once() -> None:
    policy = {"restartStrategy": "InPlaceRestart", "rules": [{"action": "RestartJob"}, {"action": "RestartJob"}]}
    assert [(rule, text.split()[0]) for rule, _, text in told({"failurePolicy": policy})] == [
        ("alpha-feature", "`InPlaceRestart`"),
        ("alpha-feature", "`RestartJob`"),
    ]


def test_the_pods_of_a_runtime_are_not_counted_yet() -> None:
    spec = {"coordinator": {"replicatedJob": "node", "podIndex": 9}, "replicatedJobs": [job(spec=INDEXED)]}
    assert list(validate_create(typed(spec), are_pod_numbers_final=False)) == []


def test_a_job_set_is_checked_at_its_place() -> None:
    obj = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "j"},
        "spec": {"replicatedJobs": [job("A")]},
    }
    assert [each.path for each in problems_of_group("job-set", subject(obj)).problems] == [
        "spec.replicatedJobs[0].name"
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (63, "", "")),
        ({"replicatedJobs": [job(spec={"completions": 1})]}, (48, "pod", "node")),
        ({"replicatedJobs": [job(spec={"completions": 0})]}, (47, "pod", "node")),
        ({"replicatedJobs": [job(spec={"completions": 11}, replicas=101)]}, (45, "pod", "node")),
        ({"replicatedJobs": [job()]}, (56, "job", "node")),
        ({"replicatedJobs": [job(spec={"completions": 1, "completionMode": "NonIndexed"})]}, (56, "job", "node")),
        ({"coordinator": {"replicatedJob": "node"}}, (26, "coordinator", "node")),
        ({"coordinator": {"replicatedJob": "node"}, "network": {"subdomain": "x"}}, (52, "coordinator", "node")),
        ({"volumeClaimPolicies": claims("a" * 30)}, (32, "claim", "a" * 30)),
    ],
)
def test_the_limit_of_a_name_depends_on_the_objects_named_after_it(spec: dict, expected: tuple) -> None:
    """Each may have 63 characters: `<name>-node-0-0-abcde`, `<name>-node-0`, `<name>-node-0-0.<name>`,
    `<template>-<name>`."""
    limit, of, name = names_and_keys.strictest_name_limit(typed(spec))
    assert (limit, of, name) == expected
    made = {
        "pod": "x" * limit + "-node-0-0-abcde",
        "job": "x" * limit + "-node-0",
        "claim": f"{name}-" + "x" * limit,
    }.get(of)
    assert made is None or len(made) <= 63


def test_a_name_that_is_not_part_of_other_names_may_be_long() -> None:
    obj = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "j" * 200}, "spec": {}}
    assert problems_of_group("job-set", subject(obj)).problems == ()
    obj["spec"] = {"replicatedJobs": [job()]}
    assert [each.path for each in problems_of_group("job-set", subject(obj)).problems] == ["metadata.name"]
