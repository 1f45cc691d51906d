"""The checks of Ray's kinds."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.ray import num_gpus, validation

_RAY: Final = frozenset(("ray.io", kind) for kind in num_gpus.CLUSTERS)
_RAY_CRON_JOBS: Final = frozenset((("ray.io", "RayCronJob"),))

CHECKS: Final = (
    Check(group="ray", run=validation.validate_name, kinds=_RAY - _RAY_CRON_JOBS),
    Check(group="ray", run=validation.validate_ray_job_spec, kinds=frozenset((("ray.io", "RayJob"),))),
    Check(group="ray", run=validation.validate_groups, kinds=_RAY),
    Check(group="ray", run=num_gpus.validate_num_gpus, kinds=_RAY),
)
