"""The memory of a view is bounded: the largest namespace becomes unknown, and the others stay known."""

import sys
import weakref

import pytest
from msgspec.structs import replace

from tests.cluster.server import CONFIG, CONFIGS, TIMES, event, eventually, page, resources
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.interest import interest_in_fields
from webhook.cluster.store import ObjectStore
from webhook.cluster.view_memory import ViewMemory, bytes_of_object
from webhook.cluster.watch import WatchedCluster
from webhook.errors import LookupFailed

CLAIM = GroupVersionKind("resource.k8s.io", "v1", "ResourceClaim")
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
KB, MB = 1_000, 1_000_000
OFTEN = replace(TIMES, retry_s=0.0)
READ = interest_in_fields(CONFIG, "data"), interest_in_fields(CLAIM, "spec")


def config(name, namespace, size, version="1"):
    metadata = {"name": name, "namespace": namespace, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * size}}


def claim(name, namespace, size, version="1"):
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": version},
        "spec": {"text": "x" * size},
    }


@pytest.fixture
def served(server):
    server.answers["/apis/resource.k8s.io/v1"] = resources(("resourceclaims", "ResourceClaim", True))
    server.answers[CONFIGS] = page(config("a", "honest", 10 * KB))
    server.answers[CLAIMS] = page(claim("a", "honest", 10 * KB), claim("b", "greedy", 10 * KB))
    return server


def test_the_largest_namespace_is_dropped_and_others_are_held(served, started):
    view = started(*READ, most_bytes=200 * KB)
    assert view.wait_until_synced(5)
    events = [event("ADDED", config(f"c-{number}", "greedy", 40 * KB, "11")) for number in range(20)]
    served.send(CONFIGS, *events, event("ADDED", config("last", "honest", KB, "40")))
    eventually(lambda: view.get(CONFIG, "honest", "last"))
    assert view.memory.bytes <= 200 * KB
    assert view.memory.dropped == 1
    with pytest.raises(LookupFailed, match=r"ConfigMap of namespace `greedy` are not in the view: .*--view-memory"):
        view.get(CONFIG, "greedy", "c-1")
    with pytest.raises(LookupFailed, match="`greedy`"):
        view.get(CONFIG, "greedy", "never-made")
    for namespace in ("greedy", None):
        with pytest.raises(LookupFailed, match="`greedy`"):
            view.list(CONFIG, namespace)
    assert [obj["metadata"]["name"] for obj in view.list(CONFIG, "honest")] == ["a", "last"]
    assert view.list(CONFIG, "nobody") == ()
    assert view.get(CLAIM, "greedy", "b")
    assert (
        WatchedCluster(view).describe_failures()
        == "not in the view, too large for --view-memory: ConfigMap of `greedy`"
    )


def test_a_first_list_is_never_in_memory_as_a_whole(served, started):
    served.answers[CONFIGS] = page(
        *(config(f"c-{number}", "greedy", 100 * KB) for number in range(50)), config("z", "honest", KB)
    )
    view = started(*READ, most_bytes=300 * KB)
    assert view.wait_until_synced(5)
    assert view.memory.bytes <= 300 * KB
    assert view.get(CONFIG, "honest", "z")
    with pytest.raises(LookupFailed):
        view.list(CONFIG, "greedy")


def test_a_dropped_namespace_is_held_once_it_fits(served, started):
    view = started(*READ, most_bytes=200 * KB, times=OFTEN)
    assert view.wait_until_synced(5)
    served.send(CONFIGS, *(event("ADDED", config(f"large-{at}", "greedy", 100 * KB, "11")) for at in range(2)))
    eventually(lambda: view.memory.dropped)
    served.answers[CONFIGS] = page(config("a", "honest", KB), config("small", "greedy", KB), version="30")
    served.send(CONFIGS, None)

    def found():
        try:
            return view.get(CONFIG, "greedy", "small")
        except LookupFailed:
            return None

    eventually(found)
    assert view.get(CONFIG, "greedy", "large-0") is None
    assert view.describe_dropped_objects() == []


def test_objects_without_a_namespace_are_counted_and_listed_last():
    memory = ViewMemory(100 * KB)
    nodes, claims = ObjectStore(memory), ObjectStore(memory)
    for store in (nodes, claims):
        store.begin_list()
        store.end_list()
    nodes.put(("", "node"), {"spec": "x" * 60 * KB})
    assert 60 * KB < memory.bytes < 61 * KB
    claims.put(("team", "a"), {"spec": "x" * 50 * KB})
    assert (claims.not_held, nodes.not_held) == ({"team"}, frozenset())
    nodes.put(("", "other"), {"spec": "x" * 60 * KB})  # no namespace is too large, so the view drops nodes
    assert nodes.not_held == {""}
    assert memory.bytes == 0


