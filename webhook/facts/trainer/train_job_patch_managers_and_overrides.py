"""Trainer's rules for the patches of a TrainJob that do not depend on its runtime.

Sources: kubeflow/trainer@8c0f5059bd51 pkg/runtime/framework/plugins/jobset/jobset.go Validate, manifests/base/crds;
k8s.io/apimachinery pkg/util/validation IsDomainPrefixedPath for managers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from webhook.facts.train_job_pods.groups import TRAIN_JOB
from webhook.facts.train_job_pods.merged_train_job import MergedTrainJob
from webhook.facts.train_job_pods.releases import PATCHES, TEMPLATES
from webhook.facts.train_job_pods.train_job_patches import check_patched_env
from webhook.names import has_form_of_subdomain
from webhook.paths import path_as_text
from webhook.placeholders import is_placeholder
from webhook.problem import Problem

PATCH_MANAGER: Final = TRAIN_JOB.rule(
    "train-job/patch-manager",
    title="The manager of a runtime patch begins with a domain and a slash.",
    why="Trainer refuses other names of managers.",
    source="https://github.com/kubeflow/trainer/issues/2782",
    refused_on_updates="",
)
PATCH_MANAGER_TWICE: Final = TRAIN_JOB.rule(
    "train-job/patch-manager-twice",
    title="A manager has one runtime patch.",
    why="The list is a map by manager.",
    refused_on_updates="",
)
OVERRIDE_TWICE: Final = TRAIN_JOB.rule(
    "train-job/override-twice",
    title="A replicated job is the target of one podSpecOverride.",
    why="Trainer 2.0 refuses a second one.",
    source="kubeflow/trainer release-2.0 pkg/runtime/framework/plugins/jobset/jobset.go",
)

_AFTER_DOMAIN: Final = re.compile(r"[-A-Za-z0-9/._~%!$&'()*+,;=:]+")
_PLAIN: Final = re.compile(r"[-A-Za-z0-9._]+")


def validate_patch_managers(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield patches of runtimePatches whose manager is missing or used twice."""
    patches = job.spec.runtime_patches if job.release >= PATCHES else ()
    managers = Counter(patch.manager for patch in patches)
    for patch in patches:
        manager, path = patch.manager, patch.path("manager")
        if is_placeholder(manager):
            continue
        domain, _, path_of_domain = manager.partition("/")
        if not has_form_of_subdomain(domain) or not _AFTER_DOMAIN.fullmatch(path_of_domain):
            fix = f"write a name such as example.org/{manager if _PLAIN.fullmatch(manager) else 'team'}"
            yield PATCH_MANAGER.problem(path, "must begin with a domain and a slash", fix, manager)
        if manager and managers[manager] > 1:
            message = f"is the manager of {managers[manager]} patches, but a manager can have only one"
            yield PATCH_MANAGER_TWICE.problem(path, message, "join these patches into one", manager)


def check_patch_env_and_repeated_jobs(job: MergedTrainJob) -> Iterator[Problem]:
    """Yield variables of the steps' containers in patches, and jobs that podSpecOverrides name twice."""
    targets: dict[str, str] = {}
    for layer in job.layers:
        for overlay in layer.overlays:
            name = overlay.name
            if job.release < TEMPLATES and name in targets:
                message = f"is also the target at {targets[name]}, but Trainer takes one override for each job"
                yield OVERRIDE_TWICE.problem(overlay.job.path("name"), message, "join these overrides into one", name)
            targets.setdefault(name, path_as_text(overlay.job.at))
            yield from check_patched_env(overlay)
