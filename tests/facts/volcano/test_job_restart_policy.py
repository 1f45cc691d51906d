"""Jobs of Volcano that never complete, because their pods do not end."""

from __future__ import annotations

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.volcano.job_scheduling import warn_of_endless_restarts
from webhook.facts.volcano.sent_job import read_job

TORCH = ["torchrun", "t.py"]
DONE = {"event": "TaskCompleted", "action": "CompleteJob"}


def task(restart: str | None, command: JSON = None, *policies: JSON, replicas: int = 1) -> JSON:
    spec = {"containers": [{"name": "a", "command": command}], "restartPolicy": restart}
    return {"name": "a", "replicas": replicas, "policies": list(policies), "template": {"spec": spec}}


def told(*tasks: JSON, policies: tuple[JSON, ...] = ()) -> list[str]:
    named = [{**each, "name": f"t{index}"} for index, each in enumerate(tasks)]
    spec = {"tasks": named, "policies": list(policies)}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    about = subject(job)
    return [
        each.path.partition(".")[2].partition(".")[0] for each in warn_of_endless_restarts(about.once(read_job), about)
    ]


def test_programs_that_never_end_are_recognized() -> None:
    sshd = ["/usr/sbin/sshd", "-D"]
    rows = {
        "always": (told(task("Always")), ["tasks[0]"]),
        "always, with a policy": (told(task("Always"), policies=(DONE,)), []),
        "a training that ends": (told(task("OnFailure", TORCH), task("Never", TORCH)), []),
        "a training without a policy": (told(task(None, TORCH)), ["tasks[0]"]),
        "a training without pods": (told(task(None, TORCH, replicas=0)), []),
        "a program that is not a training": (told(task(None, ["python", "serve.py"]), task(None)), []),
        "ended only by the program that never ends": (told(task(None, TORCH, DONE)), ["tasks[0]"]),
        "ended by a master that ends": (told(task("Never", TORCH, DONE), task(None, TORCH)), []),
        "ended by any task that ends": (told(task("Never", sshd), task(None, TORCH), policies=(DONE,)), []),
        "ended by a task that never ends": (told(task(None, sshd), task(None, TORCH), policies=(DONE,)), ["tasks[1]"]),
        "ended when a pod is evicted": (told(task(None, TORCH), policies=({"event": "*", "action": "AbortJob"},)), []),
        "restarted, not ended": (
            told(task(None, TORCH), policies=({"event": "PodEvicted", "action": "RestartJob"},)),
            ["tasks[0]"],
        ),
    }
    assert {name: pair for name, pair in rows.items() if pair[0] != pair[1]} == {}