def test_a_namespace_object_counts_in_its_own_namespace():
    memory = ViewMemory(100 * KB)
    store = ObjectStore(memory, are_namespaces=True)
    store.begin_list()
    for number in range(50):
        store.add_listed(("", f"n-{number}"), {"labels": "x" * KB})
    store.add_listed(("", "large"), {"labels": "x" * 50 * KB})
    store.end_list()
    assert memory.bytes <= 100 * KB
    assert [place for place, _ in store.unreadable_objects(None, 5)] == [("", "large")]
    assert store.has_dropped_objects
    assert store.get(("", "n-7")) == {"labels": "x" * KB}
    store.drop(("", "large"))
    assert not store.has_dropped_objects
    assert memory.bytes == sum(map(bytes_of_object, store.list(None)))


def test_objects_of_an_incomplete_list_are_counted():
    memory = ViewMemory()
    store = ObjectStore(memory)
    store.begin_list()
    for number in range(10):
        store.add_listed(("n", f"{number}"), {"spec": "x" * KB})
    store.end_list()
    before = memory.bytes
    store.begin_list()
    for number in range(5):
        store.add_listed(("n", f"{number}"), {"spec": "x" * KB})  # unchanged objects count once
    assert memory.bytes == before
    for number in range(5, 10):
        store.add_listed(("n", f"{number}"), {"spec": "y" * KB})
    assert before * 1.4 < memory.bytes < before * 1.6
    store.begin_list()  # the previous list never ended, so it does not count
    assert memory.bytes == before
    store.add_listed(("n", "0"), {"spec": "x" * KB})
    store.end_list()
    assert memory.bytes == bytes_of_object({"spec": "x" * KB})


def test_the_largest_namespace_is_that_with_the_most_bytes_of_all_kinds():
    memory = ViewMemory(100 * KB)
    stores = [ObjectStore(memory) for _ in range(3)]
    for store in stores:
        store.begin_list()
        store.add_listed(("many", "a"), {"spec": "x" * 20 * KB})
        store.end_list()
    stores[0].put(("one", "a"), {"spec": "x" * 30 * KB})
    assert memory.dropped == 0
    stores[0].put(("one", "b"), {"spec": "x" * 15 * KB})
    assert [store.not_held for store in stores].count(frozenset({"many"})) == 1
    assert stores[0].get(("one", "b"))


def test_view_memory_counts_the_held_bytes():
    memory = ViewMemory()
    store = ObjectStore(memory)
    store.begin_list()
    for number in range(50):
        store.add_listed(("n", f"{number % 40}"), {"spec": ["x" * number, {"y": number}]})
    store.end_list()
    for number in range(30):
        store.put(("n", f"{number}"), {"spec": "y" * 7 * number})
        store.drop(("n", f"{number * 2}"))
    assert memory.bytes == sum(map(bytes_of_object, store.list(None)))
    store.stop_counting_memory()
    assert memory.bytes == 0


def config_with_keys(name, *keys):
    return {**config(name, "n", 0), "data": dict.fromkeys(keys, "")}


@pytest.mark.parametrize(
    ("key", "count"), [("k" * 1 * KB, 5), ("k", 500)], ids=["long keys", "more keys than objects can share"]
)
def test_invented_keys_are_counted(served, started, key, count):
    every = [config_with_keys(f"{of}", *(f"{of}{number:05}{key}" for number in range(count))) for of in range(40)]
    served.answers[CONFIGS] = page(*every)
    view = started(READ[0])
    assert view.wait_until_synced(5)
    taken = sum(sum(map(sys.getsizeof, data["data"])) for data in every)
    values = sum(count * sys.getsizeof("") + sys.getsizeof(data["data"]) for data in every)
    assert view.memory.bytes > values + 0.75 * taken


def test_field_names_are_shared_and_charged_to_no_namespace(served, started):
    served.answers[CONFIGS] = page(*(config_with_keys(f"c{number}", "first", "second") for number in range(50)))
    view = started(READ[0])
    assert view.wait_until_synced(5)
    one, *others = view.list(CONFIG, "n")
    assert all(key is same for other in others for key, same in zip(one["data"], other["data"], strict=True))
    names = (*one, *one["metadata"], *one["data"])
    assert view.memory.bytes == 50 * (bytes_of_object(one) - sum(map(sys.getsizeof, names))) + 40  # c10 to c49


class Kept(dict):
    """An object that shows whether anything still refers to it."""


CHANGES = {
    "dropped": lambda store, place: store.drop(place),
    "replaced": lambda store, place: store.put(place, {"spec": "new"}),
    "dropped after another object was added": lambda store, place: (
        store.put(("n", "b"), {"spec": "new"}),
        store.drop(place),
    ),
    "missing from the next list": lambda store, _place: (store.begin_list(), store.end_list()),
    "too large": lambda store, place: store.drop_namespace(place[0]),
    "no longer watched": lambda store, _place: store.clear(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("namespace", ["n", None], ids=["listed by namespace", "listed as a whole"])
def test_a_returned_list_keeps_no_deleted_objects_in_memory(change, namespace):
    store = ObjectStore()
    store.begin_list()
    store.end_list()
    store.put(("n", "a"), Kept(spec="x"))
    seen = weakref.ref(store.list(namespace)[0])
    assert seen() == {"spec": "x"}
    change(store, ("n", "a"))
    assert seen() is None
