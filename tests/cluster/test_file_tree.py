"""Objects that are applied together with an object are its context, under their final names."""

import pytest

from webhook.apimachinery.attributes import NAMESPACE, GroupVersionKind
from webhook.cluster.file_tree import FileTree
from webhook.cluster.interest import Index
from webhook.errors import LookupFailed

LOCAL = GroupVersionKind("kueue.x-k8s.io", "v1beta2", "LocalQueue")
CLUSTER = GroupVersionKind("kueue.x-k8s.io", "v1beta2", "ClusterQueue")


def local(name="q", to="c", namespace=None):
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": metadata, "spec": {"to": to}}


def cluster(name="c", **spec):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def kustomization(*resources, **more):
    return {"resources": list(resources), **more}


def tree(*objects, **more):
    return FileTree([(file, obj) for file, obj in objects], **more)


def seen(of, file, gvk=CLUSTER, namespace="", name="c", unsaid=""):
    """Look up an object. Return the field `by` of its spec, None if it lacks the field, or why the object is not
    known.
    """
    try:
        found = of.cluster_view_of_file(file, unsaid).get(gvk, namespace, name)
    except LookupFailed as error:
        return str(error)
    return found and (found["spec"].get("by") or found["spec"].get("to"))


FOLDERS = [
    ("a/one.yaml", cluster(by="one")),
    ("a/two.yaml", cluster(by="two")),
    ("a/two.yaml", cluster("own", by="two")),
    ("a/job.yaml", local()),
    ("a/below/job.yaml", local()),
    ("b/job.yaml", local()),
    ("b/queue.yaml", cluster(by="b")),
    ("b/same.yaml", cluster(by="b")),
    ("b/queue.yaml", cluster("${NAME}", by="unfilled")),
    ("vendor/x/node.yaml", cluster("far", by="vendor")),
    ("vendor/x/job.yaml", local()),
    ("pkg/testdata/queue.yaml", cluster("far", by="test")),
    ("pkg/testdata/job.yaml", cluster("near", by="own file")),
]
DIFFERS = "ClusterQueue c is defined differently in a/one.yaml and a/two.yaml"


@pytest.mark.parametrize(
    ("file", "name", "meant"),
    [
        ("a/one.yaml", "c", "one"),
        ("a/two.yaml", "c", "two"),
        ("a/two.yaml", "own", "two"),
        ("a/job.yaml", "own", "two"),
        ("a/job.yaml", "c", DIFFERS),
        ("./a/job.yaml", "own", "two"),
        ("a/below/job.yaml", "own", None),  # a subfolder is applied separately
        ("b/job.yaml", "own", None),
        ("b/job.yaml", "c", "b"),  # two files with the same object
        ("b/job.yaml", "${NAME}", None),  # a placeholder
        ("vendor/x/job.yaml", "far", None),
        ("pkg/testdata/job.yaml", "far", None),
        ("pkg/testdata/job.yaml", "near", "own file"),
        ("unknown.yaml", "c", None),
    ],
)
def test_the_file_comes_first_then_its_folder(file, name, meant):
    assert seen(tree(*FOLDERS), file, name=name) == meant


def test_the_context_wins_over_all_folders():
    of = tree(*FOLDERS, context=[("all.yaml", cluster(by="context"))])
    assert [seen(of, file) for file in ("a/one.yaml", "a/job.yaml", "vendor/x/job.yaml", "")] == ["context"] * 4


def test_differing_objects_are_reported_once_with_their_places():
    of = tree(*FOLDERS)
    assert [*of.notes_on_differing_objects()] == []
    for _ in range(2):
        seen(of, "a/job.yaml")
    assert [*of.notes_on_differing_objects()] == [
        f"{DIFFERS}, so rules that need it are not evaluated: choose the file with --context"
    ]


def test_lists_and_lookups_have_the_same_objects():
    of = tree(*FOLDERS)
    assert [each["spec"]["by"] for each in of.cluster_view_of_file("b/job.yaml").list(CLUSTER, None)] == ["b"]
    with pytest.raises(LookupFailed):
        of.cluster_view_of_file("a/job.yaml").list(CLUSTER, None)
    assert [each["spec"]["by"] for each in of.cluster_view_of_file("a/two.yaml").list(CLUSTER, None)] == ["two", "two"]


