"""A view holds only objects of interest: by name, by label, by field."""

import pytest

from tests.cluster.server import CONFIG, CONFIGS, event, eventually, resources
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster import interest, packed
from webhook.cluster.decoding import DEEPEST
from webhook.cluster.interest import Interest, ObjectScope, combine_interests, interest_in_fields
from webhook.cluster.packed import TooDeepObject, projection_of_fields, with_shared_keys
from webhook.cluster.view_memory import SharedKeys
from webhook.errors import LookupFailed

NODE = GroupVersionKind("", "v1", "Node")


def named(name, namespace=""):
    return Interest(CONFIG, scope=ObjectScope(namespace=namespace, name=name))


def labelled(labels, namespace=""):
    return Interest(CONFIG, scope=ObjectScope(namespace=namespace, labels=labels))


def held(name, namespace, **labels):
    metadata = {"name": name, "namespace": namespace, "resourceVersion": "1", "labels": labels}
    return {"metadata": metadata, "data": {"of": namespace}}


@pytest.fixture
def filled(server):
    server.answers["/api/v1"] = resources(("configmaps", "ConfigMap", True), ("nodes", "Node", False))
    del server.answers[CONFIGS]
    server.objects[CONFIGS] = [
        held("limits", "a", tier="x"),
        held("limits", "b"),
        held("other", "a", tier="x"),
        held("other", "b", tier="y"),
    ]
    server.objects["/api/v1/nodes"] = [
        {
            "metadata": {"name": "n1", "resourceVersion": "1", "labels": {"a": "b"}, "managedFields": [{}]},
            "spec": {"x": 1},
        }
    ]
    return server


def lists(server):
    return [(path, query) for path, query, _ in server.asked if "limit" in query]


def test_for_a_name_in_one_namespace_only_that_object_is_requested(filled, started):
    view = started(named("limits", "a"))
    assert view.wait_until_synced(5)
    path = "/api/v1/namespaces/a/configmaps"
    assert lists(filled) == [(path, {"fieldSelector": "metadata.name=limits", "limit": "500"})]
    assert view.get(CONFIG, "a", "limits")["data"] == {"of": "a"}
    filled.send(f"{path}?metadata.name=limits", event("DELETED", held("limits", "a")))
    eventually(lambda: view.get(CONFIG, "a", "limits") is None)


def test_an_unwatched_object_is_not_known_to_be_absent(filled, started):
    view = started(named("limits", "a"), labelled("tier in (x)", "b"))
    assert view.wait_until_synced(5)
    for namespace, name in (("b", "limits"), ("a", "other"), ("a", "nothing")):
        with pytest.raises(LookupFailed, match=f"ConfigMap {namespace}/{name}: not watched: no loaded policy"):
            view.get(CONFIG, namespace, name)
    for namespace, labels in ((None, ""), ("a", ""), ("a", "tier in (x)"), (None, "tier in (x)"), ("b", "tier in (y)")):
        with pytest.raises(LookupFailed, match="ConfigMap list: not watched"):
            view.list(CONFIG, namespace, labels)


def test_a_name_held_for_every_namespace_is_known_in_each_namespace(filled, started):
    view = started(named("limits"))
    assert view.wait_until_synced(5)
    assert [view.get(CONFIG, namespace, "limits") is not None for namespace in "abc"] == [True, True, False]
    assert view.is_namespaced(CONFIG)


def test_a_selector_returns_selected_objects_and_objects_held_by_name(filled, started):
    view = started(labelled("tier in (x)"), named("limits", "b"))
    assert view.wait_until_synced(5)
    places = [
        (each["metadata"]["namespace"], each["metadata"]["name"]) for each in view.list(CONFIG, None, "tier in (x)")
    ]
    assert places == [("a", "limits"), ("a", "other"), ("b", "limits")]
    assert view.get(CONFIG, "a", "other") is not None  # the label selects the object, so the view has it
    assert len(view.list(CONFIG, "a", "tier in (x)")) == 2


def test_a_list_for_a_fact_also_serves_a_selector(filled, started):
    view = started(Interest(CONFIG))
    assert view.wait_until_synced(5)
    assert len(view.list(CONFIG, "a", "tier in (x)")) == 2


