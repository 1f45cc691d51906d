"""claimgate beside the webhooks of Istio, Kueue and Volcano: the order of calls, repeated calls, and the objects in the
calls.

docs/beside-others.md has these results for users.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import Cluster
from tests.e2e.other_webhooks import (
    Other,
    OtherWebhooks,
    other_webhooks,
    registered,
    schedule_by,
    sidecar,
    suspend_in_queue,
)

pytestmark = pytest.mark.e2e

NAMESPACE = "beside-others"
KUEUE, VOLCANO = "kueue-mutating-webhook-configuration", "volcano-admission-service-pods-mutate"
ISTIO, EARLY = "istio-sidecar-injector", "a-sidecar-injector"
NVIDIA = {"nvidia.com/gpu": "1"}


@pytest.fixture(scope="module")
def others(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherWebhooks]:
    cluster.server.kubectl("create", "namespace", NAMESPACE)
    with other_webhooks(tmp_path_factory.mktemp("others")) as running:
        yield running


def pod(name: str, **limits: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def created(cluster: Cluster, value: dict[str, Any]) -> dict[str, Any]:
    done = cluster.server.kubectl("create", "-o", "yaml", "-f", "-", given=yaml.safe_dump(value))
    return dict(yaml.safe_load(done.stdout))


def refusal(cluster: Cluster, value: dict[str, Any]) -> str:
    return cluster.server.kubectl("create", "-f", "-", given=yaml.safe_dump(value), code=1).stderr


def limits(value: dict[str, Any]) -> list[dict[str, str]]:
    spec = value["spec"].get("template", value)["spec"]
    return [one["resources"].get("limits", {}) for one in spec["containers"]]


def calls(cluster: Cluster, name: str) -> list[str]:
    cluster.asked_until(name)
    return [line["phase"] for line in cluster.lines("review") if line["name"] == name]


def test_configurations_are_called_in_the_order_of_their_names(cluster: Cluster, others: OtherWebhooks) -> None:
    """A webhook that is called before claimgate gets `gpu`. Later webhooks, such as those of Kueue and Volcano, get the
    replacement.
    """
    volcano = Other(VOLCANO, schedule_by("volcano"))
    with registered(cluster.server, others, NAMESPACE, volcano, Other(EARLY, lambda _: [])):
        stored = created(cluster, pod("ordered", gpu="1"))
    assert [name for name, _ in others.seen] == [EARLY, VOLCANO]
    assert [limits(value) for _, value in others.seen] == [[{"gpu": "1"}], [NVIDIA]]
    assert (stored["spec"]["schedulerName"], limits(stored)) == ("volcano", [NVIDIA])


def test_gpu_that_an_earlier_webhook_adds_is_translated(cluster: Cluster, others: OtherWebhooks) -> None:
    with registered(cluster.server, others, NAMESPACE, Other(EARLY, sidecar("gpu"))):
        assert limits(created(cluster, pod("early"))) == [{}, NVIDIA]


def test_gpu_that_a_later_webhook_adds_is_translated_on_reinvocation(cluster: Cluster, others: OtherWebhooks) -> None:
    """With `reinvocationPolicy: IfNeeded`, the API server calls claimgate again if a later webhook changes the
    object.
    """
    with registered(cluster.server, others, NAMESPACE, Other(ISTIO, sidecar("gpu"))):
        stored = created(cluster, pod("later", gpu="1"))
    assert limits(stored) == [NVIDIA, NVIDIA]
    assert calls(cluster, "later").count("mutate") == 2
    assert len(others.objects(ISTIO)) == 1  # the reinvocationPolicy of this webhook is Never


def test_gpu_that_a_later_webhook_adds_is_refused_without_a_first_call(cluster: Cluster, others: OtherWebhooks) -> None:
    """In the second round, the API server calls only webhooks that it called in the first round. So its validation
    finds `gpu`.
    """
    with registered(cluster.server, others, NAMESPACE, Other(ISTIO, sidecar("gpu"))):
        assert "must be a standard resource type or fully qualified" in refusal(cluster, pod("too-late"))
    with registered(cluster.server, others, NAMESPACE, Other(ISTIO, sidecar("nvidia.com/gpu"))):
        assert limits(created(cluster, pod("named"))) == [{}, NVIDIA]


def test_gpu_all_of_a_later_webhook_is_refused_like_a_submitted_one(cluster: Cluster, others: OtherWebhooks) -> None:
    def all_devices(_: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"op": "add", "path": "/spec/template/spec/containers/0/resources", "value": {"limits": {"gpu": "all"}}}
        ]

    kind = {"apiVersion": "sandbox.opensandbox.io/v1alpha1", "kind": "BatchSandbox"}
    sandbox = {**kind, "metadata": {"name": "late", "namespace": NAMESPACE}, "spec": {"replicas": 1}}
    sandbox["spec"] = {"replicas": 1, "template": {"spec": pod("x", cpu="1")["spec"]}}
    late = Other(VOLCANO, all_devices, resource="batchsandboxes", group="sandbox.opensandbox.io")
    with registered(cluster.server, others, NAMESPACE, late):
        assert "(gpu-portable/all)" in refusal(cluster, sandbox)


def test_a_policy_with_if_needed_runs_again_after_later_changes(cluster: Cluster, others: OtherWebhooks) -> None:
    """The API server calls the early webhook again, because claimgate changed the object later. This time no webhook
    changes the object, so the calls end.
    """
    early = Other(EARLY, sidecar("nvidia.com/gpu"), "IfNeeded")
    with registered(cluster.server, others, NAMESPACE, early, Other(ISTIO, lambda _: [], "IfNeeded")):
        stored = created(cluster, pod("again", gpu="1"))
    assert limits(stored) == [NVIDIA, NVIDIA]
    assert [limits(value)[0] for value in others.objects(EARLY)] == [{"gpu": "1"}, NVIDIA]


def test_a_job_that_kueue_suspends_is_translated_before_kueue_counts_it(
    cluster: Cluster, others: OtherWebhooks
) -> None:
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": NAMESPACE}}
    template = {"spec": {**pod("x", gpu="1")["spec"], "restartPolicy": "Never"}}
    job["metadata"]["name"], job["spec"] = "suspended", {"template": template}
    kueue = Other(KUEUE, suspend_in_queue("of-nobody"), resource="jobs", group="batch")
    with registered(cluster.server, others, NAMESPACE, kueue):
        done = cluster.server.kubectl("create", "-o", "yaml", "-f", "-", given=yaml.safe_dump(job))
    stored = yaml.safe_load(done.stdout)
    assert stored["spec"]["suspend"] is True
    assert limits(stored) == [NVIDIA]
    assert limits(others.objects(KUEUE)[0]) == [NVIDIA], "Kueue counts what the vendor calls it"
    assert stored["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "of-nobody"
