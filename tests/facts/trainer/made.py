"""TrainJobs and runtimes as literals, and the results of merging them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.facts.subjects import subject
from webhook.facts.check import problems_of_group
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob, merge_train_job
from webhook.facts.trainer.train_job_claims import NodeDeviceClaim, device_claims_of_training_node
from webhook.rules.problem import Problem

STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def replicated(name: str, *containers: dict, step: str = "", **pod: object) -> dict:
    template: dict = {"spec": {"template": {"spec": {"containers": list(containers), **pod}}}}
    return {"name": name, "template": {**({"metadata": {"labels": {STEP: step}}} if step else {}), **template}}


def node(resources: object = None, **more: object) -> dict:
    return {"name": "node", "image": "runtime", **({"resources": resources} if resources else {}), **more}


def runtime(*jobs: dict, policy: object = "torch", **more: object) -> dict:
    jobs = jobs or (replicated("node", node(), step="trainer"),)
    ml = {policy: {}} if isinstance(policy, str) else policy
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "r", **more},
        "spec": {**({"mlPolicy": ml} if ml is not None else {}), "template": {"spec": {"replicatedJobs": list(jobs)}}},
    }


def job(name: str = "j", **spec: object) -> dict:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"runtimeRef": {"name": "r"}, **spec},
    }


@dataclass(frozen=True)
class Made:
    """A TrainJob that was merged with its runtime, the claims of its node, and all problems. Missing objects do not
    count as problems.
    """

    job: MergedTrainJob
    claims: tuple[NodeDeviceClaim, ...]
    problems: list[Problem]

    def rules(self, *names: str) -> list[str]:
        """Return the broken rules of the group train-job. With names, return only broken rules with these names."""
        found = [each.code.removeprefix("train-job/") for each in self.problems]
        return [each for each in found if not names or each in names]

    def told(self, rule: str) -> list[tuple[str, str]]:
        return [
            (each.path, f"{each.found} {each.message}".strip())
            for each in self.problems
            if f"/{each.code}".endswith(f"/{rule}")
        ]


def of(obj: dict, *context: dict, version: tuple[int, int] = (2, 3), is_whole: bool = False) -> Made:
    asked = subject(obj, *context, trainer=version, is_whole=is_whole)
    groups = ("train-job", "job-set", "training-runtime") if obj and obj["kind"] == "TrainJob" else ()
    found = [problem for group in groups for problem in problems_of_group(group, asked).problems]
    return Made(asked.once(merge_train_job), asked.once(device_claims_of_training_node), found)


def patch(*jobs: dict) -> dict:
    return {"manager": "example.org/x", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": list(jobs)}}}}


def pod_patch(name: str, **pod: object) -> dict:
    return {"name": name, "template": {"spec": {"template": {"spec": pod}}}}


def pod_of(made: Made, index: int = 0) -> dict:
    return made.job.replicated_jobs[index].pod.json
