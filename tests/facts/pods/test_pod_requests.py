"""The resources of one pod are in the order of its containers, in every process."""

from __future__ import annotations

from webhook.facts.pods.pod_requests import (
    NamespaceLimits,
    combine_limit_ranges,
    quota_requests_of_pod,
    requests_of_containers,
)
from webhook.typed.cluster_objects import LimitRange
from webhook.typed.pods import PodSpec

NAMES = [f"example.com/device-{index}" for index in range(20)]


def test_resources_are_listed_in_the_order_of_the_containers() -> None:
    """The order decides which resource a message names: the first that the queue does not cover."""
    containers = [{"name": name, "resources": {"requests": {name: 1}}} for name in NAMES]
    pod = PodSpec.of({"containers": containers})
    total = quota_requests_of_pod(pod, requests_of_containers(pod, NamespaceLimits()), {})
    assert [*total] == NAMES


def test_all_limit_ranges_of_a_namespace_apply() -> None:
    """The lowest maximum and the highest minimum count. A missing default is the maximum."""
    ranges = [
        LimitRange.of({"spec": {"limits": [{"type": "Container", "max": {"cpu": 4}, "min": {"cpu": 1}}]}}),
        LimitRange.of(
            {"spec": {"limits": [{"type": "Container", "max": {"cpu": 2}}, {"type": "Pod", "max": {"cpu": 8}}]}}
        ),
    ]
    together = combine_limit_ranges(ranges)
    assert together.most == {"Container": {"cpu": 2000}, "Pod": {"cpu": 8000}}
    assert together.least == {"Container": {"cpu": 1000}, "Pod": {}}
    assert (together.default, together.default_request) == ({"cpu": 4000}, {"cpu": 4000})