def test_an_object_that_differs_is_unknown_only_to_those_who_ask_for_its_keys():
    by_owner = Index("owner", lambda obj: (obj["spec"]["by"],))
    view = tree(*FOLDERS).cluster_view_of_file("a/job.yaml")
    with pytest.raises(LookupFailed):
        view.list_indexed(CLUSTER, None, by_owner, "two")
    with pytest.raises(LookupFailed):
        view.list_indexed(CLUSTER, None, by_owner, "one")
    assert view.list_indexed(CLUSTER, None, by_owner, "three") == []
    view = tree(*FOLDERS, ("a/other.yaml", cluster("other", by="three"))).cluster_view_of_file("a/job.yaml")
    assert [each["metadata"]["name"] for each in view.list_indexed(CLUSTER, None, by_owner, "three")] == ["other"]


def test_an_object_knows_its_file():
    view = tree(*FOLDERS).cluster_view_of_file("b/job.yaml")
    assert view.file_of_object(view.get(CLUSTER, "", "c")) == "b/queue.yaml"
    assert view.file_of_object(cluster()) == ""


# --- namespaces ----------------------------------------------------------------------------------------------------------

SPACES = [
    ("a/q.yaml", local("said", to="team", namespace="team")),
    ("a/q.yaml", local("default", to="default", namespace="default")),
    ("a/q.yaml", local("unsaid", to="unsaid")),
    ("a/q.yaml", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}}),
]
ELSEWHERE = "LocalQueue {}: the object in a/q.yaml has no namespace: set metadata.namespace"
OF_ANOTHER = (
    "LocalQueue {}: the object in a/q.yaml is in namespace {}, and the reviewed object has none: set metadata.namespace"
)


@pytest.mark.parametrize(
    ("name", "namespace", "unsaid", "meant"),
    [
        ("said", "team", "", "team"),
        ("said", "other", "", None),
        ("said", "default", "default", OF_ANOTHER.format("said", "team")),
        ("default", "default", "", "default"),
        ("default", "default", "default", OF_ANOTHER.format("default", "default")),
        ("unsaid", "team", "", ELSEWHERE.format("team/unsaid")),
        ("unsaid", "default", "", ELSEWHERE.format("default/unsaid")),
        ("unsaid", "default", "default", "unsaid"),  # objects that are applied together have one namespace
    ],
)
def test_a_namespace_that_is_not_given_is_unknown(name, namespace, unsaid, meant):
    assert seen(tree(*SPACES), "a/q.yaml", LOCAL, namespace, name, unsaid) == meant


def test_an_unknown_namespace_has_no_known_values():
    known, unknown = (tree(*SPACES).cluster_view_of_file("a/q.yaml", unsaid) for unsaid in ("", "default"))
    assert known.get(NAMESPACE, "", "default")
    assert unknown.get(NAMESPACE, "", "default") is None
    assert unknown.list(NAMESPACE, None) == ()
    assert [each["spec"]["to"] for each in known.list(LOCAL, None)] == ["default", "team"]
    assert [each["spec"]["to"] for each in unknown.list(LOCAL, "default")] == ["unsaid"]


def test_in_whole_files_a_missing_object_is_absent():
    of = tree(*FOLDERS, *SPACES, is_whole=True)
    view = of.cluster_view_of_file("b/job.yaml", "default")
    assert view.is_whole()
    assert not tree(*FOLDERS).cluster_view_of_file("b/job.yaml").is_whole()
    assert view.get(CLUSTER, "", "own")["spec"] == {"by": "two"}
    assert view.get(LOCAL, "default", "unsaid")["spec"] == {"to": "unsaid"}
    assert view.get(LOCAL, "default", "said") is None
    assert view.get(NAMESPACE, "", "default")


# --- kustomizations ------------------------------------------------------------------------------------------------------

