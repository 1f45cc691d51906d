"""What the API server and Trainer's webhook refuse of a runtime by itself.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, manifests/base/crds, and branches
release-2.0 to release-2.3. What plugins refuse is runtime_plugins.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.installation import release_of
from webhook.facts.train_job_pods.nodes import container_of, name_of, step
from webhook.facts.train_job_pods.processes import PLUGINS
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    INJECTION,
    NUMBERS_ONLY,
    REFUSES_ZERO,
    SHORT_NAMES,
    STEP_CONTAINERS,
)
from webhook.facts.trainer.runtime_plugins import JOBS, POD, RuntimeSpec, problem
from webhook.facts.values import whole
from webhook.paths import FieldPath, get
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import shown

CONTAINERS: Final = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}
"""The container that each step needs."""
_WORDS: Final = ("auto", "cpu", "gpu")
_FIXED: Final = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")
_LONGEST_NAME: Final = 20
_SWITCH: Final = "trainer.kubeflow.org/webhook-validation"


def is_overlooked(subject: Subject) -> bool:
    """Trainer's webhook looks at no change of a TrainingRuntime, and at nothing with the label of #3683."""
    label = get(subject.object, ("metadata", "labels", _SWITCH))
    return label == "disabled" or (subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime")


def validate_steps(runtime: RuntimeSpec) -> Iterator[Problem]:
    """trainingruntime_webhook.go: a labelled step has one replica and its container."""
    for index, job in enumerate(runtime.deadline.paced(runtime.jobs)):
        name, replicas = step(job) or "", job.get("replicas", 1)
        is_launcher = runtime.release < STEP_CONTAINERS and name_of(job) == "launcher"
        if replicas != 1 and (name in CONTAINERS or is_launcher):
            of = f"step `{name}`" if name in CONTAINERS else "the launcher"
            message = f"must be 1 for {of} because mlPolicy.numNodes sets the number of nodes"
            yield problem("step-replicas", (*JOBS, index, "replicas"), message, "set 1", replicas)
    if runtime.release >= STEP_CONTAINERS:
        yield from _validate_step_containers(runtime)


def _validate_step_containers(runtime: RuntimeSpec) -> Iterator[Problem]:
    for index, job in enumerate(runtime.deadline.paced(runtime.jobs)):
        name = step(job) or ""
        if name in CONTAINERS and container_of(job, CONTAINERS[name]) is None:
            path = (*JOBS, index, *POD, "spec", "containers")
            there = [f"`{name_of(each)}`" for each in get(job, (*POD, "spec", "containers"), [])]
            message = (
                f"must have a container `{CONTAINERS[name]}` for step `{name}`, but has {', '.join(there) or 'none'}"
            )
            yield problem("step-container", path, message, f"rename the main container to `{CONTAINERS[name]}`")


def validate_ml_policy(runtime: RuntimeSpec) -> Iterator[Problem]:
    """The rules of the CustomResourceDefinition."""
    policy = runtime.spec.get("mlPolicy", {})
    known = PLUGINS if runtime.release >= FLUX_AND_MORE else PLUGINS[:2]
    if len(there := [f"`{name}`" for name in known if policy.get(name) is not None]) > 1:
        message = f"must have one policy, but has {', '.join(there)}"
        yield problem("one-policy", "spec.mlPolicy", message, "keep one of them")
    yield from _validate_processes(policy, runtime)
    yield from _validate_injected_node(runtime)
    if runtime.release < NUMBERS_ONLY:
        yield from _validate_first_torch(policy)


def _validate_processes(policy: JSON, runtime: RuntimeSpec) -> Iterator[Problem]:
    for name, since in (("mpi", REFUSES_ZERO), ("flux", FLUX_AND_MORE)):
        number = get(policy, (name, "numProcPerNode"))
        if runtime.release >= since and number is not None and number < 1:
            path = f"spec.mlPolicy.{name}.numProcPerNode"
            yield problem("processes", path, "must be at least 1", "set 1 or more", number)


def _validate_injected_node(runtime: RuntimeSpec) -> Iterator[Problem]:
    targets = get(runtime.spec, ("mlPolicy", "torch", "envInjection", "targets"), [])
    for index, target in enumerate(runtime.deadline.paced(targets if runtime.release >= INJECTION else [])):
        if "node" in target.get("containerNames", []):
            path = f"spec.mlPolicy.torch.envInjection.targets[{index}].containerNames"
            message = "must not name container `node` because it always gets the variables"
            yield problem("injected-node", path, message, "remove `node` from the list")


def _validate_first_torch(policy: JSON) -> Iterator[Problem]:
    """Rules of 2.0 and 2.1."""
    if policy.get("numNodes") is not None and get(policy, ("torch", "elasticPolicy")) is not None:
        message = "must not be set together with torch.elasticPolicy"
        yield problem("elastic-nodes", "spec.mlPolicy.numNodes", message, "remove one of the two")
    asked = get(policy, ("torch", "numProcPerNode"))
    is_word = isinstance(asked, str) and asked not in _WORDS and not is_placeholder(asked)
    if is_word or ((number := whole(asked)) is not None and number < 1):
        path, message = "spec.mlPolicy.torch.numProcPerNode", "must be auto, cpu, gpu or a whole number of at least 1"
        yield problem("processes", path, message, "set one of these", asked)


def validate_job_names(runtime: RuntimeSpec) -> Iterator[Problem]:
    """kubeflow/trainer#4394."""
    for index, job in enumerate(runtime.deadline.paced(runtime.jobs if runtime.release >= SHORT_NAMES else [])):
        name = name_of(job)
        if len(name) > _LONGEST_NAME:
            release = shown(runtime.release)
            message = f"has {len(name)} characters, but Trainer {release} takes at most {_LONGEST_NAME}"
            yield problem("job-name-length", (*JOBS, index, "name"), message, "use a shorter name", name)


def validate_immutable_fields(subject: Subject) -> Iterator[Problem]:
    """`self == oldSelf`, which says nothing of a field that is added or removed."""
    at = ("spec", "template", "spec")
    now, before = get(subject.object, at, {}), get(subject.old_object, at, {})
    known = _FIXED if release_of(subject) >= FLUX_AND_MORE else _FIXED[:-1]
    places: list[FieldPath] = [
        (*at, name) for name in known if name in now and name in before and now[name] != before[name]
    ]
    old = {name_of(job): job.get("dependsOn") for job in reversed(before.get("replicatedJobs", []))}
    for index, job in enumerate(subject.deadline.paced(now.get("replicatedJobs", []))):
        was = old.get(job.get("name", ""))
        if was is not None and job.get("dependsOn") not in (None, was):
            places.append((*JOBS, index, "dependsOn"))
    for place in places:
        fix = "restore the old value, or create a new runtime"
        yield problem("immutable-field", place, "cannot change after the runtime was created", fix)
