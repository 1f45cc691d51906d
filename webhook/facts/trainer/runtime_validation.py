"""What the API server and Trainer's webhook refuse of a runtime by itself.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, manifests/base/crds, and branches
release-2.0 to release-2.3. What plugins refuse is runtime_plugins.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.attributes import JSON
from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
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
from webhook.facts.trainer.runtime_plugins import jobs_of
from webhook.paths import FieldPath
from webhook.placeholders import is_placeholder
from webhook.problem import Problem
from webhook.releases import Release, shown
from webhook.typed.fields import whole
from webhook.typed.job_sets import ReplicatedJob

STEP_REPLICAS: Final = TRAINING_RUNTIME.rule(
    "training-runtime/step-replicas",
    title="A replicated job that is labelled as a step has one replica.",
    why="mlPolicy.numNodes and the TrainJob say how many nodes there are.",
    function="validateReplicatedJobs",
)
STEP_CONTAINER: Final = TRAINING_RUNTIME.rule(
    "training-runtime/step-container",
    title="A replicated job that is labelled as a step has the container of the step.",
    why="Trainer lays settings of TrainJobs over this container, `node` for the trainer.",
    source="https://github.com/kubeflow/trainer/pull/2722",
)
ONE_POLICY: Final = TRAINING_RUNTIME.rule(
    "training-runtime/one-policy",
    title="A runtime has one machine learning policy.",
    why="Each policy is a plugin that sets up the nodes in its own way.",
)
PROCESSES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/processes",
    title="numProcPerNode of a runtime is at least 1.",
    why=(
        "The CustomResourceDefinition takes no less, of flux since 2.2 and of mpi since 2.4; torch of 2.0 and 2.1 "
        "also takes auto, cpu and gpu."
    ),
)
INJECTED_NODE: Final = TRAINING_RUNTIME.rule(
    "training-runtime/injected-node",
    title="torch.envInjection does not name the container `node`.",
    why="It always gets the variables, and the CustomResourceDefinition refuses its name.",
)
ELASTIC_NODES: Final = TRAINING_RUNTIME.rule(
    "training-runtime/elastic-nodes",
    title="torch.elasticPolicy and numNodes exclude each other.",
    why="Trainer 2.0 and 2.1 refuse both together.",
    source="kubeflow/trainer release-2.1 manifests/base/crds",
)
JOB_NAME_LENGTH: Final = TRAINING_RUNTIME.rule(
    "training-runtime/job-name-length",
    title="Names of replicated jobs have at most 20 characters since 2.4.",
    why="Longer names leave too little for the names of TrainJobs.",
    source="https://github.com/kubeflow/trainer/pull/4394",
)
IMMUTABLE_FIELD: Final = TRAINING_RUNTIME.rule(
    "training-runtime/immutable-field",
    title="Policies of success, failure and startup, network, claims and dependencies of a runtime do not change.",
    why="The API server refuses a change of these fields.",
    source="https://github.com/kubeflow/trainer/pull/3157",
    severity="low",
)

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
        yield STEP_REPLICAS.problem(job.path("replicas"), message, "set 1", job.replicas)


def _step_container(job: ReplicatedJob) -> Iterator[Problem]:
    name = step(job)
    if name in CONTAINERS and container_of(job, CONTAINERS[name]) is None:
        there = ", ".join(f"`{container.name}`" for container in job.pod.containers) or "none"
        message = f"must have a container `{CONTAINERS[name]}` for step `{name}`, but has {there}"
        fix = f"rename the main container to `{CONTAINERS[name]}`"
        yield STEP_CONTAINER.problem(job.pod.path("containers"), message, fix)


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
        yield ONE_POLICY.problem("spec.mlPolicy", message, "keep one of them")


def _validate_processes(policy: MLPolicy, release: Release) -> Iterator[Problem]:
    for plugin, since in ((policy.mpi, REFUSES_ZERO), (policy.flux, FLUX_AND_MORE)):
        number = plugin.num_proc_per_node
        if release >= since and number is not None and number < 1:
            yield _processes(plugin.path("numProcPerNode"), number)


def _processes(path: FieldPath, value: JSON, *, is_word_allowed: bool = False) -> Problem:
    """The problem of a number of processes; the torch plugin of 2.0 and 2.1 takes three words, too."""
    if is_word_allowed:
        message = "must be auto, cpu, gpu or a whole number of at least 1"
        return PROCESSES.problem(path, message, "set one of these", value)
    return PROCESSES.problem(path, "must be at least 1", "set 1 or more", value)


def _injected_node(policy: MLPolicy) -> Iterator[Problem]:
    for target in policy.torch.env_injection.targets:
        if "node" in target.container_names:
            message = "must not name container `node` because it always gets the variables"
            yield INJECTED_NODE.problem(target.path("containerNames"), message, "remove `node` from the list")


def _elastic_nodes(policy: MLPolicy) -> Iterator[Problem]:
    """A rule of 2.0 and 2.1."""
    if policy.num_nodes is not None and policy.torch.elastic_policy is not None:
        message = "must not be set together with torch.elasticPolicy"
        yield ELASTIC_NODES.problem(policy.path("numNodes"), message, "remove one of the two")


def _validate_first_processes(policy: MLPolicy) -> Iterator[Problem]:
    """The same: three words are numbers, too."""
    per_node = policy.torch.num_proc_per_node
    is_word = isinstance(per_node, str) and per_node not in _WORDS and not is_placeholder(per_node)
    if is_word or ((number := whole(per_node)) is not None and number < 1):
        yield _processes(policy.torch.path("numProcPerNode"), per_node, is_word_allowed=True)


def validate_job_name_length(runtime: RuntimeSpec, release: Release) -> Iterator[Problem]:
    """kubeflow/trainer#4394."""
    for job in jobs_of(runtime) if release >= SHORT_NAMES else ():
        if len(job.name) > _LONGEST_NAME:
            message = f"has {len(job.name)} characters, but Trainer {shown(release)} takes at most {_LONGEST_NAME}"
            yield JOB_NAME_LENGTH.problem(job.path("name"), message, "use a shorter name", job.name)


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
        yield IMMUTABLE_FIELD.problem(place, "cannot change after the runtime was created", fix)
