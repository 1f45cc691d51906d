"""Policies that ask `authorizer`: claimgate asks the API server, and gives the same answers as policies in the API
server.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e.apiserver import PATIENCE_S
from tests.e2e.conftest import Cluster, _port, claimgate

pytestmark = pytest.mark.e2e

BREAKS_GLASS = "authorizer.group('').resource('pods').namespace('default').check('breakglass').allowed()"
USERS = {"alice": True, "bob": False, "root": True}
ROBOT = "system:serviceaccount:default:robot"
GROUPS = {
    "root": ["system:masters", "system:authenticated"],
    ROBOT: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
}
SCALE = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('default')"
EXPRESSIONS = {
    "requested": "authorizer.requestResource.check('patch').allowed()",
    "named": f"{SCALE}.name('web').check('update').allowed()",
    "other-name": f"{SCALE}.name('other').check('update').allowed()",
    "path": "authorizer.path('/glass').check('get').allowed()",
    "other-path": "authorizer.path('/other').check('get').allowed()",
    "robot": "authorizer.serviceAccount('default', 'robot').group('').resource('secrets').check('get').allowed()",
    "robot-is-not-logged-in": "authorizer.serviceAccount('default', 'robot').path('/glass').check('get').allowed()",
    "selected": "authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a').check('list').allowed()",
    "reason": f"{BREAKS_GLASS.removesuffix('allowed()')}reason().contains('glass')",
    "no-error": "!authorizer.group('').resource('pods').check('list').errored()",
    "either": f"{BREAKS_GLASS} || authorizer.path('/glass').check('get').allowed()",
}


def policy(name: str, expressions: list[str], of: str = "guarded") -> list[dict[str, Any]]:
    """Return a policy about ConfigMaps with names that begin with `of`, and its binding."""
    api = {"apiVersion": "admissionregistration.k8s.io/v1"}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "mine", "expression": f"object.metadata.name.startsWith('{of}')"}],
        "validations": [{"expression": each, "message": "you may not break the glass"} for each in expressions],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {**api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {**api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": binding},
    ]


def questions() -> list[dict[str, Any]]:
    return [each for name, text in EXPRESSIONS.items() for each in policy(f"asks-{name}", [text], f"asks-{name}-by")]


@pytest.fixture(scope="module")
def served(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("authorizer")
    (folder / "policy.yaml").write_text(yaml.safe_dump_all([*policy("glass", [BREAKS_GLASS]), *questions()]))
    files = ["--tls-cert", str(cluster.certificates / "tls.crt"), "--tls-key", str(cluster.certificates / "tls.key")]
    place = ["--host", "127.0.0.1", "--port", "0", "--drain", "0", "--kubeconfig", str(cluster.server.kubeconfig)]
    command = [sys.executable, "-m", "webhook", "serve", *files, *place, "--only", str(folder), "--authorizer"]
    log = folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stderr=stream)
    try:
        trust = ssl.create_default_context(cafile=str(cluster.certificates / "ca.crt"))
        trust.check_hostname = False
        with httpx.Client(verify=trust, base_url=f"https://localhost:{_port(process, log)}") as client:
            yield client
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def roles(cluster: Cluster) -> None:
    """Give alice the right that the policies ask for. Bob gets every other right about ConfigMaps."""
    kubectl = cluster.server.kubectl
    kubectl("create", "role", "glass", "--verb=breakglass", "--resource=pods", "--namespace=default")
    kubectl("create", "rolebinding", "glass", "--role=glass", "--user=alice", "--namespace=default")
    kubectl("create", "clusterrole", "maps", "--verb=create", "--resource=configmaps")
    kubectl("create", "clusterrolebinding", "maps", "--clusterrole=maps", "--group=system:authenticated")
    kubectl("create", "clusterrole", "path", "--verb=get", "--non-resource-url=/glass")
    kubectl("create", "clusterrolebinding", "path", "--clusterrole=path", "--group=system:authenticated")
    kubectl("create", "clusterrole", "robot", "--verb=get", "--resource=secrets")
    kubectl("create", "clusterrolebinding", "robot", "--clusterrole=robot", "--serviceaccount=default:robot")
    kubectl("create", "clusterrole", "web", "--verb=update", "--resource=deployments.apps/scale", "--resource-name=web")
    kubectl("create", "clusterrolebinding", "web", "--clusterrole=web", "--user=alice")
    kubectl("create", "clusterrole", "changes", "--verb=patch", "--resource=configmaps")
    kubectl("create", "clusterrolebinding", "changes", "--clusterrole=changes", "--user=bob")


def asked(client: httpx.Client, user: str, data: dict[str, str] | None = None, name: str = "guarded") -> Any:
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    who = {"username": user, "groups": GROUPS.get(user, ["system:authenticated"])}
    request = {"uid": "1", "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource}
    more = {"name": name, "namespace": "default", "operation": "CREATE", "userInfo": who}
    body = {"request": {**request, **more, "object": {**config, "data": data or {}}}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", **body}
    answer = client.post("/validate", content=json.dumps(review), headers={"content-type": "application/json"})
    return answer.json()["response"]


@pytest.mark.usefixtures("roles")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("data", [None, {"large": "x" * 200_000}], ids=["on the loop", "in a worker"])
def test_the_authorizer_answers_as_the_api_server(served: httpx.Client, user: str, data: dict[str, str] | None) -> None:
    response = asked(served, user, data)
    assert response["allowed"] is USERS[user], response
    if not USERS[user]:
        assert "you may not break the glass" in response["status"]["message"]


@pytest.mark.usefixtures("roles", "served")
def test_a_native_policy_has_the_same_answer(cluster: Cluster) -> None:
    cluster.server.apply(*policy("glass", [BREAKS_GLASS]))
    for number in range(100):
        done = cluster.server.kubectl(*_creating(f"guarded-{number}", "bob"), code=None)
        if done.returncode:
            break
    for user, allowed in USERS.items():
        done = cluster.server.kubectl(*_creating(f"guarded-{user}", user), code=None)
        assert (done.returncode == 0) is allowed, done.stderr
    cluster.server.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "glass")


@pytest.mark.usefixtures("roles")
def test_every_authorizer_question_has_the_answer_of_a_native_policy(cluster: Cluster, served: httpx.Client) -> None:
    cluster.server.apply(*questions())
    users = [*USERS, ROBOT]
    names = {
        (question, user): f"asks-{question}-by-{index}" for question in EXPRESSIONS for index, user in enumerate(users)
    }
    end = monotonic() + PATIENCE_S
    while cluster.server.kubectl(*_creating(names["other-path", "bob"], "bob"), code=None).returncode == 0:
        assert monotonic() < end, "the API server does not ask the policies"
    try:
        native = {
            (question, user): not cluster.server.kubectl(*_creating(name, user), code=None).returncode
            for (question, user), name in names.items()
        }
    finally:
        cluster.server.kubectl("delete", *_named(questions()))
    ours = {(question, user): asked(served, user, name=name)["allowed"] for (question, user), name in names.items()}
    assert ours == native
    assert {question for (question, _), allowed in native.items() if allowed} > {"path", "robot", "either", "requested"}
    assert not any(native["robot-is-not-logged-in", user] for user in users)


def _named(objects: list[dict[str, Any]]) -> list[str]:
    return [f"{each['kind']}/{each['metadata']['name']}" for each in objects]


def _creating(name: str, user: str) -> tuple[str, ...]:
    groups = [f"--as-group={group}" for group in GROUPS.get(user, [])]
    return ("create", "configmap", name, f"--as={user}", *groups, "--dry-run=server")


def test_a_server_without_authorizer_refuses_a_policy_with_authorizer(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all(policy("glass", [BREAKS_GLASS])))
    files = ["--tls-cert", str(cluster.certificates / "tls.crt"), "--tls-key", str(cluster.certificates / "tls.key")]
    arguments = ["serve", *files, "--kubeconfig", str(cluster.server.kubeconfig), "--only", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "webhook", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 2
    assert "policy glass asks `authorizer`" in done.stderr
    assert "start the server with --authorizer" in done.stderr
    assert "it uses `authorizer`" in claimgate("policies", "check", str(tmp_path))
