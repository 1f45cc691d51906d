"""The shipped rules with only the validating webhook registered, only the mutating webhook, or both.

Each case has a namespace. namespaceSelectors decide which webhooks it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import Cluster
from tests.e2e.test_rules import CLAIM, RUNTIME, template, trainjob

pytestmark = pytest.mark.e2e

LABEL = "doors.test/only"
KINDS = {"validate": "validatingwebhookconfiguration", "mutate": "mutatingwebhookconfiguration"}
CLAIMS = "spec.template.spec.resourceClaims[0]"
LIMITS = "spec.template.spec.containers[0].resources.limits.gpu"
SENT = {
    "both sources": {"resourceClaims": [{"name": "g", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]},
    "no source": {"resourceClaims": [{"name": "g"}]},
    "a claim": {"resourceClaims": [{"name": "g", "resourceClaimName": "a"}]},
    "a template": {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "b"}]},
    "gpu": {"limits": {"gpu": "2"}},
    "all": {"limits": {"gpu": "all"}},
}
"""BatchSandboxes, because the API server does not check their templates. The seventh object is a TrainJob with claims."""
STORED, INVALID, BAD = "stored", "Invalid", "BadRequest"
EXPECTED = {
    "validate": {
        "both sources": (INVALID, CLAIMS),
        "no source": (INVALID, CLAIMS),
        "a claim": (STORED, {}),
        "a template": (STORED, {}),
        "gpu": (INVALID, LIMITS),
        "all": (BAD, LIMITS),
    },
    "mutate": {
        "both sources": (STORED, {}),
        "no source": (STORED, {}),
        "a claim": (STORED, {}),
        "a template": (STORED, {}),
        "gpu": (STORED, {"nvidia.com/gpu": "2"}),
        "all": (BAD, LIMITS),
    },
    "both": {
        "both sources": (INVALID, CLAIMS),
        "no source": (INVALID, CLAIMS),
        "a claim": (STORED, {}),
        "a template": (STORED, {}),
        "gpu": (STORED, {"nvidia.com/gpu": "2"}),
        "all": (BAD, LIMITS),
    },
}


@pytest.fixture(scope="module")
def doors(cluster: Cluster) -> Iterator[Cluster]:
    """Give each webhook a namespaceSelector for the namespaces of this test. Restore the configurations at the end."""
    for namespace in EXPECTED:
        metadata = {"name": f"only-{namespace}", "labels": {LABEL: namespace}}
        cluster.server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    before = {door: cluster.server.get(kind, "claimgate") for door, kind in KINDS.items()}
    for door, kind in KINDS.items():
        (other,) = KINDS.keys() - {door}
        _select(cluster, kind, before[door], {"key": LABEL, "operator": "NotIn", "values": [other]})
    _wait(cluster)
    yield cluster
    for door, kind in KINDS.items():
        _select(cluster, kind, before[door])


def _select(cluster: Cluster, kind: str, configuration: dict[str, Any], *further: dict[str, Any]) -> None:
    for index, webhook in enumerate(configuration["webhooks"]):
        expressions = [*webhook["namespaceSelector"]["matchExpressions"], *further]
        path = f"/webhooks/{index}/namespaceSelector/matchExpressions"
        patch = json.dumps([{"op": "replace", "path": path, "value": expressions}])
        cluster.server.kubectl("patch", kind, "claimgate", "--type=json", "-p", patch)


def _wait(cluster: Cluster) -> None:
    """Wait until the API server applies the selectors."""
    for _ in range(100):
        made = cluster.server.apply(_sandbox("only-mutate", "probe", SENT["both sources"]), code=None)
        refused = cluster.server.apply(_sandbox("only-validate", "probe", SENT["gpu"]), code=None)
        if made.returncode == 0 and refused.returncode == 1:
            return
    raise AssertionError(made.stderr + refused.stderr)


def _sandbox(namespace: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "BatchSandbox",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "template": template(name="sandbox", **spec)},
    }


def _outcome(cluster: Cluster, namespace: str, name: str, spec: dict[str, Any]) -> tuple[str, Any]:
    done = cluster.server.apply(_sandbox(namespace, name, spec), code=None)
    if done.returncode == 0:
        stored = cluster.server.get("batchsandboxes.sandbox.opensandbox.io", name, namespace)
        container = stored["spec"]["template"]["spec"]["containers"][0]
        return STORED, container.get("resources", {}).get("limits", {})
    reason = BAD if "(BadRequest)" in done.stderr else INVALID if "is invalid" in done.stderr else done.stderr
    return reason, next((path for path in (LIMITS, CLAIMS) if path in done.stderr), done.stderr)


@pytest.mark.parametrize("door", EXPECTED)
def test_each_entry_point_has_its_expected_answers(doors: Cluster, door: str) -> None:
    names = {sent: sent.replace(" ", "-") for sent in SENT}
    assert {sent: _outcome(doors, f"only-{door}", names[sent], SENT[sent]) for sent in SENT} == EXPECTED[door]


@pytest.mark.parametrize("door, is_warned", [("validate", True), ("mutate", False), ("both", True)])
def test_the_warning_of_missing_processes_comes_where_objects_are_validated(
    doors: Cluster, door: str, is_warned: bool
) -> None:
    claim = {**CLAIM, "metadata": {**CLAIM["metadata"], "namespace": f"only-{door}"}}
    doors.server.apply(claim)
    # the runtime is cluster-scoped, so the first test that needs the runtime creates it for all
    doors.server.apply(RUNTIME, code=None)
    warned = ""
    for number in range(50 if is_warned else 1):  # the webhook sees a stored object after a moment
        job = trainjob(f"warned-{number}", "torch-claims")
        job["metadata"]["namespace"] = f"only-{door}"
        warned = doors.server.apply(job).stderr
        if "set the field to 2" in warned:
            break
    assert ("set the field to 2" in warned) is is_warned, warned
