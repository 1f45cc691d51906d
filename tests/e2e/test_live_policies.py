"""Policies are applied, broken, fixed, registered, refused and deleted by `kubectl apply`, with the rights of the
installation.
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
from tests.e2e.conftest import claimgate
from tests.e2e.replicas import Replicas, apply, certificates, registration, rendered, service, until
from tests.e2e.test_rules import pod
from tests.live_policies.stored import binding, policy, stored
from webhook.commands.live_registration import STORED_POLICIES

pytestmark = pytest.mark.e2e

VALIDATING = "validatingwebhookconfiguration"
EIGHT = "gpu.devices == null || gpu.devices <= 8"
NINE_GPUS = {"nvidia.com/gpu": "9"}
SEVEN = pod("seven", {"nvidia.com/gpu": "7"})
NEEDED = (
    # the policy, the resource and operation that it matches, and the effect while no replica answers
    ("labelled-nodes", "nodes", "UPDATE", "no node can be labelled, tainted or drained"),
    ("kept-nodes", "nodes", "DELETE", "no node that has failed can be removed"),
    ("reported-pods", "pods/status", "UPDATE", "kubelets cannot report the status of Pods"),
    ("bound-pods", "pods/*", "CREATE", "no Pod can be scheduled"),
    ("kept-namespaces", "namespaces/finalize", "UPDATE", "no deletion of a namespace can end"),
)
RULE = {"apiVersions": ["v1"], "operations": ["CREATE"]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("live-policies")) as running:
        yield running


def test_policies_are_added_by_kubectl_apply_and_removed_by_delete(server: ApiServer, tmp_path: Path) -> None:
    with service(server, tmp_path) as replicas:
        objects = rendered(server, "overlays/live-policies", replicas.port)
        apply(server, objects)
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        with certificates(server, tmp_path), registration(server, tmp_path):
            until(lambda: all(one["clientConfig"].get("caBundle") for one in _webhooks(server)), "there is a bundle")
            replicas.roll()
            before = _webhooks(server)
            _is_in_force(server)
            _says_what_is_broken_and_refuses_nothing_for_it(server, replicas)
            for meaning in ("warn", "deny"):
                _spares_what_was_stored(server, meaning)
            _is_registered_for_other_kinds(server, before)
            _is_not_registered_where_it_would_block(server)
            _reads_what_an_administrator_grants(server)
            _changes_objects(server)
            _acts_again_after_a_new_installation(server, objects)
            kinds = "validatingpolicies.claimgate.dev,mutatingpolicies.claimgate.dev,policybindings.claimgate.dev"
            server.kubectl("delete", kinds, "--all")
            until(lambda: not _refusal(server, pod("nine", NINE_GPUS)), "the Pod is taken again")
            until(lambda: _webhooks(server) == before, "the configuration is as it was installed")
            _removes_an_expired_exemption(server)
            assert _webhooks(server) == before


def _removes_an_expired_exemption(server: ApiServer) -> None:
    """claimgate removes the condition of an expired exemption. API servers do not know the date, so they skip the
    webhook until then.
    """
    expired = {"name": "not-exempt-0-until-2020-01-01", "expression": "request.userInfo.username != 'alice'"}
    conditions = [*_webhooks(server)[0].get("matchConditions", ()), expired]
    patch = [{"op": "add", "path": "/webhooks/0/matchConditions", "value": conditions}]
    server.kubectl("patch", VALIDATING, "claimgate", "--type=json", "-p", json.dumps(patch))
    until(lambda: expired not in _webhooks(server)[0].get("matchConditions", ()), "the condition is removed")


def _is_in_force(server: ApiServer) -> None:
    _apply(server, policy("eight-gpus", EIGHT, facts=["gpu"]), binding("eight-gpus", "eight-gpus"))
    spec = policy("eight-gpus")["spec"]
    told = {"validations": [{"expression": EIGHT, "message": "at most eight GPUs", "reason": "BadRequest"}]}
    _apply(server, policy("eight-gpus", **{**spec, **told, "facts": ["gpu"]}))
    until(lambda: "at most eight GPUs" in _refusal(server, pod("nine", NINE_GPUS)), "the Pod is refused")
    assert "(BadRequest)" in _refusal(server, pod("nine", NINE_GPUS))
    _until_status(server, "eight-gpus", "Compiled", "True")
    _until_status(server, "eight-gpus", "Registered", "True")
    _until_status(server, "eight-gpus", "Portable", "False")
    _until_status(server, "eight-gpus", "TypeChecked", "True")
    _apply(server, policy("mistyped", "!has(object.spec.nodeName) || object.spec.containers.image == 'a'"))
    told = _until_status(server, "mistyped", "TypeChecked", "False")["message"]
    assert "`object.spec.containers` is a list, which has no fields: test its elements" in told
    server.kubectl("delete", "validatingpolicy.claimgate.dev", "mistyped")
    shown = server.kubectl("get", "validatingpolicies.claimgate.dev").stdout.split()
    assert shown[:7] == ["NAME", "COMPILED", "REGISTERED", "AGE", "eight-gpus", "True", "True"]


def _says_what_is_broken_and_refuses_nothing_for_it(server: ApiServer, replicas: Replicas) -> None:
    """A policy with a typo is reported, and the policies from before the typo stay in use, also in replicas that start
    later.
    """
    _apply(server, binding("broken", "broken"))
    wrong = policy("broken", "gpu.devises == 1", facts=["gpu"])
    until(lambda: STORED_POLICIES in {one["name"] for one in _webhooks(server)}, "the kinds are registered")
    until(lambda: "hint: did you mean `devices`?" in _refusal(server, _written(wrong)), "kubectl apply is refused")
    _without_replicas(server, replicas, wrong)
    told = _until_status(server, "broken", "Compiled", "False")["message"]
    assert "spec.validations[0].expression" in told
    assert told.endswith("until this is fixed, the object has no effect")
    assert not _refusal(server, pod("one", {"nvidia.com/gpu": "1"}))
    _apply(server, policy("broken", "gpu.devices != 7", facts=["gpu"]))
    found = _until_status(server, "broken", "Compiled", "True")
    assert found["observedGeneration"] == 2
    until(lambda: "broken" in _refusal(server, SEVEN), "seven GPUs are refused")
    _until_kept(server, "broken", 2)
    _without_replicas(server, replicas, policy("broken", "gpu.devises != 7", facts=["gpu"]))
    told = _until_status(server, "broken", "Compiled", "False")["message"]
    assert told.endswith("until this is fixed, generation 2 is evaluated, the last that compiled")
    assert "broken" in _refusal(server, SEVEN)
    assert not _refusal(server, pod("one", {"nvidia.com/gpu": "1"}))
    assert "at most eight GPUs" in _refusal(server, pod("nine", NINE_GPUS))
    server.kubectl("label", "validatingpolicy.claimgate.dev", "broken", "mended=later")
    server.kubectl("delete", "validatingpolicy.claimgate.dev", "broken")


def _without_replicas(server: ApiServer, replicas: Replicas, value: dict[str, Any]) -> None:
    """Apply the object while no server answers, so the webhook cannot refuse it. Then start new replicas."""
    for one in list(replicas.running):
        replicas.end(one)
    _apply(server, value)
    replicas.roll()


def _until_kept(server: ApiServer, name: str, generation: int) -> None:
    def is_kept() -> bool:
        status = server.get("validatingpolicies.claimgate.dev", name).get("status", {})
        return bool(status.get("lastCompiled", {}).get("generation") == generation)

    until(is_kept, f"generation {generation} is in the status")


def _spares_what_was_stored(server: ApiServer, meaning: str) -> None:
    """For objects that are older than a policy, changes of finalizers and status, and deletions, pass. `stored` decides
    about changes of labels. New objects are refused.
    """
    for name in ("ending", "kept", "deleted"):
        held = pod(name, {"nvidia.com/gpu": "6"})
        held["metadata"]["finalizers"] = ["example.com/tracking"] if name != "deleted" else []
        server.apply(held)
    server.kubectl("delete", "pod", "ending", "--wait=false", "--grace-period=0", "--force")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
    changed = {"matchConstraints": {"resourceRules": [rule]}, "stored": meaning}
    _apply(server, policy("no-six", "gpu.devices != 6", facts=["gpu"], **changed), binding("no-six", "no-six"))
    until(lambda: "no-six" in _refusal(server, pod("six", {"nvidia.com/gpu": "6"})), "a new Pod is refused")
    merge = ("--type=merge", "-p")
    told = server.kubectl("label", "pod", "kept", "team=ml", code=None).stderr
    assert "the stored object has this problem already" in told if meaning == "warn" else "no-six" in told
    assert ("team" in server.get("pod", "kept")["metadata"].get("labels", {})) is (meaning == "warn")
    server.kubectl("patch", "pod", "kept", "--subresource=status", *merge, '{"status":{"phase":"Failed"}}')
    for name in ("kept", "ending"):
        server.kubectl("patch", "pod", name, *merge, '{"metadata":{"finalizers":null}}')
    until(lambda: "NotFound" in server.kubectl("get", "pod", "ending", code=None).stderr, "the Pod is gone")
    server.kubectl("delete", "pod", "kept", "deleted", "--grace-period=0", "--force")
    server.kubectl("delete", "validatingpolicy.claimgate.dev", "no-six")
    until(lambda: not _refusal(server, pod("six", {"nvidia.com/gpu": "6"})), "the policy is gone")


def _is_registered_for_other_kinds(server: ApiServer, before: list[Any]) -> None:
    """A stored policy about another kind changes only rules, conditions and the list of webhooks."""
    maps = {"resourceRules": [{**RULE, "apiGroups": [""], "resources": ["configmaps"]}]}
    _apply(server, policy("no-maps", "object.metadata.name != 'forbidden'", matchConstraints=maps))
    _apply(server, binding("no-maps", "no-maps"))
    forbidden = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forbidden"}}
    until(lambda: "no-maps" in _refusal(server, forbidden), "the ConfigMap is refused")
    assert "configmaps" in _until_status(server, "no-maps", "Registered", "True")["message"]
    kept = ("name", "clientConfig", "failurePolicy", "timeoutSeconds", "namespaceSelector")
    found = {one["name"]: one for one in _webhooks(server)}
    idle = found["pods.validate.claimgate.dev"]
    assert "rules" not in idle, "a policy about any Pod has all asked, without a condition"
    for one in before:
        if one["name"] in found:
            assert {key: found[one["name"]][key] for key in kept} == {key: one[key] for key in kept}
    assert "validate.claimgate.dev" in found
    printed = claimgate("webhook-config", "--kubeconfig", str(server.kubeconfig))
    assert "configmaps" in printed


def _is_not_registered_where_it_would_block(server: ApiServer) -> None:
    everything = {"resourceRules": [{**RULE, "apiGroups": ["*"], "resources": ["*"]}]}
    _apply(server, policy("everything", "false", matchConstraints=everything), binding("everything", "everything"))
    told = _until_status(server, "everything", "Registered", "False")
    assert told["reason"] == "WouldBlock"
    assert "no node can join" in told["message"]
    assert all(rule["resources"] != ["*"] for one in _webhooks(server) for rule in one.get("rules", ()))
    until(lambda: not _refusal(server, pod("one", {"nvidia.com/gpu": "1"})), "what is not registered is not evaluated")
    server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
    for name, resource, operation, harm in NEEDED:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}
        matched = {"matchConstraints": {"resourceRules": [rule]}, "stored": "deny"}
        _apply(server, policy(name, "false", **matched), binding(name, name))
        told = _until_status(server, name, "Registered", "False")
        assert (told["reason"], harm in told["message"]) == ("WouldBlock", True), told
    server.kubectl("label", "node", "node-a", "drained=soon")
    server.kubectl("delete", "node", "node-a")


def _reads_what_an_administrator_grants(server: ApiServer) -> None:
    spec = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
    _apply(
        server,
        policy("budget", "gpu.devices == null || string(gpu.devices) == params.data.most", facts=["gpu"], **spec),
    )
    ref = {"name": "budget", "namespace": "default", "parameterNotFoundAction": "Deny"}
    server.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "budget"}, "data": {"most": "2"}})
    _apply(server, binding("budget", "budget", paramRef=ref))
    told = _until_status(server, "budget", "Registered", "False")
    assert told["reason"] == "MissingRights"
    assert "it looks up configmaps budget" in told["message"]
    read = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["budget"],
        "verbs": ["get", "list", "watch"],
    }
    patch = yaml.safe_dump({"rules": [read]})
    server.kubectl("patch", "clusterrole", "claimgate-grantable", "--type=merge", "--patch", patch)
    _until_status(server, "budget", "Registered", "True")
    assert server.get("clusterrole", "claimgate-live-lookups")["rules"] == [read]
    until(lambda: "budget" in _refusal(server, pod("three", {"nvidia.com/gpu": "3"})), "the parameter is read")
    until(lambda: not _refusal(server, pod("two", {"nvidia.com/gpu": "2"})), "what it allows is taken", 60)


def _changes_objects(server: ApiServer) -> None:
    maps = {"resourceRules": [{**RULE, "apiGroups": [""], "resources": ["configmaps"]}]}
    change = "Object{metadata: Object.metadata{labels: {'team': 'ml'}}}"
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": change}}
    spec = {"reinvocationPolicy": "Never", "matchConstraints": maps, "mutations": [mutation]}
    bound = {"policyName": "team", "policyKind": "MutatingPolicy"}
    _apply(server, stored("MutatingPolicy", "team", spec), stored("PolicyBinding", "team", bound))
    _until_status(server, "team", "Registered", "True", "mutatingpolicies.claimgate.dev")
    value = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "labelled"}})

    def is_changed() -> bool:
        done = server.kubectl("create", "--dry-run=server", "-o", "yaml", "-f", "-", given=value)
        return bool(yaml.safe_load(done.stdout)["metadata"].get("labels") == {"team": "ml"})

    until(is_changed, "the ConfigMap gets its label")


def _acts_again_after_a_new_installation(server: ApiServer, objects: list[dict[str, Any]]) -> None:
    """Registration is repaired after the configurations were deleted. As docs/live-policies.md says, bundles are
    checked every ten seconds, and rules every two seconds.
    """
    server.kubectl("delete", f"{VALIDATING},mutatingwebhookconfiguration", "claimgate")
    assert not _refusal(server, pod("nine", NINE_GPUS))
    apply(server, [one for one in objects if "webhooks" in one])
    forbidden = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forbidden"}}
    until(lambda: "no-maps" in _refusal(server, forbidden), "a kind that only a stored policy names is refused", 60)
    until(lambda: "at most eight GPUs" in _refusal(server, pod("nine", NINE_GPUS)), "the Pod is refused")


def _apply(server: ApiServer, *objects: dict[str, Any]) -> None:
    """Apply objects as people write them, without the fields that an API server adds."""
    apply(server, [_written(one) for one in objects])


def _written(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {"name": value["metadata"]["name"]}}


def _webhooks(server: ApiServer) -> list[Any]:
    return list(server.get(VALIDATING, "claimgate")["webhooks"])


def _until_status(
    server: ApiServer, name: str, condition: str, status: str, kind: str = "validatingpolicies.claimgate.dev"
) -> dict[str, Any]:
    """Wait for a condition about the current spec."""
    found: dict[str, Any] = {}

    def holds() -> bool:
        one = server.get(kind, name)
        conditions = one.get("status", {}).get("conditions", ())
        found.update(next((each for each in conditions if each["type"] == condition), {}))
        return bool(found) and (found["status"], found["observedGeneration"]) == (status, one["metadata"]["generation"])

    until(holds, f"{name} is {condition}={status}, but {found}", 40)
    return found


def _refusal(server: ApiServer, value: dict[str, Any]) -> str:
    done = server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(value), code=None)
    return done.stderr if done.returncode else ""
