"""A name that several files define means the object of the nearest file."""

import pytest

from webhook.attributes import GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.cluster.nearest_files import NearestFiles, RepeatedObjects

QUEUE = GroupVersionKind("kueue.x-k8s.io", "v1beta2", "LocalQueue")


def queue(name, cluster_queue, namespace=None):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    spec = {"clusterQueue": cluster_queue}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": metadata, "spec": spec}


OBJECTS = [
    ("all/a/first.yaml", queue("q", "first")),
    ("all/a/second.yaml", queue("q", "second")),
    ("all/a/second.yaml", queue("q", "second, again")),
    ("all/b/c/deep.yaml", queue("q", "deep")),
    ("all/b/c/deep.yaml", queue("only", "deep")),
    ("all/a/first.yaml", queue("same", "same")),
    ("all/b/c/deep.yaml", queue("same", "same")),
    ("all/d/odd.yaml", {"apiVersion": [], "kind": {}, "metadata": {"name": {"unfilled": None}}}),
]
FILES = FilesCluster(obj for _, obj in OBJECTS)
REPEATED = RepeatedObjects(OBJECTS)


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("all/a/first.yaml", "first"),
        ("all/a/second.yaml", "second"),  # of one file the first
        ("all/a/job.yaml", "first"),  # of one folder, too
        ("all/b/c/job.yaml", "deep"),
        ("all/b/job.yaml", "deep"),  # below the folder
        ("all/d/e/job.yaml", "first"),  # below a folder above
        ("elsewhere/job.yaml", "first"),
        ("/absolute/job.yaml", "first"),  # has no folder with the others: as without repeats
        ("-", "first"),
    ],
)
def test_the_nearest_file_is_meant(source, meant):
    view = NearestFiles(FILES, REPEATED, source)
    assert view.get(QUEUE, "", "q")["spec"]["clusterQueue"] == meant
    assert view.get(QUEUE, "default", "q") is view.get(QUEUE, "", "q")
    assert [each["spec"]["clusterQueue"] for each in view.list(QUEUE, None)] == ["deep", meant, "same"]


def test_other_names_and_kinds_are_those_of_the_files():
    view = NearestFiles(FILES, REPEATED, "all/b/c/job.yaml")
    absent = GroupVersionKind("", "v1", "ConfigMap")
    assert view.get(QUEUE, "default", "only") is FILES.get(QUEUE, "default", "only")
    assert view.get(QUEUE, "team", "q") is None
    assert view.list(absent, None) == FILES.list(absent, None)
    assert view.is_namespaced(QUEUE) is FILES.is_namespaced(QUEUE)
    assert view.synced(QUEUE)


def test_only_a_kind_with_repeated_names_has_a_revision_of_its_own():
    views = [NearestFiles(FILES, REPEATED, source) for source in ("all/a/first.yaml", "all/b/c/deep.yaml")]
    other = GroupVersionKind("", "v1", "ConfigMap")
    assert views[0].revision(QUEUE) != views[1].revision(QUEUE)
    assert views[0].revision(other) == views[1].revision(other)


def test_equal_objects_are_no_repetition():
    assert set(REPEATED.kinds[("kueue.x-k8s.io", "LocalQueue")]) == {("default", "q")}