def test_only_metadata_is_requested_and_objects_keep_their_kind(filled, started):
    view = started(interest_in_fields(NODE, "metadata.labels"))
    assert view.wait_until_synced(5)
    metadata = {"name": "n1", "labels": {"a": "b"}}
    assert view.get(NODE, "ignored", "n1") == {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
    assert view.is_namespaced(NODE) is False
    (accept,) = [headers["accept"] for _, query, headers in filled.asked if "limit" in query]
    assert accept == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def test_pages_are_followed_with_the_same_selectors(filled, started, monkeypatch):
    monkeypatch.setattr("webhook.cluster.reflector.PAGE", "1")
    view = started(named("limits"))
    assert view.wait_until_synced(5)
    assert [query.get("continue") for _, query in lists(filled)] == [None, "1"]
    assert {query["fieldSelector"] for _, query in lists(filled)} == {"metadata.name=limits"}
    assert view.get(CONFIG, "b", "limits") is not None


def test_many_names_are_picked_out_of_their_namespaces(filled, started, monkeypatch):
    monkeypatch.setattr(interest, "MOST_NAMED", 1)
    view = started(named("limits", "a"), named("other", "a"))
    assert view.wait_until_synced(5)
    assert lists(filled) == [("/api/v1/namespaces/a/configmaps", {"limit": "500"})]
    assert view.get(CONFIG, "a", "limits")
    assert view.get(CONFIG, "a", "other")
    with pytest.raises(LookupFailed, match="not watched"):
        view.get(CONFIG, "a", "third")
    with pytest.raises(LookupFailed, match="not watched"):
        view.list(CONFIG, "a")
    filled.send(
        "/api/v1/namespaces/a/configmaps", event("ADDED", held("third", "a")), event("ADDED", held("other", "a", n="1"))
    )
    eventually(lambda: view.get(CONFIG, "a", "other")["metadata"]["labels"])


def test_a_reload_keeps_used_watches_and_stops_the_others(filled, started):
    view = started(named("limits", "a"), named("other", "a"))
    assert view.wait_until_synced(5)
    view.watch([named("limits", "a"), named("limits", "b")])
    assert view.get(CONFIG, "a", "limits")
    assert view.wait_until_synced(5)
    assert view.get(CONFIG, "b", "limits")
    with pytest.raises(LookupFailed, match="not watched"):
        view.get(CONFIG, "a", "other")
    assert len(lists(filled)) == 3


def test_a_view_with_more_fields_is_used_until_one_with_fewer_exists(filled, started):
    view = started(Interest(CONFIG))
    assert view.wait_until_synced(5)
    del filled.objects[CONFIGS]
    filled.answers[CONFIGS] = 500, {"message": "busy"}
    for fields in (("data.of", "metadata.labels"), ("data.of",)):
        before = view.revision(CONFIG)
        view.watch([interest_in_fields(CONFIG, *fields)])
        assert view.revision(CONFIG) != before
        assert view.get(CONFIG, "a", "limits")["data"] == {"of": "a"}
        assert view.is_synced(CONFIG)
        assert len(view.list(CONFIG, "a")) == 2
    eventually(lambda: view.failure_count)
    filled.objects[CONFIGS] = [held("limits", "a")]
    eventually(lambda: view.get(CONFIG, "b", "limits") is None)
    eventually(lambda: "labels" not in view.get(CONFIG, "a", "limits")["metadata"])


def test_a_view_with_fewer_fields_is_not_used_for_more_fields(filled, started):
    view = started(interest_in_fields(CONFIG, "metadata.labels"))
    assert view.wait_until_synced(5)
    filled.answers["/api/v1"] = 500, {"message": "busy"}
    view.watch([interest_in_fields(CONFIG, "data")])
    with pytest.raises(LookupFailed, match=r"busy|not synced yet"):
        view.get(CONFIG, "a", "limits")
    view.watch([])
    view.watch([Interest(CONFIG)])
    with pytest.raises(LookupFailed, match=r"busy|not synced yet"):
        view.is_namespaced(CONFIG)


@pytest.mark.parametrize(
    "given, wanted",
    [
        pytest.param([named("x", "a"), named("x", "a")], [named("x", "a")], id="the same interest twice"),
        pytest.param([named("x", "a"), named("x")], [named("x")], id="a name in one namespace, and in all namespaces"),
        pytest.param([named("x", "a"), Interest(CONFIG)], [Interest(CONFIG)], id="a name, and all names"),
        pytest.param([labelled("k in (v)", "a"), labelled("k in (v)")], [labelled("k in (v)")], id="a selector"),
        pytest.param(
            [interest_in_fields(CONFIG, "data"), named("x")],
            [named("x"), interest_in_fields(CONFIG, "data")],
            id="a whole object by name, and fields of all",
        ),
        pytest.param(
            [interest_in_fields(CONFIG, "spec.a"), interest_in_fields(CONFIG, "spec", "metadata.labels")],
            [interest_in_fields(CONFIG, "spec", "metadata.labels")],
            id="fields of two interests",
        ),
        pytest.param(
            [interest_in_fields(CONFIG, "spec"), Interest(CONFIG)], [Interest(CONFIG)], id="whole objects, and a field"
        ),
    ],
)
def test_interests_are_combined_so_that_no_object_is_held_twice(given, wanted):
    assert list(combine_interests(given)) == wanted == list(combine_interests(reversed(given)))


@pytest.mark.parametrize(
    "places, wanted",
    [
        pytest.param([("a", 70)], ["a"], id="names in one namespace"),
        pytest.param([("a", 35), ("b", 35)], ["a", "b"], id="names in two namespaces"),
        pytest.param([("a", 35), ("", 35)], [""], id="names in any namespace"),
        pytest.param([(f"n{number}", 1) for number in range(65)], [""], id="names in too many namespaces"),
    ],
)
def test_the_number_of_watches_is_bounded(places, wanted):
    given = [named(f"x{number}-{namespace}", namespace) for namespace, count in places for number in range(count)]
    made = combine_interests([*given, Interest(NODE)])
    assert [each.scope for each in made if each.gvk == CONFIG] == [
        ObjectScope(namespace=namespace) for namespace in wanted
    ]
    for each in given:
        assert any(other.includes(each.scope.namespace or "any", each.scope.name) for other in made)
    assert not any(other.includes("a", "y") for other in made if other.gvk == CONFIG)
    assert not any(each.covers(named("x0-a", "a")) for each in made)


def test_fields_are_kept_with_their_subfields():
    found = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "namespace": "a", "labels": {"x": "y"}, "uid": "u"},
        "spec": {"items": [{"name": "i", "size": 1, "deep": {"a": [{"b": 1}]}}, "text"], "other": 1},
        "status": "text",
    }
    cut = projection_of_fields(
        frozenset(("metadata.labels", "spec.items.name", "spec.items.deep", "status.none", "absent"))
    )(found)
    assert cut == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "namespace": "a", "labels": {"x": "y"}},
        "spec": {"items": [{"name": "i", "deep": {"a": [{"b": 1}]}}, "text"]},
        "status": "text",
    }
    assert projection_of_fields(frozenset(("spec", "spec.other")))(found)["spec"] == found["spec"]
    assert projection_of_fields(None)({"metadata": {"managedFields": [], "uid": "u"}}) == {"metadata": {"uid": "u"}}


