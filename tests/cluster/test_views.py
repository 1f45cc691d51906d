"""Views of files and layered views answer lookups."""

import pytest

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import LayeredCluster
from webhook.errors import InputError, LookupFailed
from webhook.yamltext import yamlfile

POD = GroupVersionKind("", "v1", "Pod")
RUNTIME = GroupVersionKind("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime")


def pod(name, namespace=None, **more):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata} | more


RUNTIMES = {
    "apiVersion": "trainer.kubeflow.org/v1beta1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
}


class Unsynced:
    def get(self, gvk, namespace, name):
        raise LookupFailed("not synced yet")

    def list(self, gvk, namespace, labels=""):
        raise LookupFailed("not synced yet")

    def is_namespaced(self, gvk):
        raise LookupFailed("not synced yet")

    def is_synced(self, gvk):
        return False

    def revision(self, gvk):
        return self


class Listing(Unsynced):
    listed = (pod("a"),)

    def list(self, gvk, namespace, labels=""):
        return self.listed


def test_files_find_objects_of_any_version():
    view: Cluster = FilesCluster([pod("a", "team"), RUNTIMES])
    assert view.get(POD, "team", "a") == pod("a", "team")
    assert view.get(POD, "team", "b") is None
    assert view.get(POD, "other", "a") is None
    assert view.get(RUNTIME, "", "torch") is RUNTIMES
    assert view.get(GroupVersionKind("", "v1", "ClusterTrainingRuntime"), "", "torch") is None
    assert view.is_synced(POD)


def test_an_object_without_namespace_is_in_default():
    view = FilesCluster([pod("a"), pod("b", "default"), pod("c", "team")])
    for namespace in ("", "default"):
        assert view.get(POD, namespace, "a") == pod("a")
        assert [found["metadata"]["name"] for found in view.list(POD, namespace)] == ["a", "b"]
    assert [found["metadata"]["name"] for found in view.list(POD, None)] == ["a", "b", "c"]
    assert not view.list(RUNTIME, None)


def test_a_cluster_scoped_object_has_no_namespace_even_if_its_metadata_has_one():
    torch = RUNTIMES | {"metadata": {"name": "torch", "namespace": "team"}}
    view = FilesCluster([torch])
    assert view.get(RUNTIME, "", "torch") == torch
    assert [*view.list(RUNTIME, None)] == [torch]


def test_names_that_are_not_strings_are_ignored():
    # kubeflow/examples mnist notebooks: an unfilled `namespace: {namespace}` reads as a mapping
    view = FilesCluster([pod("a", {"namespace": None}), pod({"name": None}), pod(1), {"apiVersion": [], "kind": {}}])
    assert view.get(POD, "default", "a") is not None
    assert len(view.list(POD, None)) == 2


def test_the_first_of_two_equal_names_stays():
    assert FilesCluster([pod("a", spec=1), pod("a", "default", spec=2)]).get(POD, "", "a")["spec"] == 1


def test_list_items_that_are_not_objects_are_left_out():
    held = FilesCluster([{"kind": "List", "items": [None, pod("a")]}, "text"])
    assert [found["metadata"]["name"] for found in held.list(POD, None)] == ["a"]


def test_files_are_read_from_folders(tmp_path):
    (tmp_path / "a.yaml").write_text(yamlfile.dump(pod("a")))
    (tmp_path / "b.json").write_text(
        '{"kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": null}]}'
    )
    view = FilesCluster(document for file in yamlfile.discover([tmp_path]) for document in yamlfile.read(file))
    assert view.get(POD, "", "a") == pod("a")
    assert view.get(POD, "", "") is not None
    with pytest.raises(InputError):
        yamlfile.discover([tmp_path / "absent"])


def test_the_upper_layer_hides_the_lower():
    view = LayeredCluster(FilesCluster([pod("a", "n", spec=1)]), FilesCluster([pod("a", "n", spec=2), pod("b", "n")]))
    assert view.get(POD, "n", "a")["spec"] == 1
    assert view.get(POD, "n", "b") == pod("b", "n")
    assert view.get(POD, "n", "c") is None
    assert [(found["metadata"]["name"], found.get("spec")) for found in view.list(POD, "n")] == [("a", 1), ("b", None)]
    assert view.is_synced(POD)


def test_a_layer_without_an_answer_fails_the_lookup():
    view = LayeredCluster(FilesCluster([pod("a", "n")]), Unsynced())
    assert view.get(POD, "n", "a") == pod("a", "n")
    assert not view.is_synced(POD)
    with pytest.raises(LookupFailed):
        view.get(POD, "n", "b")
    with pytest.raises(LookupFailed):
        view.list(POD, "n")


@pytest.mark.parametrize(
    "objects, expected",
    [
        pytest.param([], None, id="nothing known"),
        pytest.param([pod("a", "team"), pod("b")], True, id="one object with a namespace"),
        pytest.param([pod("a")], False, id="no object with a namespace"),
    ],
)
def test_objects_show_whether_a_kind_has_namespaces(objects, expected):
    files = FilesCluster(objects)
    views = [files, LayeredCluster(files, FilesCluster()), LayeredCluster(FilesCluster(), files)]
    assert [view.is_namespaced(POD) for view in views] == [expected] * 3


def test_a_layer_over_nothing_walks_nothing():
    below = Listing()
    assert LayeredCluster(FilesCluster(), below).list(POD, None) is below.list(POD, None)
