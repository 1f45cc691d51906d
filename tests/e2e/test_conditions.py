"""The conditions of the registered webhooks on a real API server: which webhooks it calls, and that no condition fails.

The webhooks fail closed, and no server answers. A request that calls a webhook is refused with its name, and other
requests pass. A failing condition would refuse a request as Forbidden, with the expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import ApiServer
from tests.e2e.conftest import claimgate
from tests.export.asked import asked
from tests.export.large_objects import BYTES, SHAPES, kinds_with
from tests.literals import TABLE, request
from webhook.apimachinery.attributes import Phase

pytestmark = pytest.mark.e2e


def spec(*containers: dict[str, Any], **others: Any) -> dict[str, Any]:
    listed = containers or ({},)
    return {"containers": [{"name": f"c{n}", "image": "app:1", **each} for n, each in enumerate(listed)], **others}


LONG = {
    "command": ["x" * 255 for _ in range(16)],
    "args": ["y" * 255 for _ in range(16)],
    "env": [{"name": f"NAME_{'Z' * 200}_{number}", "value": "v"} for number in range(64)],
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}},
}
MANY = {f"{'k' * 50}{number}": "v" for number in range(60)}
SPECS: dict[str, dict[str, Any]] = {
    "ordinary": spec({"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "1", "memory": "1Gi"}}}),
    "a device": spec({"resources": {"limits": {"nvidia.com/gpu": "1"}}}),
    "the portable device": spec({"resources": {"limits": {"gpu": "1"}}}),
    "a device of an init container": spec(
        {}, initContainers=[{"name": "i", "image": "i", "resources": {"limits": {"a.b/c": "1"}}}]
    ),
    "a claim": spec({}, resourceClaims=[{"name": "a", "resourceClaimName": "b"}]),
    "a launcher": spec({"command": ["torchrun", "train.py"]}),
    "an image for GPUs": spec({"image": "nvidia/cuda:12"}),
    "another scheduler": spec({}, schedulerName="volcano"),
    "as many containers as conditions read": spec(
        *([LONG] * 8), initContainers=[{"name": f"i{n}", "image": "i", **LONG} for n in range(8)]
    ),
    "more containers than conditions read": spec(*([{}] * 60)),
    "words that are too long for conditions": spec({"args": ["x" * 100_000]}),
}
LABELLED = {"a queue": {"kueue.x-k8s.io/queue-name": "q"}, "as many labels as conditions read": MANY}


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, each in SPECS.items():
        yield f"Pod with {name}", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": each}
    for name, labels in LABELLED.items():
        yield (
            f"Pod with {name}",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}, "spec": spec()},
        )


def workloads() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("ordinary", "a device", "as many containers as conditions read"):
        template = {"metadata": {"labels": {"a": "b"}}, "spec": SPECS[name]}
        selected = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        job = {"template": {"spec": {**SPECS[name], "restartPolicy": "Never"}}}
        cron = {"schedule": "0 0 * * *", "jobTemplate": {"spec": job}}
        yield f"Deployment with {name}", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": selected}
        yield f"Job with {name}", {"apiVersion": "batch/v1", "kind": "Job", "spec": job}
        yield f"CronJob with {name}", {"apiVersion": "batch/v1", "kind": "CronJob", "spec": cron}
        yield f"PodTemplate with {name}", {"apiVersion": "v1", "kind": "PodTemplate", "template": template}


WORKFLOWS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "workflows.argoproj.io"},
    "spec": {
        "group": "argoproj.io",
        "names": {"kind": "Workflow", "plural": "workflows", "singular": "workflow", "listKind": "WorkflowList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""As in Argo, the kind has no status subresource. Its controller writes status with the object."""
WORKFLOW = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": {"templates": [{"container": {}}]}}


def stored() -> list[dict[str, Any]]:
    """Return objects with a finalizer, which are stored before the server stops."""
    metadata = {"name": "stored", "finalizers": ["example.org/kept"]}
    template = {"spec": {**SPECS["a device"], "restartPolicy": "Never"}}
    given = [
        {"apiVersion": "v1", "kind": "Pod", "spec": SPECS["a device"]},
        {"apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": True, "template": template}},
        WORKFLOW,
    ]
    return [{**each, "metadata": metadata} for each in given]


OBJECTS = dict([*pods(), *((name, {**each, "metadata": {"name": "o"}}) for name, each in workloads())])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.missing():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("conditions")) as running:
        running.kubectl("create", "namespace", "claimgate-system")
        running.apply(WORKFLOWS)
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        for each in stored():
            running.apply(each)
        printed = claimgate(
            "webhook-config", "--failure-policy", "Fail", "--timeout", "1", "--url", "https://127.0.0.1:9"
        )
        running.kubectl("create", "-f", "-", given=printed)
        running.kubectl("wait", "--for=jsonpath={.metadata.name}=claimgate", "validatingwebhookconfiguration/claimgate")
        yield running


@pytest.mark.parametrize("obj", OBJECTS.values(), ids=OBJECTS.keys())
def test_the_api_server_asks_the_authorizer_questions_of_our_engine(obj: dict[str, Any], server: ApiServer) -> None:
    done = server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(obj), code=None)
    assert "expression" not in done.stderr
    assert ("failed calling webhook" in done.stderr) is (done.returncode != 0), done.stderr
    ours = any(asked(request(obj), phase) for phase in Phase)
    assert (done.returncode != 0) is ours, done.stderr


