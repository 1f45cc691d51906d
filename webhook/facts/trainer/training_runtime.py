"""What the API server and Trainer's webhook refuse of a runtime by itself.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, manifests/base/crds, and branches
release-2.0 to release-2.3. What plugins refuse is runtime_plugins.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
from webhook.facts.train_job_pods.installation import release_of
from webhook.facts.train_job_pods.releases import (
    FLUX_AND_MORE,
    SHORT_NAMES,
)
from webhook.facts.train_job_pods.spec_changes import is_changed
from webhook.facts.train_job_pods.types import RuntimeSpec, TrainingRuntime
from webhook.facts.trainer.training_runtime_plugins import jobs_of
from webhook.problem import Problem
from webhook.releases import Release, shown

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

_FIXED: Final = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")
_LONGEST_NAME: Final = 20
_SWITCH: Final = "trainer.kubeflow.org/webhook-validation"


def is_overlooked(subject: Subject) -> bool:
    """Trainer's webhook looks at no change of a TrainingRuntime, and at nothing with the label of #3683."""
    label = subject.typed(TrainingRuntime).metadata.labels.get(_SWITCH)
    return label == "disabled" or (subject.old_object is not None and subject.group_kind[1] == "TrainingRuntime")


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
