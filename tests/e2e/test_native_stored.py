"""Updates of bookkeeping fields, and deletions, of objects that were stored before a native policy.

An API server evaluates the policy in one namespace. In the others, claimgate evaluates the same YAML, unchanged and
with the annotation `claimgate.dev/stored`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import registered_webhook
from tests.e2e.replicas import until
from tests.e2e.test_rules import pod

pytestmark = pytest.mark.e2e

STORED: dict[str, dict[str, str]] = {
    "as-native": {},
    "as-deny": {"claimgate.dev/stored": "deny"},
    "as-warn": {"claimgate.dev/stored": "warn"},
}
"""The namespaces in which claimgate evaluates, and the annotations of their policies."""
NAMESPACES = ("native", *STORED)
GADGETS = "gadgets.example.com"
RULES = (
    # group, resources and operations
    ("", ["pods", "pods/status"], ["CREATE", "UPDATE"]),
    ("example.com", ["gadgets"], ["*"]),
    ("", ["configmaps"], ["DELETE"]),
)
FINALIZERS, MANAGED = '{"metadata": {"finalizers": null}}', '{"metadata": {"managedFields": [{}]}}'
STATUS = '{"status": {"conditions": [{"type": "Seen", "status": "True"}]}}'
MERGE = ("--type=merge", "-p")
REQUESTS: dict[str, tuple[str, ...]] = {
    "label of a Pod": ("label", "pod", "running", "a=b"),
    "status of a Pod, which the rule names": ("patch", "pod", "running", "--subresource=status", *MERGE, STATUS),
    "finalizers of a Pod": ("patch", "pod", "running", *MERGE, FINALIZERS),
    "managedFields of a Pod": ("patch", "pod", "running", *MERGE, MANAGED),
    "finalizers of a Pod that is being deleted": ("patch", "pod", "ending", *MERGE, FINALIZERS),
    "deletion of a Pod": ("delete", "pod", "running", "--wait=false"),
    "spec of a Gadget": ("patch", GADGETS, "running", *MERGE, '{"spec": {"size": 2}}'),
    "status of a Gadget": ("patch", GADGETS, "running", *MERGE, STATUS),
    "finalizers of a Gadget": ("patch", GADGETS, "running", *MERGE, FINALIZERS),
    "finalizers of a Gadget that is being deleted": ("patch", GADGETS, "ending", *MERGE, FINALIZERS),
    "deletion of a Gadget, by *": ("delete", GADGETS, "running", "--wait=false"),
    "deletion of a ConfigMap, by DELETE": ("delete", "configmap", "running"),
}
NATIVE = {name: "allowed" if name == "deletion of a Pod" else "refused" for name in REQUESTS}
AS_DENY = {
    **dict.fromkeys(REQUESTS, "allowed"),
    "label of a Pod": "refused",
    "status of a Pod, which the rule names": "refused",
    "spec of a Gadget": "refused",
    "deletion of a ConfigMap, by DELETE": "refused",
}
IN_FORCE = ("spec of a Gadget", "deletion of a ConfigMap, by DELETE")
AS_WARN = {
    **AS_DENY,
    "label of a Pod": "warned",
    "status of a Pod, which the rule names": "warned",
    "spec of a Gadget": "warned",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("native-stored")) as running:
        running.apply(_definition())
        running.kubectl("wait", "--for=condition=Established", "crd", GADGETS, "--timeout=240s")
        for namespace in NAMESPACES:
            running.kubectl("create", "namespace", namespace)
            for name in ("running", "ending"):
                held = {"name": name, "namespace": namespace, "finalizers": ["example.com/tracking"]}
                gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "spec": {"size": 1}}
                running.apply({**pod(name), "metadata": held}, {**gadget, "metadata": held})
            running.kubectl("create", "configmap", "running", "-n", namespace)
            for kind in ("pod", GADGETS):
                running.kubectl("delete", kind, "ending", "-n", namespace, "--wait=false")
        yield running


def test_a_native_policy_refuses_what_the_api_server_refuses_unless_it_says_stored(
    server: ApiServer, tmp_path: Path
) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    for namespace, meaning in STORED.items():
        (policies / f"{namespace}.yaml").write_text(yaml.safe_dump_all(_policies(namespace, meaning)))
    server.apply(*_policies("native", {}))
    with registered_webhook(server, tmp_path, "--only", str(policies)):
        for namespace in NAMESPACES:
            _until_in_force(server, namespace)
        answers = {
            namespace: {name: _answer(server, namespace, request) for name, request in REQUESTS.items()}
            for namespace in NAMESPACES
        }
    assert answers["native"] == NATIVE
    assert answers["as-native"] == NATIVE
    assert answers["as-deny"] == AS_DENY
    assert answers["as-warn"] == AS_WARN


def _definition() -> dict[str, Any]:
    names = {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": GADGETS},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _policies(namespace: str, meaning: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return policies with a rule that refuses everything in one namespace, and their bindings."""
    made: list[dict[str, Any]] = []
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    head = {"apiVersion": "admissionregistration.k8s.io/v1"}
    for group, resources, operations in RULES:
        name = f"{namespace}-{resources[0]}"
        rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": resources}
        spec = {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": selector},
            "validations": [{"expression": "false", "message": "refused"}],
        }
        metadata = {"name": name, "annotations": dict(meaning)}
        bound = {"policyName": name, "validationActions": ["Deny"]}
        made += [
            {**head, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec},
            {**head, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": bound},
        ]
    return made


def _until_in_force(server: ApiServer, namespace: str) -> None:
    """Wait until each policy is active, with requests that every policy refuses."""
    for request in (("run", "new", "--image=i"), *(REQUESTS[name] for name in IN_FORCE)):
        until(lambda: _answer(server, namespace, request) != "allowed", f"{request} is refused in {namespace}")  # noqa: B023


def _answer(server: ApiServer, namespace: str, request: tuple[str, ...]) -> str:
    """Return whether a policy of the namespace allowed, warned or refused. Nothing is stored."""
    done = server.kubectl(*request, "-n", namespace, "--dry-run=server", code=None)
    is_told = f"{namespace}-" in done.stderr
    assert is_told or not done.returncode, done.stderr
    return "refused" if done.returncode else "warned" if is_told else "allowed"
