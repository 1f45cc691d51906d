"""The objects of the benchmarks have the size in their name, are all different, and break no shipped policy."""

import json

import pytest

from tests.bench import traffic
from tests.literals import shipped_policies
from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.server.scheduler import HEAVY_S

SIZES = {"plain Pod": 6, "GPU Pod": 6, "claim Pod": 6, "TrainJob 60 KB": 60, "JobSet 50 KB": 50, "Volcano Job": 9}
CLUSTER = FilesCluster(traffic.context())


@pytest.mark.parametrize("kind", traffic.OBJECTS)
@pytest.mark.parametrize("phase", Phase)
def test_the_shipped_policies_have_no_finding_about_the_traffic(kind, phase):
    for number in (0, 7, 4711):
        verdict = answer_request(
            decode_review_bytes(traffic.review(kind, number)), shipped_policies(), CLUSTER, phase=phase
        )
        assert (verdict.allowed, verdict.status, verdict.warnings) == (True, None, ())


@pytest.mark.parametrize("kind", traffic.OBJECTS)
def test_each_object_has_the_size_in_its_name(kind):
    assert round(len(traffic.review(kind, 3)) / 1000) in {SIZES[kind], SIZES[kind] + 1}


def test_pods_differ_in_name_image_labels_environment_and_namespace():
    first, second = (json.loads(body)["request"]["object"] for body in traffic.reviews("plain Pod", range(2)))
    for path in (("metadata", "name"), ("metadata", "namespace"), ("metadata", "labels")):
        assert first[path[0]][path[1]] != second[path[0]][path[1]]
    for field in ("image", "env"):
        assert first["spec"]["containers"][0][field] != second["spec"]["containers"][0][field]


@pytest.mark.parametrize("kind", traffic.OBJECTS)
def test_no_two_versions_are_equal(kind):
    assert len(set(traffic.reviews(kind, range(300)))) == 300


class _AnnouncedCalls(Deadline):
    """A deadline that keeps the longest announced time of a call that cannot be interrupted, in seconds."""

    def __init__(self):
        super().__init__()
        self.longest_s = 0.0

    def require_time_for_call(self, seconds):
        self.longest_s = max(self.longest_s, seconds)

    def check_clock_before_slow_call(self, seconds):
        self.longest_s = max(self.longest_s, seconds)


@pytest.mark.parametrize("kind", traffic.OBJECTS)
@pytest.mark.parametrize("phase", Phase)
def test_no_call_is_announced_as_too_long_for_the_event_loop(kind, phase):
    """A call that is announced as longer would move the review to a worker process, which takes five times as long."""
    announced = _AnnouncedCalls()
    request = decode_review_bytes(traffic.review(kind, 3), announced)
    answer_request(request, shipped_policies(), CLUSTER, phase=phase, deadline=announced)
    assert announced.longest_s < HEAVY_S / 2
