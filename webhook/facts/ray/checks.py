"""The checks of Ray's kinds."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check, group_kinds_of_types
from webhook.facts.ray.gpus_of_groups import check_entrypoint_gpus, check_gpus_of_serve
from webhook.facts.ray.ray import (
    check_groups_have_containers,
    check_replica_bounds,
    check_time_to_live,
    validate_group_resources,
    validate_name,
    validate_num_gpus,
    validate_ray_job_spec,
)
from webhook.facts.ray.releases import check_ray_releases
from webhook.facts.ray.serve_config import check_serve_config
from webhook.typed.ray import RayCluster, RayCronJob, RayJob, RayService

_RAY: Final = group_kinds_of_types(RayCluster, RayJob, RayService, RayCronJob)
_OF_OPERATOR: Final = group_kinds_of_types(RayCluster, RayJob, RayService)

CHECKS: Final = (
    Check(group="ray", run=validate_name, kinds=_OF_OPERATOR),
    Check(group="ray", run=validate_ray_job_spec, kinds=group_kinds_of_types(RayJob)),
    Check(group="ray", run=check_time_to_live, kinds=group_kinds_of_types(RayJob, RayCronJob)),
    Check(group="ray", run=check_replica_bounds, kinds=_RAY),
    Check(group="ray", run=check_groups_have_containers, kinds=_RAY),
    Check(group="ray", run=validate_num_gpus, kinds=_RAY),
    Check(group="ray", run=validate_group_resources, kinds=_RAY),
    Check(group="ray", run=check_serve_config, kinds=group_kinds_of_types(RayService)),
    Check(group="ray", run=check_gpus_of_serve, kinds=group_kinds_of_types(RayService)),
    Check(group="ray", run=check_entrypoint_gpus, kinds=group_kinds_of_types(RayJob, RayCronJob)),
    Check(group="ray", run=check_ray_releases, kinds=_OF_OPERATOR),
)
