"""The rule about gangs that wait for themselves agrees with a simulation of how Volcano creates and places pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.volcano.job_dependencies_and_deadlocks import warn_of_gang_deadlock
from webhook.facts.volcano.sent_job import read_job

EXAMPLES = 10_000 if settings().max_examples > 1_000 else 300
"""A few hundred examples in the normal run, 10,000 with the profile `fuzz`."""
NAMES = "abcdef"


@dataclass
class Simulation:
    """A simulation of one Job. In every round, the controller creates pods and the scheduler places the gang, until
    nothing changes.

    Nodes have room for everything, so placed pods run.
    """

    spec: JSON
    created: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)

    def starts(self) -> bool:
        before = None
        while before != (len(self.created), len(self.running)):
            before = len(self.created), len(self.running)
            self.created |= {task["name"] for task in self.spec["tasks"] if self.may_be_created(task)}
            if self.is_gang_valid():
                self.running |= self.created
        return len(self.running) == len(self.spec["tasks"])

    def may_be_created(self, task: JSON) -> bool:
        depends = task.get("dependsOn", {})
        ready = [self.runs(name) >= self.task(name)["minAvailable"] for name in depends.get("name", [])]
        return any(ready) if len(ready) > 1 and depends.get("iteration") == "any" else all(ready)

    def is_gang_valid(self) -> bool:
        """Return whether the scheduler counts enough pods of the Job. If all minima count, it also counts the pods of
        each task.
        """
        pods = {task["name"]: task["replicas"] for task in self.spec["tasks"] if task["name"] in self.created}
        needs = {task["name"]: task["minAvailable"] for task in self.spec["tasks"]}
        if sum(pods.values()) < self.spec["minAvailable"]:
            return False
        if self.spec["minAvailable"] < sum(needs.values()):
            return True
        return all(pods.get(name, 0) >= least for name, least in needs.items() if least)

    def task(self, name: str) -> JSON:
        return next(task for task in self.spec["tasks"] if task["name"] == name)

    def runs(self, name: str) -> int:
        return self.task(name)["replicas"] if name in self.running else 0


@st.composite
def specs(draw: st.DrawFn) -> JSON:
    """Draw specs of Jobs that Volcano accepts: dependsOn has no cycle, and no minimum exceeds the replicas."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    tasks: list[dict[str, Any]] = []
    for index, name in enumerate(names):
        replicas = draw(st.integers(0, 4))
        task: dict[str, Any] = {"name": name, "replicas": replicas, "minAvailable": draw(st.integers(0, replicas))}
        wanted = draw(st.lists(st.sampled_from(names[:index]), unique=True, max_size=3)) if index else []
        if wanted:
            iteration = draw(st.sampled_from(["any", "all"]))
            task["dependsOn"] = {"name": wanted, "iteration": iteration}
        tasks.append(task)
    tasks = draw(st.permutations(tasks))
    total = sum(task["replicas"] for task in tasks)
    least = draw(st.integers(0, total)) or sum(task["minAvailable"] for task in tasks)
    return {"minAvailable": least, "tasks": tasks}


@settings(max_examples=EXAMPLES)
@given(specs())
def test_exactly_the_jobs_that_never_start_are_reported(spec: JSON) -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    about = subject(job)
    told = [*warn_of_gang_deadlock(about.once(read_job), about)]
    assert bool(told) is not Simulation(spec).starts()
