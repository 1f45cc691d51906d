"""What Trainer refuses of a TrainJob's patches whatever its runtime is.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/jobset.go Validate, manifests/base/crds;
k8s.io/apimachinery pkg/util/validation IsDomainPrefixedPath for managers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from webhook.facts.check import Group
from webhook.facts.train_job_pods.nodes import name_of
from webhook.facts.train_job_pods.overlays import Overlay, layers
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES
from webhook.facts.train_job_pods.train_job import TrainJob
from webhook.names import DNS_SUBDOMAIN
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

problem: Final = Group("train-job").problem
_PREFIXED: Final = re.compile(rf"{DNS_SUBDOMAIN.pattern}/[-A-Za-z0-9/._~%!$&'()*+,;=:]+")
_PLAIN: Final = re.compile(r"[-A-Za-z0-9._]+")
_STEPS: Final = {
    "node": "spec.trainer.env",
    "dataset-initializer": "spec.initializer.dataset.env",
    "model-initializer": "spec.initializer.model.env",
}
"""Where the variables of a step's container belong."""


def validate_managers(job: TrainJob) -> Iterator[Problem]:
    """Each patch of runtimePatches has a manager of its own."""
    patches = job.spec.get("runtimePatches", []) if job.release >= PATCHES else []
    managers = [patch.get("manager", "") for patch in job.deadline.paced(patches)]
    counted = Counter(managers)
    for index, manager in enumerate(job.deadline.paced(managers)):
        path = f"spec.runtimePatches[{index}].manager"
        if is_placeholder(manager):
            continue
        if not _PREFIXED.fullmatch(manager):
            fix = f"write a name such as example.org/{manager if _PLAIN.fullmatch(manager) else 'team'}"
            yield problem("patch-manager", path, "must begin with a domain and a slash", fix, manager)
        if manager and counted[manager] > 1:
            message = f"is the manager of {counted[manager]} patches, but a manager can have only one"
            yield problem("patch-manager-twice", path, message, "join these patches into one", manager)


def validate_overlays(job: TrainJob) -> Iterator[Problem]:
    """Variables of the steps' containers, and one job twice in podSpecOverrides."""
    targets: dict[str, str] = {}
    for layer in job.deadline.paced(layers(job.object, job.release)):
        for overlay in job.deadline.paced(layer.overlays):
            if job.release < TEMPLATES and overlay.name in targets:
                message = f"is also the target at {targets[overlay.name]}, but Trainer takes one override for each job"
                yield problem(
                    "override-twice", f"{overlay.at}.name", message, "join these overrides into one", overlay.name
                )
            targets.setdefault(overlay.name, overlay.at)
            yield from _validate_env(overlay)


def _validate_env(overlay: Overlay) -> Iterator[Problem]:
    for index, container in enumerate(overlay.pod.get("containers", [])):
        name = name_of(container)
        if name in _STEPS and container.get("env"):
            message = f"must not be set because Trainer refuses variables of container `{name}` in a patch"
            path = f"{overlay.spec_at}.containers[{index}].env"
            yield problem("patched-env", path, message, f"set the variables in {_STEPS[name]}")