BASE = [
    ("base/kustomization.yaml", kustomization("queue.yaml", "job.yaml")),
    ("base/queue.yaml", local(to="base")),
    ("base/queue.yaml", cluster(by="base")),
    ("base/job.yaml", local("job")),
]
DEV = [
    ("dev/kustomization.yaml", kustomization("../base", "extra.yaml", namespace="dev", namePrefix="dev-")),
    ("dev/extra.yaml", local("extra")),
    ("dev/notes.yaml", local("unlisted")),
]
PROD = [("prod/kustomization.yaml", kustomization("../base/", namespace="prod"))]


def test_a_kustomization_renames_its_resources():
    of = tree(*BASE, *DEV)
    assert seen(of, "dev/extra.yaml", LOCAL, "dev", "dev-q") == "base"
    assert seen(of, "dev/extra.yaml", CLUSTER, "", "dev-c") == "base"
    assert seen(of, "dev/extra.yaml", LOCAL, "dev", "q") is None
    assert seen(of, "base/job.yaml", LOCAL, "dev", "dev-extra") == "c"
    assert of.apply_kustomizations("base/job.yaml", local("job"))["metadata"] == {"name": "dev-job", "namespace": "dev"}
    assert of.apply_kustomizations("dev/notes.yaml", local("job"))["metadata"] == {"name": "job"}
    assert of.knows_namespace("base/job.yaml")


def test_names_in_a_base_of_several_overlays_are_unknown():
    of = tree(*BASE, *DEV, *PROD)
    assert not of.knows_namespace("base/job.yaml")
    assert of.apply_kustomizations("base/job.yaml", local("job")) == local("job")
    assert "kustomizations may rename the object in base/queue.yaml" in seen(of, "base/job.yaml")
    assert seen(of, "dev/extra.yaml", LOCAL, "dev", "dev-q") == "base"
    assert seen(of, "base/job.yaml", LOCAL, "dev", "dev-extra") is None
    assert not tree(*BASE, *DEV, *PROD, is_whole=True).is_whole
    assert tree(*BASE, ("more/kustomization.yaml", kustomization("../base")), is_whole=True).is_whole


@pytest.mark.parametrize(
    ("more", "is_known"),
    [
        ({}, True),
        ({"patches": [{"path": "patch.yaml"}]}, True),
        ({"patches": [{"patch": '[{"op": "replace", "path": "/metadata/name", "value": "x"}]'}]}, False),
        ({"patches": [{"path": "patch.yaml", "options": {"allowNameChange": True}}]}, False),
        ({"components": ["../plain"]}, True),
        ({"components": ["../naming"]}, False),
        ({"components": ["../absent"]}, False),
        ({"transformers": ["t.yaml"]}, False),
        ({"replacements": [{"path": "r.yaml"}]}, False),
        ({"resources": ["job.yaml", "https://example.org/base?ref=main"]}, True),
    ],
)
def test_a_kustomization_that_may_rename_objects_makes_names_unknown(more, is_known):
    parts = [("plain/kustomization.yaml", {"patches": []}), ("naming/kustomization.yml", {"namespace": "x"})]
    of = tree(("a/kustomization.yaml", {**kustomization("job.yaml"), **more}), ("a/job.yaml", local("job")), *parts)
    assert of.knows_namespace("a/job.yaml") is is_known


@pytest.mark.parametrize(
    ("component", "above", "is_known"),
    [
        pytest.param({}, {}, False, id="in no kustomization"),
        pytest.param({"namespace": "x"}, {}, True, id="in no kustomization, with a namespace"),
        pytest.param({}, {"components": ["../c"]}, True, id="in a kustomization without a namespace"),
    ],
)
def test_the_namespace_of_a_component_is_known_only_with_its_kustomization(component, above, is_known):
    more = [("a/kustomization.yaml", {**kustomization(), **above})] if above else []
    of = tree(
        ("c/kustomization.yaml", {**kustomization("job.yaml"), "kind": "Component", **component}),
        ("c/job.yaml", local("job")),
        *more,
    )
    assert of.knows_namespace("c/job.yaml") is is_known


def of_core(kind, name, **more):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


