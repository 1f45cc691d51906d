"""The checks of GPU requests, and of the nodes and quotas that they need."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.gpu import gpu_quota
from webhook.facts.gpu.device_pods import PLACED
from webhook.facts.gpu.gpu_requests import (
    WINDOWS_LOOKUPS,
    check_devices_on_windows,
    check_gpu_requests,
    check_gpus_of_several_vendors,
    may_use_gpus,
)
from webhook.facts.gpu.visible_devices import check_hidden_gpus
from webhook.typed.pod_parts import DEVICES

_PODS: Final = frozenset((("", "Pod"),))
_WITH_DEVICES: Final = frozenset((DEVICES,))
_QUOTAS: Final = frozenset((("", "ResourceQuota"),))
_LIMIT_RANGES: Final = frozenset((("", "LimitRange"),))

CHECKS: Final = (
    Check(group="gpu-requests", run=check_gpu_requests, kinds=_PODS, when=may_use_gpus),
    Check(group="gpu-requests", run=check_gpus_of_several_vendors, kinds=_PODS, of_pods_with=_WITH_DEVICES),
    Check(group="gpu-requests", run=check_hidden_gpus, kinds=_PODS, of_pods_with=_WITH_DEVICES),
    Check(
        group="gpu-requests",
        run=check_devices_on_windows,
        kinds=_PODS,
        lookups=WINDOWS_LOOKUPS,
        of_pods_with=_WITH_DEVICES,
    ),
    Check(
        group="namespace-quota",
        run=gpu_quota.validate_namespace_quota,
        kinds=PLACED,
        lookups=gpu_quota.QUOTA_LOOKUPS,
        of_made_objects=False,
    ),
    Check(group="gpu-quota", run=gpu_quota.check_portable_gpu_in_quota, kinds=_QUOTAS),
    Check(group="gpu-quota", run=gpu_quota.check_portable_gpu_in_limit_range, kinds=_LIMIT_RANGES),
)
