"""Limits the number of pod sets of a Workload, which has one for each pod template of a job.

Source: the rules of kubernetes-sigs/kueue@ff69552e config/components/crd/bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_NEVER
from webhook.facts.kueue.managed import KueueManagement
from webhook.facts.kueue.place import QueuePlace
from webhook.facts.kueue.releases import find_kueue_release, max_pod_sets_per_workload
from webhook.facts.kueue.workload import build_workload
from webhook.facts.subject import Subject
from webhook.problem import Problem
from webhook.releases import release_as_text

POD_SET_COUNT: Final = KUEUE_NEVER.rule(
    "kueue-never/pod-set-count",
    title="A job has no more pod sets than a Workload can have.",
    why="The API server refuses the Workload, and only the log of Kueue tells.",
    source="kubernetes-sigs/kueue#12818, config/components/crd/bases/kueue.x-k8s.io_workloads.yaml",
    issues=(
        "https://github.com/kubernetes-sigs/jobset/issues/597",
        "https://github.com/kubernetes-sigs/kueue/issues/12818",
        "https://github.com/kubernetes-sigs/kueue/pull/12819",
        "https://github.com/kubernetes-sigs/kueue/issues/11379",
    ),
)
_REPEATED: Final = {
    ("jobset.x-k8s.io", "JobSet"): "replicatedJobs",
    ("workload.codeflare.dev", "AppWrapper"): "components",
}
"""The repeated part of each kind that has a pod template."""


def validate_pod_set_count(subject: Subject, how: KueueManagement, place: QueuePlace) -> Iterator[Problem]:  # noqa: ARG001
    """Yield the problem of too many pod sets for the CustomResourceDefinition of Workloads; no event reports it to a
    job.
    """
    count, most = len(subject.once(build_workload).pod_sets), max_pod_sets_per_workload(find_kueue_release(subject))
    if count > most:
        release = f"a Workload of Kueue {release_as_text(find_kueue_release(subject))}"
        message = (
            f"has {count} pod templates, but {release} has at most {most} pod sets, one for each template, so Kueue "
            "creates no Workload and the job waits"
        )
        what = _REPEATED.get(subject.group_kind, "pod templates")
        fix = f"use at most {most} {what}, and more replicas of those that are alike"
        yield POD_SET_COUNT.problem("spec", message, fix)
