"""A view notes the name of an object that cannot be read, and continues to watch the other objects."""

import json
import sys

import pytest

from tests.cluster.server import CONFIG, CONFIGS, AsText, config, event, eventually
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.store import ObjectStore, UnreadableObject
from webhook.cluster.watch import WatchedCluster
from webhook.errors import LookupFailed

READ = interest_in_fields(CONFIG, "data")
DEPTHS = [600, 980, 5_000]


def deep(name, depth, field="data", version="11"):
    """Return a ConfigMap as text, because Python cannot write JSON of this depth."""
    text = json.dumps(config(name, version, text="honest"))
    return f'{text[:-1]}, "{field}": {"[" * depth}{"]" * depth}}}'.encode()


def lines_run(work):
    count = 0

    def note(_frame, what, _arg):
        nonlocal count
        count += what == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def added(obj):
    return b'{"type": "ADDED", "object": ' + obj + b"}\n"


def listed(*objects):
    return 200, b'{"items": [' + b", ".join(objects) + b'], "metadata": {"resourceVersion": "10"}}'


def text(name, version="11"):
    return json.dumps(config(name, version, text="honest")).encode()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("interest", [READ, CONFIG], ids=["fields", "whole"])
def test_a_list_continues_after_a_too_deep_object(server, started, interest, depth):
    server.answers[CONFIGS] = listed(text("a"), deep("b", depth), text("c"))
    view = started(interest)
    assert view.wait_until_synced(5)
    assert view.failures() == {}
    for name in ("a", "c"):
        assert view.get(CONFIG, "n", name)["data"] == {"text": "honest"}
    with pytest.raises(LookupFailed, match=r"^ConfigMap n/b: it is nested deeper than 200 levels"):
        view.get(CONFIG, "n", "b")


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("interest", [READ, CONFIG], ids=["fields", "whole"])
def test_a_watch_continues_after_a_too_deep_object(server, started, interest, depth):
    view = started(interest)
    assert view.wait_until_synced(5)
    server.send(CONFIGS, added(deep("b", depth)), event("ADDED", config("c", "12", text="honest")))
    eventually(lambda: view.get(CONFIG, "n", "c"))
    assert view.failure_count == 0
    with pytest.raises(LookupFailed, match=r"^ConfigMap n/b: it is nested deeper than 200 levels"):
        view.get(CONFIG, "n", "b")
    for namespace in ("n", None):  # a list without an unreadable object must not count as complete
        with pytest.raises(LookupFailed, match=r"^ConfigMap n/b"):
            view.list(CONFIG, namespace)
    assert view.list(CONFIG, "other") == ()
    assert view.unreadable_count == 1
    told = WatchedCluster(view).describe_failures()
    problem = "ConfigMap n/b is nested deeper than 200 levels and cannot be read"
    assert told == f"not in the view, because of size or depth: {problem}"
    assert WatchedCluster(view).why_not_ready() == ""
    server.send(CONFIGS, event("MODIFIED", config("b", "13", text="shallow")))
    eventually(lambda: not view.unreadable_count)
    assert len(view.list(CONFIG, "n")) == 3


def test_an_unreadable_object_goes_when_it_is_deleted(server, started):
    view = started(READ)
    assert view.wait_until_synced(5)
    server.send(CONFIGS, added(deep("b", 900)), event("DELETED", config("b", "12")))
    server.send(CONFIGS, event("ADDED", config("c", "13")))
    eventually(lambda: view.get(CONFIG, "n", "c"))
    assert view.get(CONFIG, "n", "b") is None
    assert view.unreadable_count == 0


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_field_that_no_policy_reads_may_have_any_depth(server, started, depth):
    server.answers[CONFIGS] = listed(deep("b", depth, field="binaryData"))
    view = started(READ)
    assert view.wait_until_synced(5)
    assert view.get(CONFIG, "n", "b")["data"] == {"text": "honest"}
    assert view.unreadable_count == 0


def test_objects_are_reported_under_their_first_name(server, started):
    server.answers[CONFIGS] = listed(*(deep(f"b-{number}", 300) for number in range(9)))
    view = started(READ)
    assert view.wait_until_synced(5)
    [line] = view.describe_dropped_objects()
    assert line.endswith("ConfigMap n/b-4 is nested deeper than 200 levels and cannot be read and 4 more")


def store_of_unreadable_objects(count):
    store = ObjectStore()
    store.begin_list()
    for number in range(count):
        store.add_listed(("many", f"o-{number:05}"), UnreadableObject("cannot be read"))
        store.add_listed(("many", f"readable-{number:05}"), {"spec": 1})
    store.add_listed(("few", "a"), UnreadableObject("cannot be read"))
    store.end_list()
    return store


def test_a_few_of_very_many_unreadable_objects_are_reported_quickly():
    store, looks = store_of_unreadable_objects(5_000), list[int]()
    for most in (1, 5):
        lines = lines_run(lambda most=most: looks.append(len(store.unreadable_objects(None, most))))
        assert lines < 60
    assert looks == [1, 5]
    assert store.unreadable_objects("few", 5) == [(("few", "a"), UnreadableObject("cannot be read"))]
    assert store.unreadable_objects("other", 5) == []


def test_objects_that_became_readable_are_not_reported():
    store = store_of_unreadable_objects(3)
    store.put(("many", "o-00000"), {"spec": 1})
    store.drop(("many", "o-00001"))
    store.drop(("few", "a"))
    assert [place for place, _ in store.unreadable_objects(None, 9)] == [("many", "o-00002")]
    assert store.unreadable_count == 1
    store.put(("many", "readable-00000"), UnreadableObject("cannot be read"))
    assert store.unreadable_count == len(store.unreadable_objects("many", 9)) == 2


def test_an_object_that_is_read_alone_and_is_too_deep_is_an_error(server, tmp_path):
    server.answers["/deep"] = 200, AsText({}, deep("a", 5_000))
    with pytest.raises(LookupFailed, match="/deep: the answer is nested too deeply to be read"):
        connect_to_cluster(server.kubeconfig(tmp_path)).get("/deep", {})
