"""Advice on quota for the portable name `gpu`, which no pod asks for once it is translated.

Source: webhook/facts/gpu/portable.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from webhook.facts.kueue.groups import KUEUE_QUEUE_ADVICE
from webhook.facts.kueue.types import ResourceGroup
from webhook.problem import Problem

RAW_GPU: Final = KUEUE_QUEUE_ADVICE.rule(
    "kueue-queue/raw-gpu",
    title="Quota for GPUs is for the resource of a vendor.",
    why="Pods cannot ask for `gpu`, so the quota is never used.",
    refused_by="nobody; the quota is never used",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    fails="silent",
)
_RAW: Final = "gpu"


def advise_raw_gpu(group: ResourceGroup) -> Iterator[Problem]:
    """Yield the problem of quota for `gpu`, because pods ask for the resource of a vendor."""
    if _RAW in group.covered_resources:
        message = "has quota for `gpu`, but pods ask for GPUs by the resource of a vendor"
        fix = "cover nvidia.com/gpu or the resource of another vendor"
        yield RAW_GPU.problem(group.path("coveredResources"), message, fix)
