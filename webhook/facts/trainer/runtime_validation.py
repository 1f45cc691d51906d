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
from webhook.facts.train_job_pods.nodes import container_of, step
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    INJECTION,
    NUMBERS_ONLY,
    REFUSES_ZERO,
    SHORT_NAMES,
    STEP_CONTAINERS,
)
from webhook.facts.train_job_pods.spec_changes import is_changed
from webhook.facts.train_job_pods.types import MLPolicy, RuntimeSpec, TrainingRuntime
from webhook.facts.trainer.runtime_plugins import jobs_of, problem
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import Release, shown
from webhook.typed.fields import whole
from webhook.typed.job_sets import ReplicatedJob

CONTAINERS: Final = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}
"""The container that each step needs."""
_WORDS: Final = ("auto", "cpu", "gpu")
_FIRST_PLUGINS: Final = ("torch", "mpi")
_FIXED: Final = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")
_LONGEST_NAME: Final = 20
_SWITCH: Final = "trainer.kubeflow.org/webhook-validation"


def is_overlooked(subject: Subject) -> bool:
    """Trainer's webhook looks at no change of a TrainingRuntime, and at nothing with the label of #3683."""
    label = subject.typed(TrainingRuntime).metadata.labels.get(_SWITCH)
    return label == "disabled" or (subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime")


def validate_steps(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """trainingruntime_webhook.go: a labelled step has one replica and its container."""
    for job in jobs_of(runtime):
        yield from _step_replicas(job, release)
    for job in jobs_of(runtime) if release >= STEP_CONTAINERS else ():
        yield from _step_container(job)


def _step_replicas(job: ReplicatedJob, release: Release) -> Iterator[Problem]:
    name = step(job)
    is_launcher = release < STEP_CONTAINERS and job.name == "launcher"
    if job.replicas != 1 and (name in CONTAINERS or is_launcher):
        of = f"step `{name}`" if name in CONTAINERS else "the launcher"
        message = f"must be 1 for {of} because mlPolicy.numNodes sets the number of nodes"
        yield problem("step-replicas", job.path("replicas"), message, "set 1", job.replicas)


def _step_container(job: ReplicatedJob) -> Iterator[Problem]:
    name = step(job)
    if name in CONTAINERS and container_of(job, CONTAINERS[name]) is None:
        there = ", ".join(f"`{container.name}`" for container in job.pod.containers) or "none"
        message = f"must have a container `{CONTAINERS[name]}` for step `{name}`, but has {there}"
        fix = f"rename the main container to `{CONTAINERS[name]}`"
        yield problem("step-container", job.pod.path("containers"), message, fix)


def validate_ml_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    """The rules of the CustomResourceDefinition."""
    yield from _one_policy(policy, release)
    yield from _validate_processes(policy, release)
    if release >= INJECTION:
        yield from _injected_node(policy)
    if release < NUMBERS_ONLY:
        yield from _elastic_nodes(policy)
        yield from _validate_first_processes(policy)


def _one_policy(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    plugins = [name for name in policy.plugins if release >= FLUX_AND_MORE or name in _FIRST_PLUGINS]
    if len(plugins) > 1:
        message = f"must have one policy, but has {', '.join(f'`{name}`' for name in plugins)}"
        yield problem("one-policy", "spec.mlPolicy", message, "keep one of them")


def _validate_processes(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    for plugin, since in ((policy.mpi, REFUSES_ZERO), (policy.flux, FLUX_AND_MORE)):
        number = plugin.num_proc_per_node
        if release >= since and number is not None and number < 1:
            yield _processes(plugin.path("numProcPerNode"), "must be at least 1", "set 1 or more", number)


def _processes(path: FieldPath, message: str, fix: str, value: JSON) -> Problem:
    return problem("processes", path, message, fix, value)


def _injected_node(policy: MLPolicy) -> Iterator[Problem]:
    for target in policy.torch.env_injection.targets:
        if "node" in target.container_names:
            message = "must not name container `node` because it always gets the variables"
            yield problem("injected-node", target.path("containerNames"), message, "remove `node` from the list")


def _elastic_nodes(policy: MLPolicy) -> Iterator[Problem]:
    """A rule of 2.0 and 2.1."""
    if policy.num_nodes is not None and policy.torch.elastic_policy is not None:
        message = "must not be set together with torch.elasticPolicy"
        yield problem("elastic-nodes", policy.path("numNodes"), message, "remove one of the two")


def _validate_first_processes(policy: MLPolicy) -> Iterator[Problem]:
    """The same: three words are numbers, too."""
    per_node = policy.torch.num_proc_per_node
    is_word = isinstance(per_node, str) and per_node not in _WORDS and not is_placeholder(per_node)
    if is_word or ((number := whole(per_node)) is not None and number < 1):
        message = "must be auto, cpu, gpu or a whole number of at least 1"
        yield _processes(policy.torch.path("numProcPerNode"), message, "set one of these", per_node)


def validate_job_name_length(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """kubeflow/trainer#4394."""
    for job in jobs_of(runtime) if release >= SHORT_NAMES else ():
        if len(job.name) > _LONGEST_NAME:
            message = f"has {len(job.name)} characters, but Trainer {shown(release)} takes at most {_LONGEST_NAME}"
            yield problem("job-name-length", job.path("name"), message, "use a shorter name", job.name)


def validate_immutable_fields(subject: Subject) -> Iterator[Problem]:
    """`self == oldSelf`, which says nothing of a field that is added or removed."""
    now, before = (typed(TrainingRuntime).spec.template.spec for typed in (subject.typed, subject.typed_old))
    names = _FIXED if release_of(subject) >= FLUX_AND_MORE else _FIXED[:-1]
    places = [now.path(name) for name in names if is_changed(name, now, before)]
    old = {job.name: job for job in reversed(before.replicated_jobs)}
    changed = [job for job in now.replicated_jobs if job.name in old and is_changed("dependsOn", job, old[job.name])]
    places += [job.path("dependsOn") for job in changed]
    for place in places:
        fix = "restore the old value, or create a new runtime"
        yield problem("immutable-field", place, "cannot change after the runtime was created", fix)