GENERATED = [
    (
        "a/kustomization.yaml",
        kustomization("x.yaml", configMapGenerator=[{"name": "made", "literals": ["a=b"]}, {}, 1]),
    ),
    ("a/x.yaml", of_core("ConfigMap", "other")),
]
RENAMED = [
    ("a/kustomization.yaml", kustomization("x.yaml", namePrefix="dev-")),
    ("a/x.yaml", of_core("ConfigMap", "written")),
    ("a/x.yaml", local("queue")),
]


@pytest.mark.parametrize("where", ["the tree", "--context"])
def test_an_object_of_a_generator_is_not_absent(where):
    of = tree(*GENERATED, is_whole=True) if where == "the tree" else FileTree(context=GENERATED, is_whole=True)
    view = of.cluster_view_of_file("a/x.yaml")
    config, secret = (GroupVersionKind("", "v1", kind) for kind in ("ConfigMap", "Secret"))
    assert view.is_whole()
    with pytest.raises(LookupFailed, match="ConfigMap default/made: kustomize generates or renames the object"):
        view.get(config, "default", "made")
    assert view.get(config, "default", "lost") is None
    assert view.get(secret, "default", "made") is None


def test_a_reference_that_kustomize_renames_is_not_absent():
    of = tree(*RENAMED)
    view = of.cluster_view_of_file("a/x.yaml", "default")
    config = GroupVersionKind("", "v1", "ConfigMap")
    assert view.get(config, "default", "dev-written")
    with pytest.raises(LookupFailed, match="renames the object"):
        view.get(config, "default", "written")
    assert view.get(LOCAL, "default", "queue") is None  # kustomize does not know references to queues


@pytest.mark.parametrize(
    ("more", "is_whole"),
    [
        ({"configMapGenerator": [{"name": "made"}]}, True),
        ({"resources": ["x.yaml", "https://example.org/base?ref=main"]}, False),
        ({"resources": ["x.yaml", "github.com/example/base"]}, False),
        ({"generators": ["chart.yaml"]}, False),
        ({"helmCharts": [{"name": "chart"}]}, False),
    ],
)
def test_files_are_not_whole_if_a_kustomization_has_objects_from_elsewhere(more, is_whole):
    files = [("a/kustomization.yaml", {**kustomization("x.yaml"), **more}), ("a/x.yaml", local())]
    assert tree(*files, is_whole=True).is_whole is is_whole
    assert FileTree(context=files, is_whole=True).is_whole is is_whole


def test_kinds_keep_the_names_that_kustomize_leaves():
    of = tree(("a/kustomization.yaml", kustomization("x.yaml", namespace="team", nameSuffix="-b")), ("a/x.yaml", {}))
    names = {"Namespace": "team", "ConfigMap": "n-b", "Node": "n-b"}
    for kind, name in names.items():
        metadata = of.apply_kustomizations("a/x.yaml", {"apiVersion": "v1", "kind": kind, "metadata": {"name": "n"}})[
            "metadata"
        ]
        assert metadata == {"name": name} | ({"namespace": "team"} if kind == "ConfigMap" else {})


def test_kustomizations_that_include_each_other_end():
    of = tree(
        ("a/kustomization.yaml", kustomization("../b", "job.yaml", namePrefix="a-")),
        ("b/kustomization.yaml", kustomization("../a", namePrefix="b-")),
        ("a/job.yaml", local()),
    )
    assert isinstance(of.knows_namespace("a/job.yaml"), bool)


def test_a_kustomization_without_names_keeps_a_namespace_unknown():
    of = tree(*BASE)
    assert seen(of, "base/job.yaml", LOCAL, "default", "q", "default") == "base"
    assert "the object in base/queue.yaml has no namespace" in seen(of, "base/job.yaml", LOCAL, "default", "q")


def test_templates_of_one_chart_are_applied_together(tmp_path):
    (tmp_path / "Chart.yaml").write_text("name: x\n")
    for part in ("templates/queues", "templates/jobs"):
        (tmp_path / part).mkdir(parents=True)
    of = tree(
        (f"{tmp_path}/templates/queues/q.yaml", cluster(by="chart")),
        (f"{tmp_path}/templates/jobs/j.yaml", local()),
        (f"{tmp_path}/ci/j.yaml", local()),
    )
    assert seen(of, f"{tmp_path}/templates/jobs/j.yaml") == "chart"
    assert seen(of, f"{tmp_path}/ci/j.yaml") is None


