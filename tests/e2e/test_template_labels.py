"""Three rules of `object-shape` and `manifest-shape` refuse the same workloads as the API server."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.e2e
APP = {"app": "web"}
TIER = {"key": "tier", "operator": "In", "values": ["a"]}


def _workload(kind: str, selector: dict[str, Any], labels: dict[str, str] | None, **spec: Any) -> dict[str, Any]:
    pod: dict[str, Any] = {"containers": [{"name": "a", "image": "x"}]}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
    template = {"spec": pod} if labels is None else {"metadata": {"labels": labels}, "spec": pod}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata,
            "spec": {"selector": selector, "template": template, **spec}}  # fmt: skip


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(_workload("Deployment", {"matchLabels": APP}, APP), id="a Deployment that selects its pods"),
        pytest.param(_workload("Deployment", {"matchLabels": APP}, {"app": "api"}), id="another value of the label"),
        pytest.param(_workload("Deployment", {"matchLabels": APP}, None), id="no labels"),
        pytest.param(
            _workload("ReplicaSet", {"matchExpressions": [TIER]}, APP), id="an expression that does not match"
        ),
        pytest.param(
            _workload("ReplicaSet", {"matchExpressions": [TIER]}, {"tier": "a"}), id="an expression that matches"
        ),
        pytest.param(_workload("StatefulSet", {"matchLabels": APP}, {}, serviceName="w"), id="a StatefulSet"),
        pytest.param(_workload("DaemonSet", {"matchLabels": APP}, {"app": "api"}), id="a DaemonSet"),
        pytest.param(
            _workload("DaemonSet", {"matchLabels": APP}, APP | {"tier": "a"}), id="more labels than the selector"
        ),
        pytest.param(
            _workload("Job", {"matchLabels": APP}, APP, manualSelector=True), id="a Job that selects its pods"
        ),
        pytest.param(_workload("Job", {"matchLabels": APP}, None, manualSelector=True), id="a Job without labels"),
    ],
)
def test_the_api_server_refuses_what_the_rule_reports(audit_and_create, workload):
    reported, created = audit_and_create(workload, "object-shape/template-labels")
    assert reported == ("`selector` does not match template `labels`" in created.stderr), created.stderr
    assert reported == (created.returncode != 0), created.stderr


def _job(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return _workload("Job", spec.pop("selector", None), labels, **spec)


def _cron_job(job: dict[str, Any]) -> dict[str, Any]:
    spec = {"schedule": "0 1 * * *", "jobTemplate": {"spec": job["spec"]}}
    return job | {"kind": "CronJob", "spec": spec}


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(_job(), id="a Job"),
        pytest.param(_job(APP, selector={"matchLabels": APP}), id="a selector"),
        pytest.param(_job(APP, selector={}), id="an empty selector"),
        pytest.param(_job(APP, selector={"matchLabels": {"job-name": "w"}}), id="a selector of the name"),
        pytest.param(_job(APP, selector={"matchLabels": {"job-name": "v"}}), id="a selector of another name"),
        pytest.param(_job(selector={"matchLabels": {"controller-uid": "a"}}), id="a selector of a uid"),
        pytest.param(_job(selector={"matchExpressions": [TIER]}), id="a requirement"),
        pytest.param(
            _job(selector={"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), id="no such label"
        ),
        pytest.param(
            _job(selector={"matchExpressions": [{"key": "controller-uid", "operator": "Exists"}]}), id="any uid"
        ),
        pytest.param(_job({"job-name": "w"}), id="a label of the name"),
        pytest.param(_job({"job-name": "v"}), id="a label of another name"),
        pytest.param(_job({"batch.kubernetes.io/controller-uid": "a"}), id="a label of a uid"),
        pytest.param(_job(APP, manualSelector=True), id="manualSelector alone"),
        pytest.param(_job(APP, manualSelector=True, selector={"matchLabels": APP}), id="manualSelector and a selector"),
        pytest.param(_job({"job-name": "v"}, manualSelector=True, selector={}), id="labels under manualSelector"),
        pytest.param(_cron_job(_job(APP)), id="a CronJob"),
        pytest.param(_cron_job(_job(APP, selector={})), id="a CronJob with an empty selector"),
        pytest.param(_cron_job(_job(APP, manualSelector=True)), id="a CronJob with manualSelector"),
        pytest.param(_cron_job(_job(APP, manualSelector=False)), id="a CronJob without manualSelector"),
    ],
)
def test_the_api_server_refuses_the_same_selectors_of_jobs(audit_and_create, workload):
    reported, created = audit_and_create(workload, "object-shape/job-selector")
    assert reported == (created.returncode != 0), created.stderr


def _with_mount(workload: dict[str, Any], volumes: tuple[str, ...] = ()) -> dict[str, Any]:
    spec = workload["spec"].get("jobTemplate", workload)["spec"]
    pod = spec["template"]["spec"]
    pod["volumes"] = [{"name": name, "emptyDir": {}} for name in volumes]
    pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return workload


_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "w", "namespace": "default"},
    "spec": {"containers": [{"name": "a", "image": "x", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]},
}


@pytest.mark.parametrize(
    "workload",
    [
        *(
            pytest.param(_with_mount(_workload(kind, {"matchLabels": APP}, APP), names), id=f"{kind} {names}")
            for kind in ("Deployment", "ReplicaSet", "DaemonSet")
            for names in ((), ("data",), ("dat",))
        ),
        pytest.param(_with_mount(_job(), ("models",)), id="a Job"),
        pytest.param(_with_mount(_cron_job(_job())), id="a CronJob"),
        pytest.param(_with_mount(_workload("StatefulSet", {"matchLabels": APP}, APP)), id="a StatefulSet"),
        pytest.param(
            _with_mount(_workload("StatefulSet", {"matchLabels": APP}, APP, volumeClaimTemplates=[_CLAIM])),
            id="a StatefulSet with a claim",
        ),
        pytest.param(_POD, id="a Pod"),
    ],
)
def test_the_api_server_refuses_the_same_mounts(audit_and_create, workload):
    reported, created = audit_and_create(workload, "manifest-shape/volume-exists")
    assert reported == (created.returncode != 0), created.stderr
