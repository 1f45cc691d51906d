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
from webhook.facts.train_job_pods.overlays import Overlay
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES
from webhook.facts.train_job_pods.train_job import MergedTrainJob
from webhook.names import DNS_SUBDOMAIN
from webhook.paths import render
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


def validate_patch_managers(job: MergedTrainJob) -> Iterator[Problem]:
    """Each patch of runtimePatches has a manager of its own."""
    patches = job.spec.runtime_patches if job.release >= PATCHES else ()
    managers = Counter(patch.manager for patch in patches)
    for patch in patches:
        manager, path = patch.manager, patch.path("manager")
        if is_placeholder(manager):
            continue
        if not _PREFIXED.fullmatch(manager):
            fix = f"write a name such as example.org/{manager if _PLAIN.fullmatch(manager) else 'team'}"
            yield problem("patch-manager", path, "must begin with a domain and a slash", fix, manager)
        if manager and managers[manager] > 1:
            message = f"is the manager of {managers[manager]} patches, but a manager can have only one"
            yield problem("patch-manager-twice", path, message, "join these patches into one", manager)


def validate_overlays(job: MergedTrainJob) -> Iterator[Problem]:
    """Variables of the steps' containers, and one job twice in podSpecOverrides."""
    targets: dict[str, str] = {}
    for layer in job.layers:
        for overlay in layer.overlays:
            name = overlay.name
            if job.release < TEMPLATES and name in targets:
                message = f"is also the target at {targets[name]}, but Trainer takes one override for each job"
                yield problem(
                    "override-twice", overlay.job.path("name"), message, "join these overrides into one", name
                )
            targets.setdefault(name, render(overlay.job.at))
            yield from _patched_env(overlay)


def _patched_env(overlay: Overlay) -> Iterator[Problem]:
    for container in overlay.pod.containers:
        if container.name in _STEPS and container.env:
            message = f"must not be set because Trainer refuses variables of container `{container.name}` in a patch"
            fix = f"set the variables in {_STEPS[container.name]}"
            yield problem("patched-env", container.path("env"), message, fix)