@pytest.mark.parametrize(
    ("more", "given"),
    [
        pytest.param({"commonLabels": {"app": "web"}}, {"app": "web"}, id="common labels"),
        pytest.param({"labels": [{"pairs": {"app": "web"}, "includeSelectors": True}]}, {"app": "web"}, id="selectors"),
        pytest.param({"labels": [{"pairs": {"app": "web"}, "includeTemplates": True}]}, {"app": "web"}, id="templates"),
        pytest.param({"labels": [{"pairs": {"app": "web"}}]}, {}, id="labels of only the object"),
        pytest.param({"components": ["../more"]}, {"app": "web"}, id="a component"),
    ],
)
def test_pod_templates_get_the_labels_of_kustomizations(more, given):
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    written = {**deployment, "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {}}}}
    component = ("more/kustomization.yaml", {"kind": "Component", "commonLabels": {"app": "web"}})
    of = tree(("a/kustomization.yaml", {**kustomization("d.yaml"), **more}), ("a/d.yaml", written), component)
    template = of.apply_kustomizations("a/d.yaml", written)["spec"]["template"]
    assert template.get("metadata", {}).get("labels", {}) == given


@pytest.mark.parametrize("listed", [(), ("other.yaml",)])
def test_a_file_that_its_kustomization_does_not_list_gets_its_labels(listed):
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {}}}
    written = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    above = {**kustomization("../a"), "labels": [{"pairs": {"team": "b"}, "includeTemplates": True}]}
    of = tree(
        ("a/kustomization.yaml", {**kustomization(*listed), "commonLabels": {"app": "web"}}),
        ("a/d.yaml", written),
        ("a/deeper/d.yaml", written),
        ("o/kustomization.yaml", above),
    )
    given = of.apply_kustomizations("a/d.yaml", written)["spec"]["template"]["metadata"]["labels"]
    assert given == {"app": "web", "team": "b"}
    assert of.apply_kustomizations("a/deeper/d.yaml", written) is written


@pytest.mark.parametrize("users", [("a",), ("a", "b")])
def test_kustomize_writes_the_annotations_of_a_listed_object_as_texts(users):
    """The expected annotations are those of `kubectl kustomize` v5.5.0. Labels and pod templates stay as written."""
    metadata = {"name": "d", "labels": {"a": True}, "annotations": {"a": True, "b": 1, "c": 1.5, "e": "x"}}
    template = {"metadata": {"annotations": {"b": 1}}}
    written = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}
    of = tree(
        *((f"{user}/kustomization.yaml", kustomization("../base/d.yaml")) for user in users),
        ("base/d.yaml", written),
        ("base/other.yaml", written),
    )
    texts = {"a": "true", "b": "1", "c": "1.5", "e": "x"}
    assert of.apply_kustomizations("base/d.yaml", written) == {
        **written,
        "metadata": {**metadata, "annotations": texts},
    }
    assert of.apply_kustomizations("base/other.yaml", written) is written