@pytest.mark.parametrize("fields", [frozenset(("spec",)), frozenset(("spec.a.b",)), None])
def test_an_object_is_kept_only_to_the_depth_that_is_read(fields):
    def nested(depth):
        value = []
        for _ in range(depth - 2):
            value = [value]
        return {"metadata": {}, "spec": value}

    def kept(obj):
        return with_shared_keys(projection_of_fields(fields)(obj), SharedKeys())

    assert kept(nested(DEEPEST)) == nested(DEEPEST)
    with pytest.raises(TooDeepObject, match=f"deeper than {DEEPEST} levels"):
        kept(nested(900))


def test_large_objects_in_any_namespace_are_not_held(filled, started):
    large = {**held("limits", "a", tier="x"), "data": {"of": "x" * packed.LARGEST_HELD}}
    filled.objects[CONFIGS] = [large, held("limits", "b")]
    view = started(named("limits"), labelled("tier in (x)"))
    assert view.wait_until_synced(5)
    assert view.get(CONFIG, "b", "limits")
    assert view.get(CONFIG, "d", "limits") is None
    with pytest.raises(
        LookupFailed, match=r"ConfigMap a/limits: it has \d+ bytes, more than the 131072 bytes that the view keeps"
    ):
        view.get(CONFIG, "a", "limits")
    with pytest.raises(LookupFailed, match="ConfigMap a/limits: it has"):
        view.list(CONFIG, "a", "tier in (x)")


def test_large_objects_in_one_given_namespace_are_held(filled, started):
    large = {**held("limits", "a"), "data": {"of": "x" * packed.LARGEST_HELD}}
    filled.objects[CONFIGS] = [large]
    view = started(named("limits", "a"))
    assert view.wait_until_synced(5)
    assert view.get(CONFIG, "a", "limits")["data"] == large["data"]


def test_only_annotations_that_are_read_are_kept():
    obj = {"metadata": {"name": "a", "annotations": {"volcano.sh/x": "1", "large": "x" * 1000}, "labels": {"b": "c"}}}
    one = frozenset(('metadata.annotations["volcano.sh/x"]', "metadata.labels"))
    assert projection_of_fields(one)(obj)["metadata"]["annotations"] == {"volcano.sh/x": "1"}
    every = frozenset((*one, "metadata.annotations"))
    assert projection_of_fields(every)(obj) == obj
    fields = combine_interests([Interest(NODE, one), Interest(NODE, frozenset(("metadata.annotations",)))])[0].fields
    assert fields == {"metadata.annotations", "metadata.labels"}
    assert Interest(NODE, one).reads_only_metadata
