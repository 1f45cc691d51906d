"""Stored policies that refuse everything cannot lock a cluster, also with failurePolicy Fail and replicas that answer.

A user who may write policies applies them. Requests of kube-system, of nodes, for leases, deletions, finalizers and
status still pass. New objects are refused, so the policies are in force.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import NAMESPACE
from tests.e2e.installation import failure_policies, has_bundles
from tests.e2e.replicas import apply, certificates, registration, rendered, service, until
from tests.e2e.test_rules import pod
from tests.live_policies.stored import binding, policy, stored

pytestmark = pytest.mark.e2e

POD, JOBS, LEASES = ("", "pods"), ("batch", "*"), ("coordination.k8s.io", "leases")
WRITES = ("CREATE", "UPDATE")
HOSTILE: dict[str, tuple[tuple[str, str], tuple[str, ...], dict[str, Any], str]] = {
    # by policy: group and resource, operations, more fields, and the reason of its condition Registered
    "every-pod": (POD, ("*",), {}, "Registered"),
    "every-job": (JOBS, ("*",), {}, "Registered"),
    "all-in-namespaces": (("", "*"), ("UPDATE",), {"scope": "Namespaced"}, "Registered"),
    "parts-of-pods": (("", "pods/*"), WRITES, {}, "WouldBlock"),
    "status": (("", "pods/status"), ("UPDATE",), {}, "WouldBlock"),
    "bindings": (("", "pods/binding"), ("CREATE",), {}, "WouldBlock"),
    "any-status": (("*", "*/status"), ("UPDATE",), {}, "WouldBlock"),
    "one-node": (("", "nodes"), ("*",), {"resourceNames": ["node-a"]}, "WouldBlock"),
    "status-of-one-node": (("", "nodes/status"), ("UPDATE",), {"resourceNames": ["node-a"]}, "WouldBlock"),
    "ends-of-nodes": (("", "nodes"), ("DELETE",), {}, "WouldBlock"),
    "leases": (LEASES, WRITES, {}, "WouldBlock"),
    "namespaces": (("", "namespaces"), ("*",), {}, "WouldBlock"),
    "everything": (("*", "*/*"), ("*",), {}, "WouldBlock"),
}
MESSAGE = "refused; see the pages about status, finalizers and managedFields"
LATER = '{"metadata": {"finalizers": null}}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("hostile")) as running:
        yield running


def test_no_stored_policy_locks_the_cluster(server: ApiServer, tmp_path: Path) -> None:
    with service(server, tmp_path) as replicas:
        apply(server, rendered(server, "overlays/live-policies", replicas.port))
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        with certificates(server, tmp_path), registration(server, tmp_path):
            until(lambda: has_bundles(server), "both configurations have the bundle")
            replicas.roll()
            _fails_closed(server)
            _stores_objects(server)
            apply(server, [one for name in HOSTILE for one in _hostile(name)])
            apply(server, [*_without_its_param(), *_that_fails_to_mutate()])
            reasons = {name: row[-1] for name, row in HOSTILE.items()}
            until(lambda: _reasons(server, reasons) == reasons, f"registered as {reasons}", 90)
            until(lambda: "every-pod" in _refusal(server, pod("new")), "a new Pod is refused")
            told = server.kubectl("label", "pod", "running", "a=b", code=1).stderr
            assert "every-pod" in told, "the replicas evaluate the policies"
            _goes_on(server)
            assert failure_policies(server) == {"Fail"}


def _fails_closed(server: ApiServer) -> None:
    for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
        count = len(server.get(kind, "claimgate")["webhooks"])
        patch = [{"op": "replace", "path": f"/webhooks/{one}/failurePolicy", "value": "Fail"} for one in range(count)]
        server.kubectl("patch", kind, "claimgate", "--type=json", "-p", json.dumps(patch))


def _hostile(name: str) -> list[dict[str, Any]]:
    (group, resource), operations, more, _ = HOSTILE[name]
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": [*operations], "resources": [resource], **more}
    matched = {"matchConstraints": {"resourceRules": [rule]}, "stored": "deny"}
    spec = {**matched, "validations": [{"expression": "false", "message": MESSAGE}]}
    return [_written(one) for one in (policy(name, **spec), binding(name, name))]


def _without_its_param() -> list[dict[str, Any]]:
    """Return a policy that denies because its param does not exist, and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["pods"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    ref = {"name": "gpu-limits", "namespace": NAMESPACE, "parameterNotFoundAction": "Deny"}
    wrong = policy("wrong-param", "params.data.absent == 'x'", **spec, stored="deny")
    return [_written(one) for one in (wrong, binding("wrong-param", "wrong-param", paramRef=ref))]


def _that_fails_to_mutate() -> list[dict[str, Any]]:
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["pods"]}
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'test', path: '/a', value: 1}]"}}
    spec = {"reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [rule]}, "mutations": [patch]}
    bound = {"policyName": "wrong-patch", "policyKind": "MutatingPolicy"}
    made = (stored("MutatingPolicy", "wrong-patch", spec), stored("PolicyBinding", "wrong-patch", bound))
    return [_written(one) for one in made]


def _written(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {"name": value["metadata"]["name"]}}


def _reasons(server: ApiServer, names: Any) -> dict[str, str]:
    items = yaml.safe_load(server.kubectl("get", "validatingpolicies.claimgate.dev", "-o", "yaml").stdout)["items"]
    found = {}
    for one in items:
        for each in one.get("status", {}).get("conditions", ()):
            if each["type"] == "Registered" and one["metadata"]["name"] in names:
                found[one["metadata"]["name"]] = each["reason"]
    return found


def _refusal(server: ApiServer, value: dict[str, Any]) -> str:
    done = server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(value), code=None)
    return done.stderr if done.returncode else ""


