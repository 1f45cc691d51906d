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


def _failure_rule(**rule: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": "FailJob", **rule}]}}


def _codes(values: list[int], operator: str = "In", **codes: str) -> dict[str, Any]:
    return _failure_rule(onExitCodes={"operator": operator, "values": values, **codes})


_INDEXED = {"completionMode": "Indexed", "completions": 3}
_LIMITED = _INDEXED | {"backoffLimitPerIndex": 1}
_CONDITIONS = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
_SPECS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "parallelism alone": {"parallelism": 3},
    "indexed": {"completionMode": "Indexed"},
    "indexed with parallelism": {"completionMode": "Indexed", "parallelism": 3},
    "indexed with completions": _INDEXED,
    "another mode": {"completionMode": "indexed"},
    "no pod at all": {"parallelism": 0, "completionMode": "Indexed", "completions": 0},
    **{
        f"negative {name}": _LIMITED | {name: -1}
        for name in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    },
    "negative limit of an index": _INDEXED | {"backoffLimitPerIndex": -1},
    "negative number of failed indexes": _LIMITED | {"maxFailedIndexes": -1},
    "a limit for each index": _LIMITED,
    "a limit for each index without indexes": {"backoffLimitPerIndex": 1},
    "failed indexes": _LIMITED | {"maxFailedIndexes": 3},
    "more failed indexes than completions": _LIMITED | {"maxFailedIndexes": 4},
    "failed indexes without a limit for each": _INDEXED | {"maxFailedIndexes": 1},
    "an exit code": _codes([1]),
    "exit code 0": _codes([0, 1]),
    "not exit code 0": _codes([0], "NotIn"),
    "exit codes in another order": _codes([2, 1]),
    "an exit code twice": _codes([1, 1]),
    "no exit code": _codes([]),
    "another operator": _codes([1], "Equals"),
    "the container": _codes([1], containerName="a"),
    "another container": _codes([1], containerName="b"),
    "a condition": _failure_rule(**_CONDITIONS),
    "a condition and an exit code": _failure_rule(onExitCodes={"operator": "In", "values": [1]}, **_CONDITIONS),
    "neither a condition nor an exit code": _failure_rule(),
    "an action without a limit": _failure_rule(action="FailIndex", **_CONDITIONS),
    "an action with a limit": _LIMITED | _failure_rule(action="FailIndex", **_CONDITIONS),
    "another action": _failure_rule(action="Fail", **_CONDITIONS),
    "an action of counting": _failure_rule(action="Count", **_CONDITIONS),
    "replacement of failed pods": _codes([1]) | {"podReplacementPolicy": "Failed"},
    "early replacement": {"podReplacementPolicy": "TerminatingOrFailed"},
    "early replacement of pods that fail": _codes([1]) | {"podReplacementPolicy": "TerminatingOrFailed"},
    "another replacement": {"podReplacementPolicy": "Never"},
    "success": _INDEXED | {"successPolicy": {"rules": [{"succeededCount": 3}]}},
    "success of more pods than completions": _INDEXED | {"successPolicy": {"rules": [{"succeededCount": 4}]}},
    "success of indexes": _INDEXED | {"successPolicy": {"rules": [{"succeededIndexes": "0-1"}]}},
    "success of nothing": _INDEXED | {"successPolicy": {"rules": [{}]}},
    "success without a rule": _INDEXED | {"successPolicy": {"rules": []}},
    "success without indexes": {"successPolicy": {"rules": [{"succeededCount": 1}]}},
}


def _with_restarts(job: dict[str, Any]) -> dict[str, Any]:
    job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    return job


@pytest.mark.parametrize(
    "workload",
    [
        *(pytest.param(_job(**spec), id=name) for name, spec in _SPECS.items()),
        *(pytest.param(_cron_job(_job(**spec)), id=f"{name}, in a CronJob") for name, spec in _SPECS.items()),
        pytest.param(_with_restarts(_job()), id="restarts"),
        pytest.param(_with_restarts(_job(**_codes([1]))), id="restarts of pods that fail"),
    ],
)
def test_the_api_server_refuses_the_same_specs_of_jobs(audit_and_create, workload):
    reported, created = audit_and_create(workload, "object-shape/job-spec")
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
