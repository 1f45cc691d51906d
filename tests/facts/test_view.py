"""The view returns typed objects: of one namespace or of all namespaces. Some kinds cannot be listed."""

import pytest

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded, LookupFailed
from webhook.facts.view import ClusterView
from webhook.typed.cluster_objects import LimitRange


class Unreadable(FilesCluster):
    def list(self, gvk: GroupVersionKind, namespace: str | None) -> list:
        raise LookupFailed(f"{gvk.kind} {namespace}: forbidden")


def limit_range(name, namespace):
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name, "namespace": namespace}, "spec": {}}


OBJECTS = [limit_range("a", "team"), limit_range("b", "other"), limit_range("c", "team")]


@pytest.mark.parametrize(("namespace", "expected"), [("team", ["a", "c"]), (None, ["a", "b", "c"]), ("none", [])])
def test_objects_of_a_namespace_are_listed(namespace, expected):
    view = ClusterView(FilesCluster(OBJECTS), "team")
    assert sorted(found.name for found in view.list_typed(LimitRange, namespace)) == expected
    assert view.missing_objects_by_field() == {}


def test_kinds_that_cannot_be_listed_are_missing_objects():
    view = ClusterView(Unreadable(OBJECTS), "team")
    assert len(view.list_typed(LimitRange, "team")) == 0
    assert [missing.kind for missing in view.all_missing_objects()] == ["LimitRange"]


def test_many_objects_are_charged():
    many = [limit_range(f"l{index}", "team") for index in range(500)]
    view = ClusterView(FilesCluster(many), "team", Deadline(at=0))
    with pytest.raises(BudgetExceeded):
        view.list_typed(LimitRange, "team")
