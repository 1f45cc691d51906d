"""Fields of a runtime that do not change.

Source: kubeflow/trainer@8c0f5059bd51 manifests/base/crds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.subject import Subject
from webhook.facts.train_job_pods.groups import TRAINING_RUNTIME
from webhook.facts.train_job_pods.installation import find_trainer_release
from webhook.facts.train_job_pods.releases import FLUX_AND_MORE
from webhook.facts.train_job_pods.spec_changes import is_field_changed
from webhook.facts.train_job_pods.types import TrainingRuntime
from webhook.problem import Problem

IMMUTABLE_FIELD: Final = TRAINING_RUNTIME.rule(
    "training-runtime/immutable-field",
    title="Policies of success, failure and startup, network, claims and dependencies of a runtime do not change.",
    why="The API server refuses a change of these fields.",
    source="https://github.com/kubeflow/trainer/pull/3157",
    severity="low",
    refused_on_updates="manifests/base/crds, the rules about oldSelf",
)
_FIXED: Final = ("failurePolicy", "network", "startupPolicy", "successPolicy", "volumeClaimPolicies")


def validate_immutable_fields(subject: Subject) -> Iterator[Problem]:
    """Yield changes of immutable fields (`self == oldSelf`, which allows adding and removing)."""
    now, before = (typed(TrainingRuntime).spec.template.spec for typed in (subject.typed, subject.typed_old))
    names = _FIXED if find_trainer_release(subject) >= FLUX_AND_MORE else _FIXED[:-1]
    places = [now.path(name) for name in names if is_field_changed(name, now, before)]
    old = {job.name: job for job in reversed(before.replicated_jobs)}
    changed = [
        job for job in now.replicated_jobs if job.name in old and is_field_changed("dependsOn", job, old[job.name])
    ]
    places += [job.path("dependsOn") for job in changed]
    for place in places:
        fix = "restore the old value, or create a new runtime"
        yield IMMUTABLE_FIELD.problem(place, "cannot change after the runtime was created", fix)