@pytest.mark.parametrize(
    ("images", "given"),
    [
        ([{"name": "x/web", "newTag": "2"}], "x/web:2"),
        ([{"name": "x/web", "newName": "r.example.com/web"}], "r.example.com/web:1@sha256:ab"),
        ([{"name": "x/web", "digest": "sha256:cd"}], "x/web@sha256:cd"),
        ([{"name": "x/web", "newName": "y", "newTag": "2"}, {"name": "y", "newTag": "3"}], "y:3"),
        ([{"name": "web", "newTag": "2"}], "x/web:1@sha256:ab"),
        (["x/web", {"name": None}, {}], "x/web:1@sha256:ab"),
        ({"name": "x/web"}, "x/web:1@sha256:ab"),
    ],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_containers_get_the_images_of_kustomizations(images, given, kind):
    containers = [{"name": "a", "image": "x/web:1@sha256:ab"}, {"name": "b"}, None]
    written = {"apiVersion": "x/v1", "kind": "Job", "spec": {"parts": [{"template": {"spec": {kind: containers}}}]}}
    of = tree(
        ("a/kustomization.yaml", kustomization("d.yaml")),
        ("a/d.yaml", written),
        ("o/kustomization.yaml", kustomization("../a", images=images)),
    )
    spec = of.apply_kustomizations("a/d.yaml", written)["spec"]["parts"][0]["template"]["spec"]
    assert spec[kind] == [{"name": "a", "image": given}, {"name": "b"}, None]


def test_the_image_of_a_base_of_several_kustomizations_stays():
    written = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"image": "a:1"}]}}
    of = tree(
        ("a/kustomization.yaml", kustomization("d.yaml", components=["../c"])),
        ("a/d.yaml", written),
        ("c/kustomization.yaml", {"kind": "Component", "images": [{"name": "a", "newName": "b"}]}),
        *(
            (f"{name}/kustomization.yaml", kustomization("../a", images=[{"name": "b", "newTag": name}]))
            for name in "yz"
        ),
    )
    assert of.apply_kustomizations("a/d.yaml", written)["spec"]["containers"][0]["image"] == "b:1"


def test_a_label_of_the_template_stays_because_services_select_it():
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a", "tier": "b"}}}}
    written = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    labels = {"app": "web", "tier": "web", "team": "web"}
    of = tree(("a/kustomization.yaml", {**kustomization("d.yaml"), "commonLabels": labels}), ("a/d.yaml", written))
    template = of.apply_kustomizations("a/d.yaml", written)["spec"]["template"]
    assert template["metadata"]["labels"] == {"app": "a", "tier": "b", "team": "web"}


@pytest.mark.parametrize(
    ("api_version", "kind", "selector"),
    [("batch/v1", "Job", None), ("apps/v1", "Deployment", {"matchLabels": {"app": "web"}})],
)
def test_only_selectors_that_kustomize_creates_are_added(api_version, kind, selector):
    written = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "d"}, "spec": {"template": {"spec": {}}}}
    of = tree(
        ("a/kustomization.yaml", {**kustomization("d.yaml"), "commonLabels": {"app": "web"}}), ("a/d.yaml", written)
    )
    spec = of.apply_kustomizations("a/d.yaml", written)["spec"]
    assert spec["template"]["metadata"]["labels"] == {"app": "web"}
    assert spec.get("selector") == selector


