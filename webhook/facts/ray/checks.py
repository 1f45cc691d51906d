"""The checks of Ray's kinds."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check, group_kinds_of_types
from webhook.facts.ray import num_gpus, ray
from webhook.typed.ray import RayCluster, RayCronJob, RayJob, RayService

_RAY: Final = group_kinds_of_types(RayCluster, RayJob, RayService, RayCronJob)

CHECKS: Final = (
    Check(group="ray", run=ray.validate_name, kinds=_RAY - group_kinds_of_types(RayCronJob)),
    Check(group="ray", run=ray.validate_ray_job_spec, kinds=group_kinds_of_types(RayJob)),
    Check(group="ray", run=ray.check_groups_have_containers, kinds=_RAY),
    Check(group="ray", run=num_gpus.validate_num_gpus, kinds=_RAY),
)
