"""The training jobs for which claimgate reports that the other pods wait after one pod is lost."""

from __future__ import annotations

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.device_failures.restarts import advise_gang_restarts

TORCH = ["torchrun", "--nnodes=2", "--master_addr=a", "t.py"]
EVICTED = {"event": "PodEvicted", "action": "RestartJob"}


def told(
    *policies: JSON, own: tuple[JSON, ...] = (), restart: str = "OnFailure", replicas: int = 2, **more: JSON
) -> str:
    container = {"name": "a", "command": TORCH, "resources": {"limits": {"nvidia.com/gpu": 1}}, **more}
    pod = {"restartPolicy": restart, "containers": [container]}
    task = {"name": "a", "replicas": replicas, "policies": list(own), "template": {"spec": pod}}
    spec = {"tasks": [task], "policies": list(policies)}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    return "; ".join(each.message for each in advise_gang_restarts(subject(job)))


def test_a_gang_restarts_as_a_whole() -> None:
    both, failed = "PodEvicted and PodFailed, so", {"event": "PodFailed", "action": "RestartJob"}
    rows = {
        "no policy": (told(), "for PodEvicted, so"),
        "no policy, and no restarts": (told(restart="Never"), both),
        "a policy of the job": (told(EVICTED), ""),
        "a policy of the task": (told(own=(EVICTED,)), ""),
        "a policy for every event": (told({"event": "*", "action": "RestartJob"}, restart="Never"), ""),
        "policies for both events": (told(EVICTED, failed, restart="Never"), ""),
        "a policy for an exit code": (told(EVICTED, {"exitCode": 3, "action": "RestartJob"}, restart="Never"), ""),
        "a policy for a failed task": (
            told(EVICTED, {"events": ["TaskFailed"], "action": "AbortJob"}, restart="Never"),
            "",
        ),
        "one pod": (told(replicas=1), ""),
        "no devices": (told(resources={}), ""),
        "no launcher": (told(command=["python", "t.py"]), ""),
        "pods that train alone": (told(command=["torchrun", "--nnodes=1", "t.py"]), ""),
        "an elastic training": (told(command=["torchrun", "--nnodes=1:2", "t.py"]), ""),
    }
    assert {
        name: pair for name, pair in rows.items() if (pair[1] not in pair[0]) or bool(pair[0]) != bool(pair[1])
    } == {}


def job_set(**spec: JSON) -> str:
    container = {"name": "a", "command": TORCH, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    job = {"parallelism": 2, "completions": 2, "template": {"spec": {"containers": [container]}}}
    held = {"replicatedJobs": [{"name": "node", "template": {"spec": job}}], **spec}
    obj = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "j"}, "spec": held}
    return "; ".join(each.path for each in advise_gang_restarts(subject(obj)))


def test_a_job_set_is_restarted() -> None:
    free = {"name": "a", "action": "RestartJobSetAndIgnoreMaxRestarts"}
    assert job_set() == "spec.failurePolicy"
    assert job_set(failurePolicy={}) == "spec.failurePolicy.maxRestarts"
    assert job_set(failurePolicy={"rules": [{"name": "a", "action": "FailJobSet"}]}) == "spec.failurePolicy.maxRestarts"
    assert job_set(failurePolicy={"maxRestarts": 1}) == ""
    assert job_set(failurePolicy={"rules": [free]}) == ""
