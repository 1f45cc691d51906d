"""The view during a review: a created object does not exist yet, and a changed object has its old content."""

from __future__ import annotations

from typing import Any

from tests.cluster.test_views import POD, Unsynced, pod
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import Operation
from webhook.cluster import Cluster
from webhook.cluster.file_tree import FileTree
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import LayeredCluster, view_before_request

OTHER = pod("b", "n")


def viewed(view: Cluster, obj: Any, operation: str, old: Any = None) -> tuple[Any, list[str]]:
    """Return Pod `a` and the names of all Pods, as the review of `obj` sees them."""
    asked = attributes_of_object(obj, operation=Operation(operation), old_object=old)
    seen = view_before_request(view, asked)
    return seen.get(POD, "n", "a"), [each["metadata"]["name"] for each in seen.list(POD, "n")]


def test_an_object_being_created_is_not_in_the_view() -> None:
    own = pod("a", "n", spec=1)
    for view in (FilesCluster([own, OTHER]), LayeredCluster(FilesCluster([own]), FilesCluster([OTHER]))):
        assert viewed(view, own, "CREATE") == (None, ["b"])
        assert viewed(view, pod("a", "n", spec=2), "CREATE") == (None, ["b"])
        assert viewed(view, OTHER, "CREATE") == (own, ["a"])


def test_an_updated_or_deleted_object_is_in_the_view_as_before() -> None:
    old, new = pod("a", "n", spec={"x": 1}), pod("a", "n", spec={"x": 2})
    for held in ([new, OTHER], [OTHER], [old, OTHER]):
        assert viewed(FilesCluster(held), new, "UPDATE", old) == (old, ["a", "b"])
        assert viewed(FilesCluster(held), old, "DELETE") == (old, ["a", "b"])


def test_other_kinds_and_namespaces_are_not_changed() -> None:
    elsewhere = pod("a", "m")
    seen = view_before_request(FilesCluster([pod("a", "n"), elsewhere]), attributes_of_object(pod("a", "n")))
    assert seen.get(POD, "m", "a") is elsewhere
    assert list(seen.list(POD, "m")) == list(seen.list(POD, None)) == [elsewhere]


def test_a_view_with_the_old_object_is_not_changed() -> None:
    """If a view already has the old object, the review uses this view itself. The object may have only a few fields."""
    old = pod("a", "n", spec={"x": 1, "y": 2})
    for held in (old, pod("a", "n", spec={"x": 1}), pod("a", "n")):
        view = FilesCluster([held])
        assert view_before_request(view, attributes_of_object(old, operation=Operation.UPDATE)) is view
    view = FilesCluster([OTHER])
    assert view_before_request(view, attributes_of_object(old)) is view


def test_an_unsynced_view_is_not_changed() -> None:
    view = Unsynced()
    assert view_before_request(view, attributes_of_object(pod("a", "n"))) is view


def test_an_object_in_a_file_does_not_block_its_own_creation() -> None:
    near, far = pod("a", "n", spec=1), pod("a", "n", spec=2)
    view = FileTree([("x/1.yaml", far), ("y/2.yaml", near)]).cluster_view_of_file("y/2.yaml")
    assert viewed(view, near, "CREATE") == (None, [])
