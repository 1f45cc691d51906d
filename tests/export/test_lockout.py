"""A registration that can block its cluster is reported. Exclusions that prevent this are recognized."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rows import all_rows
from webhook.errors import ConfigurationError
from webhook.export.lockout import lockout_dangers, sentences_about_dangers, sentences_about_refused_requests
from webhook.manifests.webhook_configurations import is_webhook_configuration, parse_webhook_configuration

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
SERVICE = {"service": {"namespace": "policy", "name": "policy"}, "caBundle": "YQ=="}
NAME = "kubernetes.io/metadata.name"


def configuration(**webhook: Any) -> dict[str, Any]:
    both = {"name": "w.example.com", "clientConfig": SERVICE, "rules": [PODS], **webhook}
    kind = "ValidatingWebhookConfiguration"
    given = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "webhooks": [both],
    }
    assert is_webhook_configuration(given)
    return given


def excluding(*names: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": list(names)}]}


def rule(group: str, resource: str, operation: str = "*", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [resource], **more}


BOTH = excluding("kube-system", "policy")
ROWS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "Pods everywhere": ({}, ("no Pod of kube-system", "its own Pods cannot be created again")),
    "Pods everywhere, with failurePolicy Ignore": ({"failurePolicy": "Ignore"}, ()),
    "kube-system and the namespace of the webhook excluded": ({"namespaceSelector": BOTH}, ()),
    "only the namespace of the webhook excluded": (
        {"namespaceSelector": excluding("policy")},
        ("no Pod of kube-system",),
    ),
    "only namespaces with a label": ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, ()),
    "all namespaces without a label": (
        {"namespaceSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]}},
        ("no Pod of kube-system", "its own Pods"),
    ),
    "only labelled objects": ({"objectSelector": {"matchLabels": {"team": "a"}}}, ()),
    "everything": (
        {"rules": [rule("*", "*/*")], "namespaceSelector": excluding("policy")},
        (
            "no Pod of kube-system",
            "nodes cannot renew",
            "schedulers lose their leader",
            "controllers in other namespaces lose their leader",
            "no Pod can be scheduled",
            "kubelets cannot report the status",
            "no node can join",
            "no node can be labelled",
            "no node that has failed can be removed",
            "no node can report",
            "no new node becomes Ready",
            "no node can register a driver",
            "no namespace can be labelled",
            "no deletion of a namespace can begin",
            "no deletion of a namespace can end",
            "token",
            "rights",
            "no kubelet gets a certificate",
            "no kubelet certificate can be approved",
            "no kubelet certificate is signed",
        ),
    ),
    "all parents, no sub-resource": (
        {"rules": [rule("", "*")], "namespaceSelector": BOTH},
        ("no node can join", "no node can be labelled", "failed can be removed", "no namespace can be labelled"),
    ),
    "status of everything": (
        {"rules": [rule("", "*/status")], "namespaceSelector": BOTH},
        ("kubelets cannot report the status", "no node can report", "no deletion of a namespace can begin"),
    ),
    "updates of nodes": ({"rules": [rule("", "nodes", "UPDATE")]}, ("no node can be labelled",)),
    "deletions of nodes": ({"rules": [rule("", "nodes", "DELETE")]}, ("no node that has failed can be removed",)),
    "the finalization of namespaces": (
        {"rules": [rule("", "namespaces/finalize")], "namespaceSelector": BOTH},
        ("no deletion of a namespace can end",),
    ),
    "deletions of namespaces, which users may forbid": ({"rules": [rule("", "namespaces", "DELETE")]}, ()),
    "drivers of a node": ({"rules": [rule("storage.k8s.io", "csinodes", "UPDATE")]}, ("register a driver",)),
    "approvals of certificates": (
        {"rules": [rule("certificates.k8s.io", "certificatesigningrequests/approval")]},
        ("can be approved",),
    ),
    "only resources in namespaces": ({"rules": [rule("", "*", scope="Namespaced")], "namespaceSelector": BOTH}, ()),
    "a named node": ({"rules": [rule("", "nodes", resourceNames=["n"])]}, ()),
    "deleting Pods": ({"rules": [rule("", "pods", "DELETE")]}, ()),
    "leases": (
        {"rules": [rule("coordination.k8s.io", "leases", "UPDATE")], "namespaceSelector": BOTH},
        ("nodes cannot renew", "controllers in other namespaces lose their leader"),
    ),
    "leases of one team": (
        {
            "rules": [rule("coordination.k8s.io", "leases", "UPDATE"), rule("", "pods/binding")],
            "namespaceSelector": {"matchLabels": {"team": "a"}},
        },
        (),
    ),
    "every part of a Pod": (
        {"rules": [rule("", "pods/*")], "namespaceSelector": BOTH},
        ("no Pod can be scheduled", "kubelets cannot report the status"),
    ),
    "no bundle": ({"clientConfig": {"service": SERVICE["service"]}, "namespaceSelector": BOTH}, ("no caBundle",)),
    "a long wait": ({"timeoutSeconds": 30, "namespaceSelector": BOTH}, ("each request waits 30 seconds",)),
    "a URL has no namespace": ({"clientConfig": {"url": "https://x"}}, ("no Pod of kube-system",)),
}


@all_rows("given, expected", ROWS.values(), ids=ROWS)
def test_configurations_that_can_block_a_cluster_are_reported(given: dict[str, Any], expected: tuple[str, ...]) -> None:
    found = [danger.harm for danger in lockout_dangers(parse_webhook_configuration(configuration(**given)), {})]
    assert len(found) == len(expected), found
    assert all(words in harm for harm, words in zip(found, expected, strict=True)), found


def test_known_labels_of_a_namespace_are_used() -> None:
    given = parse_webhook_configuration(
        configuration(namespaceSelector={"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]})
    )
    found = list(lockout_dangers(given, {"kube-system": {"free": ""}}))
    (told,) = sentences_about_dangers(found)
    assert told.startswith("ValidatingWebhookConfiguration w: w.example.com: while it does not answer, its own Pods")
    assert told.endswith("; exclude namespace policy in its namespaceSelector, or set failurePolicy to Ignore")


def test_another_shape_is_an_error_with_its_place() -> None:
    with pytest.raises(ConfigurationError, match=r"webhooks\[0\]\.rules: expected a list"):
        parse_webhook_configuration(configuration(rules="all"))


@pytest.mark.parametrize(
    ("served", "told"),
    [
        pytest.param(
            frozenset({"batch"}),
            ["- CREATE of jobs.batch, pods", "- and of 2 resources of APIs that this cluster does not serve yet"],
            id="a cluster without two of the APIs",
        ),
        pytest.param(
            frozenset({"batch", "ray.io", "kubeflow.org"}),
            ["- CREATE of jobs.batch, mpijobs.kubeflow.org, pods, rayjobs.ray.io"],
            id="a cluster with all of the APIs",
        ),
        pytest.param(
            None,
            ["- CREATE of jobs.batch, mpijobs.kubeflow.org, pods, rayjobs.ray.io"],
            id="the served APIs are not known",
        ),
    ],
)
def test_only_what_a_cluster_serves_is_listed_by_name(served: frozenset[str] | None, told: list[str]) -> None:
    named = (("batch", "jobs"), ("ray.io", "rayjobs"), ("kubeflow.org", "mpijobs"))
    rules = [PODS, *(rule(group, resource, "CREATE") for group, resource in named)]
    closed = parse_webhook_configuration(configuration(rules=rules, namespaceSelector=BOTH))
    lines = list(sentences_about_refused_requests([closed], "title:", served))
    assert lines[1:-2] == told