def _job(name: str) -> dict[str, Any]:
    spec = {"suspend": True, "template": {"spec": {**pod(name)["spec"], "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _lease(name: str, namespace: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {"holderIdentity": "a"},
    }


def _stores_objects(server: ApiServer) -> None:
    server.kubectl("create", "namespace", "team")
    for one in (pod("running"), pod("ending"), pod("waiting"), _job("tracked")):
        one["metadata"]["finalizers"] = ["example.com/tracking"]
        server.apply(one)
    server.kubectl("delete", "pod", "ending", "--wait=false", "--grace-period=0", "--force")
    server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
    server.apply(_lease("leader", "team"))


def _goes_on(server: ApiServer) -> None:
    merge = ("--type=merge", "-p")
    server.kubectl("patch", "node", "node-a", "--subresource=status", *merge, '{"status": {"phase": "Running"}}')
    server.kubectl("label", "node", "node-a", "a=b")
    server.kubectl("taint", "node", "node-a", "a=b:NoSchedule")
    server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-b"}})
    for namespace in ("kube-system", "kube-node-lease", "team"):
        server.apply(_lease("node-b", namespace))
    server.kubectl("patch", "lease", "leader", "-n", "team", *merge, '{"spec": {"holderIdentity": "b"}}')
    system = {**pod("dns"), "metadata": {"name": "dns", "namespace": "kube-system"}}
    server.apply(system)
    server.kubectl("label", "pod", "dns", "-n", "kube-system", "a=b")
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-b"}
    bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waiting"}, "target": target}
    path = "/api/v1/namespaces/default/pods/waiting/binding"
    server.kubectl("create", f"--raw={path}", "-f", "-", given=json.dumps(bound))
    for kind, name in (("pod", "running"), ("job", "tracked")):
        status = '{"status": {"conditions": [{"type": "Seen", "status": "True"}]}}'
        server.kubectl("patch", kind, name, "--subresource=status", *merge, status)
        server.kubectl("patch", kind, name, *merge, LATER)
    for name in ("ending", "waiting"):
        server.kubectl("patch", "pod", name, *merge, LATER)
    server.kubectl("delete", "pod", "running", "waiting", "--grace-period=0", "--force")
    server.kubectl("delete", "job", "tracked")
    server.kubectl("create", "namespace", "new")
    server.kubectl("label", "namespace", "new", "a=b")
    server.kubectl("delete", "namespace", "new", "--wait=false")
    server.kubectl("delete", "node", "node-a", "node-b")
    names = server.kubectl("get", "pods,jobs,nodes", "-o", "name").stdout.split()
    assert not {"pod/running", "pod/ending", "pod/waiting", "job.batch/tracked", "node/node-a"} & {*names}, names
