"""The parts of every object: metadata, owners, and conditions that a controller writes."""

from webhook.typed.cluster_objects import Node
from webhook.typed.objects import OwnerReference
from webhook.typed.view import ReadingContext


def node(**status):
    return Node({"metadata": {"name": "a", "labels": {"pool": "gpu"}}, "status": status}, (), ReadingContext())


def test_a_condition_is_the_first_of_its_type():
    conditions = [{"type": "Ready", "status": "False", "reason": "Lost"}, {"type": "Ready", "status": "True"}]
    status = node(conditions=conditions).status
    assert status.condition("Ready").reason == "Lost"
    assert not status.is_true("Ready")


def test_a_missing_condition_is_false():
    status = node(conditions=[None]).status
    assert not status.condition("Ready")
    assert status.condition("Ready").status == ""
    assert not node().status.is_true("Ready")


def test_an_object_has_the_labels_of_its_metadata():
    assert node().labels == {"pool": "gpu"}
    assert node().annotations == {}


def test_an_owner_has_the_group_of_its_version():
    def owner(version):
        return OwnerReference({"apiVersion": version, "kind": "Job"}, (), ReadingContext())

    assert owner("batch/v1").group_kind == ("batch", "Job")
    assert owner("v1").group_kind == ("", "Job")
