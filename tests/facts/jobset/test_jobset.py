"""What JobSet will refuse of a JobSet spec: kubernetes-sigs/jobset@08dfbdfd pkg/webhooks/jobset_webhook.go, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.facts.jobset import name_length
from webhook.facts.jobset.validation import findings
from webhook.paths import render


def job(name: str = "node", *mounts: str, volumes: tuple[str, ...] = (), **more: Any) -> dict:
    container = {
        "name": "a",
        "image": "x",
        "volumeMounts": [{"name": each, "mountPath": f"/{each}"} for each in mounts],
    }
    pod = {"containers": [container], "volumes": [{"name": each, "emptyDir": {}} for each in volumes]}
    template = {**more.pop("spec", {}), "template": {"spec": pod}}
    return {"name": name, "template": {"spec": template}, **more}


def told(spec: object) -> list[tuple[str, str, str]]:
    return [(each.what, render(each.at), each.text) for each in findings(spec) if each.by == "jobset"]


def claims(*names: str, **metadata: str) -> list[dict]:
    return [{"templates": [{"metadata": {"name": name, **metadata}} for name in names]}]


INDEXED = {"completions": 2, "parallelism": 2}
RULES = "failurePolicy.rules"


@pytest.mark.parametrize(
    ("spec", "what", "at", "words"),
    [
        ({"network": {"subdomain": "1x"}}, "badName", "network.subdomain", "`1x` is no DNS label of RFC 1035"),
        ({"network": {"subdomain": "a.b"}}, "badName", "network.subdomain", "`a.b` is no DNS label"),
        ({"network": {"subdomain": "a" * 64}}, "badName", "network.subdomain", "`aaa"),
        ({"replicatedJobs": [job("A")]}, "badName", "replicatedJobs[0].name", "`A` is no DNS label"),
        ({"replicatedJobs": [job(groupName="-")]}, "badName", "replicatedJobs[0].groupName", "`-` is no DNS label"),
        (
            {"replicatedJobs": [job(replicas=2**16, spec={"parallelism": 2**15})]},
            "tooManyPods",
            "replicatedJobs[0].replicas",
            "`65536` times a parallelism of 32768 is more than 2147483647",
        ),
        (
            {"replicatedJobs": [job(dependsOn=[{"name": "b"}]), job("b")]},
            "firstDepends",
            "replicatedJobs[0].dependsOn[0].name",
            "the first replicated job can depend on none, `b` included",
        ),
        (
            {"replicatedJobs": [job(), job("b", dependsOn=[{"name": "c"}]), job("c")]},
            "lateDependency",
            "replicatedJobs[1].dependsOn[0].name",
            "replicated job `c` does not stand before `b`",
        ),
        (
            {"replicatedJobs": [job(), job("b", dependsOn=[{"name": "b"}])]},
            "lateDependency",
            "replicatedJobs[1].dependsOn[0].name",
            "replicated job `b` does not stand before `b`",
        ),
        (
            {"replicatedJobs": [job(), job("b", dependsOn=[{"name": "nod"}])]},
            "unknownDependency",
            "replicatedJobs[1].dependsOn[0].name",
            "there is no replicated job `nod` for `b` to depend on",
        ),
        (
            {"successPolicy": {"targetReplicatedJobs": ["launcher"]}},
            "unknownTarget",
            "successPolicy.targetReplicatedJobs[0]",
            "there is no replicated job `launcher`",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "1", "action": "FailJobSet"}]}},
            "badRule",
            f"{RULES}[0].name",
            "`1` is no name of a rule",
        ),
        (
            {"failurePolicy": {"rules": [{"name": "a"}, {"name": "a"}]}},
            "twinRule",
            f"{RULES}[1].name",
            "`a` is the name of another rule too",
        ),
        (
            {"failurePolicy": {"rules": [{}, {"name": "failurePolicyRule0"}]}},
            "twinRule",
            f"{RULES}[1].name",
            "`failurePolicyRule0` is the name of another rule too",
        ),
        (
            {"failurePolicy": {"rules": [{"targetReplicatedJobs": ["x"]}]}},
            "unknownTarget",
            f"{RULES}[0].targetReplicatedJobs[0]",
            "there is no replicated job `x`",
        ),
        (
            {"failurePolicy": {"rules": [{"onJobFailureReasons": ["OOMKilled"]}]}},
            "unknownReason",
            f"{RULES}[0].onJobFailureReasons[0]",
            "`OOMKilled` is no reason why a Job fails: use one of BackoffLimitExceeded",
        ),
        (
            {"failurePolicy": {"rules": [{"action": "RestartJob"}]}, "replicatedJobs": [job(replicas=1025)]},
            "tooManyReplicas",
            "replicatedJobs[0].replicas",
            "`1025` with RestartJob, which counts restarts of at most 1024",
        ),
        (
            {
                "startupPolicy": {"startupPolicyOrder": "InOrder"},
                "replicatedJobs": [job(), job("b", dependsOn=[{"name": "node"}])],
            },
            "startupOrder",
            "startupPolicy",
            "InOrder beside dependsOn",
        ),
        (
            {"coordinator": {"replicatedJob": "x"}},
            "badCoordinator",
            "coordinator.replicatedJob",
            "there is no replicated job `x`",
        ),
        (
            {"coordinator": {"replicatedJob": "node"}},
            "badCoordinator",
            "coordinator.replicatedJob",
            "replicated job `node` does not count its pods",
        ),
        (
            {
                "coordinator": {"replicatedJob": "node"},
                "replicatedJobs": [job(spec={**INDEXED, "completionMode": "NonIndexed"})],
            },
            "badCoordinator",
            "coordinator.replicatedJob",
            "replicated job `node` does not count its pods",
        ),
        (
            {"coordinator": {"replicatedJob": "node", "jobIndex": 1}, "replicatedJobs": [job(spec=INDEXED)]},
            "badCoordinator",
            "coordinator.jobIndex",
            "`1`, but replicated job `node` has 1: use 0 to 0",
        ),
        (
            {"coordinator": {"replicatedJob": "node", "podIndex": 2}, "replicatedJobs": [job(spec=INDEXED)]},
            "badCoordinator",
            "coordinator.podIndex",
            "`2`, but replicated job `node` has 2: use 0 to 1",
        ),
        (
            {"volumeClaimPolicies": claims("a", "a"), "replicatedJobs": [job("node", "a")]},
            "twinClaimTemplate",
            "volumeClaimPolicies[0].templates[1].metadata.name",
            "`a` is the name of another template too",
        ),
        (
            {"volumeClaimPolicies": claims("A")},
            "badName",
            "volumeClaimPolicies[0].templates[0].metadata.name",
            "`A` is no DNS name",
        ),
        (
            {"volumeClaimPolicies": claims("a"), "replicatedJobs": [job("node", "a", volumes=("a",))]},
            "volumeConflict",
            "volumeClaimPolicies[0].templates[0].metadata.name",
            "replicated job `node` has a volume `a` of its own",
        ),
        (
            {"volumeClaimPolicies": claims("a")},
            "unmountedTemplate",
            "volumeClaimPolicies[0].templates[0].metadata.name",
            "no container mounts the volume `a`",
        ),
        (
            {"volumeClaimPolicies": claims("a", namespace="team"), "replicatedJobs": [job("node", "a")]},
            "claimNamespace",
            "volumeClaimPolicies[0].templates[0].metadata.namespace",
            "set, but the claims are made in the namespace of the JobSet",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value and "." not in value else "",
)
def test_jobset_refuses(spec: dict, what: str, at: str, words: str) -> None:
    ((found, where, text),) = told({"replicatedJobs": [job()], **spec})
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
        {"failurePolicy": None, "coordinator": "x", "volumeClaimPolicies": [None, {"templates": [None]}]},
    ],
)
def test_jobset_takes(spec: dict) -> None:
    known = [each for each in told({"replicatedJobs": [job()], **spec}) if each[1] != "volumeClaimPolicies[1]"]
    assert [each for each in known if not each[1].startswith("volumeClaimPolicies[1]")] == []


def test_alpha_features_are_told_once() -> None:
    policy = {"restartStrategy": "InPlaceRestart", "rules": [{"action": "RestartJob"}, {"action": "RestartJob"}]}
    found = [(each.what, each.text, each.by) for each in findings({"failurePolicy": policy})]
    assert found == [("gated", "InPlaceRestart", ""), ("gated", "RestartJob", "")]


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
def test_a_name_may_be_as_long_as_what_is_named_after_it(spec: dict, expected: tuple) -> None:
    """`<name>-node-0-0-abcde`, `<name>-node-0`, `<name>-node-0-0.<name>`, `<template>-<name>`: 63 characters each."""
    limit, of, name = name_length.limit(spec)
    assert (limit, of, name) == expected
    made = {
        "pod": "x" * limit + "-node-0-0-abcde",
        "job": "x" * limit + "-node-0",
        "claim": f"{name}-" + "x" * limit,
    }.get(of)
    assert made is None or len(made) <= 63
