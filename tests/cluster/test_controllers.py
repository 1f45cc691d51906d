"""The release of a controller that the files of a tree state, and the files to which the release applies."""

import pytest

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.controllers import DEPLOYMENT, KSERVE, KUEUE, may_state_release
from webhook.cluster.file_tree import FileTree

CONFIGURATION = GroupVersionKind("config.kueue.x-k8s.io", "v1beta2", "Configuration")


def deployment(image):
    template = {"spec": {"containers": [{"name": "manager", "image": image}]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m"}, "spec": {"template": template}}


def chart(name="kueue", **more):
    return {"apiVersion": "v2", "name": name, "version": "1.0.0", **more}


def flux(version):
    spec = {"chart": {"spec": {"chart": "kueue", "version": version}}}
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "k"}, "spec": spec}


def argo(version):
    source = {"chart": "kueue", "targetRevision": version}
    spec = {"source": source}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "k"}, "spec": spec}


def image_that_a_file_sees(tree, file):
    found = tree.cluster_view_of_file(file).get(DEPLOYMENT, KUEUE.place.namespace, KUEUE.place.name)
    return found and found["spec"]["template"]["spec"]["containers"][0]["image"]


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("charts/kueue/Chart.yaml", chart(appVersion="v0.18.2")),
        ("platform/Chart.yaml", chart("platform", dependencies=[{"name": "kueue", "version": "0.18.2"}])),
        (
            "kueue/kustomization.yaml",
            {"images": [{"name": "controller", "newName": "x/kueue/kueue", "newTag": "v0.18.1"}]},
        ),
        ("kueue/kustomization.yaml", {"helmCharts": [{"name": "kueue", "version": "0.18.0"}]}),
        ("apps/kueue.yaml", deployment("registry.k8s.io/kueue/kueue:v0.18.0")),
        ("apps/kueue.yaml", flux("0.18.x")),
        ("apps/kueue.yaml", argo("0.18.1")),
    ],
)
def test_a_release_stated_in_one_file_applies_to_the_other_files(file, value):
    assert image_that_a_file_sees(FileTree([(file, value), ("jobs/j.yaml", {})]), "jobs/j.yaml") == "kueue/kueue:v0.18"


@pytest.mark.parametrize(
    ("files", "seen_from"),
    [
        ([("a/k.yaml", flux("0.18.0")), ("b/k.yaml", flux("0.19.0"))], "jobs/j.yaml"),
        ([("a/k.yaml", flux("0.19.0"))], "site/v0.18/jobs/j.yaml"),
        ([("a/k.yaml", flux("0.19.0"))], "release-0.18/j.yaml"),
        ([("test/e2e/k.yaml", flux("0.19.0"))], "jobs/j.yaml"),
        ([("vendor/x/k.yaml", flux("0.19.0"))], "jobs/j.yaml"),
        ([("a/k.yaml", flux(">=0.18"))], "jobs/j.yaml"),
        ([("a/Chart.yaml", chart("kueue-populator", appVersion="0.19.0"))], "jobs/j.yaml"),
        ([("a/k.yaml", {"kind": "Deployment", "spec": ["x"]})], "jobs/j.yaml"),
        ([("a/kustomization.yaml", {"images": "x", "helmCharts": [1]})], "jobs/j.yaml"),
    ],
    ids=["two releases", "folder", "branch folder", "tests", "vendor", "range", "other chart", "no shape", "no lists"],
)
def test_contradicting_or_unrelated_files_leave_the_value_unknown(files, seen_from):
    assert image_that_a_file_sees(FileTree([*files, (seen_from, {})]), seen_from) is None


def test_a_folder_with_the_name_of_the_release_is_rendered():
    tree = FileTree([("a/k.yaml", flux("0.18.0")), ("site/v0.18/j.yaml", {})])
    assert image_that_a_file_sees(tree, "site/v0.18/j.yaml") == "kueue/kueue:v0.18"


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("apps/kserve.yaml", deployment("kserve/kserve-controller:v0.19.0")),
        ("platform/Chart.yaml", chart("platform", dependencies=[{"name": "kserve-resources", "version": "v0.19.0"}])),
        ("platform/Chart.yaml", chart("platform", dependencies=[{"name": "kserve", "version": "v0.19.0"}])),
    ],
)
def test_the_release_of_kserve_is_read_as_the_release_of_kueue(file, value):
    view = FileTree([(file, value), ("jobs/j.yaml", {})]).cluster_view_of_file("jobs/j.yaml")
    found = view.get(DEPLOYMENT, KSERVE.place.namespace, KSERVE.place.name)
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "kserve/kserve-controller:v0.19"


def test_a_release_in_the_context_wins():
    tree = FileTree([("a/k.yaml", flux("0.19.0")), ("j.yaml", {})], context=[("context.yaml", flux("0.18.0"))])
    assert image_that_a_file_sees(tree, "j.yaml") == "kueue/kueue:v0.18"


def test_the_place_of_a_stated_release_is_its_file():
    view = FileTree([("a/k.yaml", flux("0.18.0")), ("j.yaml", {})]).cluster_view_of_file("j.yaml")
    assert view.file_of_object(view.get(DEPLOYMENT, KUEUE.place.namespace, KUEUE.place.name)) == "a/k.yaml"


def test_a_configuration_in_another_folder_does_not_apply_unless_a_test_has_it():
    written = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": []},
    }
    view = FileTree(
        [("a/c.yaml", written), ("test/c.yaml", {**written, "x": 1}), ("j/j.yaml", {})]
    ).cluster_view_of_file("j/j.yaml")
    assert [*view.objects_in_other_files(CONFIGURATION)] == [written]
    assert not view.list(CONFIGURATION, None)


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("image: registry.k8s.io/kueue/kueue:v0.18.0\n", True),
        ('{"name": "kueue", "version": "0.18.0"}', True),
        ("    chart: kueue\n", True),
        ("- name: kueue-viz\n", False),
        ("name: kueue-system\n", False),
    ],
)
def test_the_index_reads_texts_that_may_state_a_release(text, may):
    assert may_state_release(text) is may