EXISTS = [{"key": "app", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("more", "written", "selector"),
    [
        pytest.param({"commonLabels": {"app": "web"}}, None, {"matchLabels": {"app": "web"}}, id="null"),
        pytest.param({"commonLabels": {"app": "web"}}, {}, {"matchLabels": {"app": "web"}}, id="an empty selector"),
        pytest.param(
            {"labels": [{"pairs": {"app": "web"}, "includeSelectors": True}]},
            {"matchLabels": {}},
            {"matchLabels": {"app": "web"}},
            id="empty matchLabels",
        ),
        pytest.param(
            {"components": ["../more"]}, {"matchLabels": None}, {"matchLabels": {"app": "web"}}, id="null matchLabels"
        ),
        pytest.param(
            {"commonLabels": {"app": "web"}},
            {"matchExpressions": EXISTS},
            {"matchExpressions": EXISTS, "matchLabels": {"app": "web"}},
            id="an expression",
        ),
        pytest.param(
            {"labels": [{"pairs": {"app": "web"}, "includeTemplates": True}]},
            {"matchLabels": {}},
            {"matchLabels": {}},
            id="labels of templates alone",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_a_selector_without_labels_gets_the_labels_that_kustomize_gives_it(kind, more, written, selector):
    """The expected selectors are those of `kustomize build` v5.5.0."""
    spec = {"selector": written, "template": {"spec": {}}}
    obj = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "d"}, "spec": spec}
    component = ("more/kustomization.yaml", {"kind": "Component", "commonLabels": {"app": "web"}})
    of = tree(("a/kustomization.yaml", {**kustomization("d.yaml"), **more}), ("a/d.yaml", obj), component)
    given = of.apply_kustomizations("a/d.yaml", obj)["spec"]
    assert given["template"]["metadata"]["labels"] == {"app": "web"}
    assert given["selector"] == selector


def test_a_selector_without_labels_gets_the_label_that_the_template_has():
    template = {"metadata": {"labels": {"app": "own"}}}
    spec = {"selector": {"matchLabels": {}}, "template": template}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    files = ("a/kustomization.yaml", {**kustomization("d.yaml"), "commonLabels": {"app": "web"}}), ("a/d.yaml", obj)
    assert tree(*files).apply_kustomizations("a/d.yaml", obj)["spec"] == {
        "selector": {"matchLabels": {"app": "own"}},
        "template": template,
    }


@pytest.mark.parametrize(
    ("spec", "template_label", "selector"),
    [
        pytest.param({"template": {}}, "web", None, id="kustomize adds no selector"),
        pytest.param(
            {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}}},
            "a",
            {"matchLabels": {"app": "a"}},
            id="a label of the template stays",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"app": "a"}}, "template": {}},
            "web",
            {"matchLabels": {"app": "a"}},
            id="the template does not get the label of the selector",
        ),
    ],
)
def test_labels_of_templates_alone_change_no_selector(spec, template_label, selector):
    written = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    labels = [{"pairs": {"app": "web"}, "includeTemplates": True}]
    of = tree(("a/kustomization.yaml", {**kustomization("d.yaml"), "labels": labels}), ("a/d.yaml", written))
    given = of.apply_kustomizations("a/d.yaml", written)["spec"]
    assert given["template"]["metadata"]["labels"] == {"app": template_label}
    assert given.get("selector") == selector


def test_labels_of_another_kustomization_for_selectors_count_for_templates_too():
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}}}
    written = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    templates = {"labels": [{"pairs": {"app": "b"}, "includeTemplates": True}]}
    of = tree(
        ("over/kustomization.yaml", {**kustomization("../a"), **templates}),
        ("a/kustomization.yaml", {**kustomization("d.yaml"), "commonLabels": {"app": "b"}}),
        ("a/d.yaml", written),
    )
    assert of.apply_kustomizations("a/d.yaml", written)["spec"]["template"]["metadata"]["labels"] == {"app": "a"}


def flux(path, target):
    head = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "a"}}
    return {**head, "spec": {"path": path, **({"targetNamespace": target} if target else {})}}


@pytest.mark.parametrize(
    ("objects", "namespace", "is_known"),
    [
        pytest.param([flux("./apps/train", "team")], "team", True, id="a kustomization"),
        pytest.param([flux("apps", "team")], "team", True, id="a folder above it"),
        pytest.param([flux("./apps/other", "team")], None, True, id="another folder"),
        pytest.param([flux("./apps/train", "")], None, True, id="no target"),
        pytest.param([flux("./apps/train", "a"), flux("/apps/train", "b")], None, False, id="two targets"),
    ],
)
def test_objects_that_flux_applies_are_in_its_target_namespace(objects, namespace, is_known):
    files = [("repo/apps/train/job.yaml", local()), ("repo/apps/train/kustomization.yaml", kustomization("job.yaml"))]
    of = tree(*files, *(("repo/clusters/a.yaml", each) for each in objects))
    assert of.apply_kustomizations("repo/apps/train/job.yaml", local())["metadata"].get("namespace") == namespace
    assert of.knows_namespace("repo/apps/train/job.yaml") is is_known


def test_flux_uses_only_resources_of_the_kustomization_in_its_folder():
    files = [("apps/kustomization.yaml", kustomization("one.yaml")), ("apps/one.yaml", local())]
    of = tree(*files, ("apps/below/two.yaml", local()), ("clusters/a.yaml", flux("./apps", "team")))
    namespaces = [
        of.apply_kustomizations(file, local())["metadata"].get("namespace")
        for file in ("apps/one.yaml", "apps/below/two.yaml")
    ]
    assert namespaces == ["team", None]