def test_controllers_continue_while_the_webhook_is_down(server: ApiServer) -> None:
    """The API server accepts changes of status and finalizers, and deletions, without a call. For changes of a label or
    the spec it calls the webhook.
    """
    kinds = ("pods", "jobs.batch", "workflows.argoproj.io")
    refused = "failed calling webhook"
    for kind in kinds:
        patch = ["patch", kind, "stored", "--type=merge", "-p"]
        sub_resource = [] if kind.startswith("workflows") else ["--subresource=status"]
        server.kubectl(*patch, '{"status": {"phase": "Running"}}', *sub_resource)
        server.kubectl(*patch, '{"metadata": {"finalizers": ["example.org/kept", "example.org/more"]}}')
        label = '{"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}}'
        assert refused in server.kubectl(*patch, label, code=1).stderr, kind
    suspend = ["patch", "jobs.batch", "stored", "--type=merge", "-p", '{"spec": {"suspend": false}}']
    assert refused in server.kubectl(*suspend, code=1).stderr
    for kind in kinds:
        server.kubectl("delete", kind, "stored", "--wait=false", "--grace-period=0")
        server.kubectl("patch", kind, "stored", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert server.kubectl("get", ",".join(kinds), "--no-headers").stdout == ""


def test_infrastructure_starts_while_the_webhook_is_down(server: ApiServer) -> None:
    """Namespaces of infrastructure are exempt. In other namespaces, a variable in an argument is not mistaken for a
    launcher.
    """
    given = yaml.safe_dump(OBJECTS["Pod with a device"])
    for namespace in ("cert-manager", "gpu-operator"):
        server.kubectl("create", "namespace", namespace)
        server.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", given=given)
    env = [{"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
    plain = {**OBJECTS["Pod with ordinary"], "spec": spec({"args": ["--ns=$(POD_NAMESPACE)"], "env": env})}
    server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(plain))


def test_a_kubelet_shows_its_static_pods(server: ApiServer) -> None:
    pod = OBJECTS["Pod with a device"]
    mirror = {"name": "static-node-a", "annotations": {"kubernetes.io/config.mirror": "a"}}
    given = yaml.safe_dump({**pod, "metadata": mirror, "spec": {**pod["spec"], "nodeName": "node-a"}})
    arguments = ["create", "--dry-run=server", "-f", "-"]
    node = ["--as=system:node:node-a", "--as-group=system:nodes", "--as-group=system:masters"]
    assert "failed calling webhook" in server.kubectl(*arguments, given=given, code=1).stderr
    server.kubectl(*arguments, *node, given=given)
    assert "failed calling webhook" in server.kubectl(*arguments, *node, given=yaml.safe_dump(pod), code=1).stderr


def test_a_namespace_may_opt_out(server: ApiServer) -> None:
    given = yaml.safe_dump(OBJECTS["Pod with a device"])
    server.kubectl("create", "namespace", "free")
    assert (
        "failed calling"
        in server.kubectl("create", "--dry-run=server", "-n", "free", "-f", "-", given=given, code=1).stderr
    )
    server.kubectl("label", "namespace", "free", "claimgate.dev/admission=disabled")
    for _ in range(50):  # the API server's view of namespaces is a moment behind
        done = server.kubectl("create", "--dry-run=server", "-n", "free", "-f", "-", given=given, code=None)
        if not done.returncode:
            break
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def client(server: ApiServer) -> Iterator[httpx.Client]:
    user = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]
    headers = {"authorization": f"Bearer {user['token']}"}
    with httpx.Client(verify=apiserver.trust(server), headers=headers, base_url=server.url, timeout=60) as made:
        yield made


def created(obj: dict[str, Any], client: httpx.Client) -> httpx.Response:
    group, _, version = obj["apiVersion"].rpartition("/")
    row = TABLE.row(group, obj["kind"])
    assert row
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return client.post(
        f"{root}/namespaces/default/{row.resource}", params={"dryRun": "All", "timeout": "60s"}, json=obj
    )


OF_EACH_PLACE = ("Pod", "Deployment", "CronJob", "PodTemplate")
"""A kind for each place of pod templates. Kinds with the same place have the same conditions."""
INVALID = 422
"""The API server's own validation, which runs before the validating phase, refused the object."""


def with_portable_gpu(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec with `gpu`. For `gpu`, the mutating webhook is called before the API server's validation."""
    changed = deepcopy(spec)
    changed["containers"][-1]["resources"] = {"limits": {"gpu": "1"}}
    return changed


@pytest.mark.parametrize("shape", SHAPES)
def test_no_large_object_exhausts_a_condition(shape: str, client: httpx.Client) -> None:
    # with very many items, the API server exceeds its own time limit; so a condition first checks the number of items
    spec, metadata = SHAPES[shape](BYTES // 20 if shape.startswith("as many") else BYTES)
    pod = next(iter(kinds_with(with_portable_gpu(spec), metadata)))
    answer = created(pod, client).text
    assert "failed calling webhook" in answer, answer[:500]
    assert "mutate.claimgate.dev" in answer, answer[:500]
    for obj in kinds_with(spec, metadata):
        if obj["kind"] in OF_EACH_PLACE:
            sent = created(obj, client)
            asks = "failed calling webhook" in sent.text
            assert asks or sent.status_code == INVALID, (obj["kind"], sent.text[:500])
