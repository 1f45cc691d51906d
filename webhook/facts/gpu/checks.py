"""The checks of GPU requests, and of what Ray is told of them."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.gpu import ray
from webhook.facts.gpu.doubtful_requests import gpu_requests

_PODS: Final = frozenset((("", "Pod"),))
_RAY: Final = frozenset(("ray.io", kind) for kind in ray.CLUSTERS)

CHECKS: Final = (
    Check(group="gpu-requests", run=gpu_requests, kinds=_PODS),
    Check(group="ray", run=ray.validate_num_gpus, kinds=_RAY),
)
