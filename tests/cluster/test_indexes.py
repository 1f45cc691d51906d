"""Objects of a namespace are found by a key, in an index that the watch changes in place."""

import sys
from collections import Counter

import pytest

from tests.cluster.server import CONFIG, CONFIGS, config, event, eventually
from webhook.cluster.files import FilesCluster
from webhook.cluster.interest import BY_NAME, Index, Interest, combine_interests, interest_in_fields
from webhook.cluster.layered import ClusterBeforeChange, LayeredCluster
from webhook.cluster.recording import RecordingCluster
from webhook.cluster.store import ObjectStore
from webhook.cluster.view_memory import ViewMemory
from webhook.errors import LookupFailed


def tiers_of(obj):
    return obj["data"]["tiers"].split()


BY_TIER = Index("tier", tiers_of)
INTEREST = interest_in_fields(CONFIG, "data", indexes=(BY_TIER,))


def tiered(name, tiers, namespace="n", version="11"):
    made = config(name, version, tiers=tiers)
    made["metadata"]["namespace"] = namespace
    return made


def names(found):
    return sorted(obj["metadata"]["name"] for obj in found)


@pytest.fixture
def view(server, started):
    server.answers[CONFIGS] = (
        200,
        {
            "items": [tiered("a", "gold"), tiered("b", "gold lead"), tiered("c", "gold", "other")],
            "metadata": {"resourceVersion": "10"},
        },
    )
    view = started(INTEREST)
    assert view.wait_until_synced(5)
    return view


def test_a_watch_keeps_an_index(server, view):
    assert names(view.list_indexed(CONFIG, "n", BY_TIER, "gold")) == ["a", "b"]
    assert names(view.list_indexed(CONFIG, None, BY_TIER, "gold")) == ["a", "b", "c"]
    assert names(view.list_indexed(CONFIG, None, BY_NAME, "c")) == ["c"]
    server.send(CONFIGS, event("MODIFIED", tiered("a", "lead")), event("DELETED", tiered("b", "", version="12")))
    eventually(lambda: view.get(CONFIG, "n", "b") is None)
    assert names(view.list_indexed(CONFIG, "n", BY_TIER, "gold")) == []
    assert names(view.list_indexed(CONFIG, "n", BY_TIER, "lead")) == ["a"]


def test_only_objects_in_an_index_are_held(server, view):
    broken = tiered("b", "gold")
    del broken["data"]["tiers"]
    server.send(CONFIGS, event("MODIFIED", broken), event("ADDED", tiered("d", "lead", "other")))
    eventually(lambda: view.get(CONFIG, "other", "d"))
    assert names(view.list_indexed(CONFIG, "other", BY_TIER, "lead")) == ["d"]
    for namespace in ("n", None):
        with pytest.raises(LookupFailed, match=r"^ConfigMap n/b: it cannot be indexed: KeyError\('tiers'\)"):
            view.list_indexed(CONFIG, namespace, BY_TIER, "gold")


def test_every_view_answers_the_same(view):
    files = FilesCluster(view.list(CONFIG, None))
    held = view.get(CONFIG, "n", "b")
    for each in (files, LayeredCluster(FilesCluster(), view), RecordingCluster(view)):
        assert names(each.list_indexed(CONFIG, "n", BY_TIER, "gold")) == ["a", "b"]
    above = LayeredCluster(FilesCluster([tiered("b", "lead")]), view)
    assert names(above.list_indexed(CONFIG, "n", BY_TIER, "gold")) == ["a"]
    assert names(above.list_indexed(CONFIG, "n", BY_TIER, "lead")) == ["b"]
    for old, gold in ((None, ["a"]), (tiered("b", "lead"), ["a"]), (tiered("b", "gold"), ["a", "b"])):
        before = ClusterBeforeChange(view, ("", "ConfigMap"), ("n", "b"), held, old)
        assert names(before.list_indexed(CONFIG, "n", BY_TIER, "gold")) == gold


def test_using_an_undeclared_index_is_an_error(view):
    with pytest.raises(LookupFailed, match="not indexed by other"):
        view.list_indexed(CONFIG, "n", Index("other", tiers_of), "gold")


def test_an_index_is_built_only_if_every_interest_uses_it():
    narrow, every = combine_interests([INTEREST, Interest(CONFIG)]), combine_interests([Interest(CONFIG)])
    assert narrow[0].indexes == {BY_TIER}
    assert every[0].indexes == frozenset()


def test_a_change_of_one_object_does_not_read_the_other_objects():
    """A change and the next lookups of a review call as many functions with many objects as with few."""

    def steps(count):
        store = ObjectStore(ViewMemory(), [BY_TIER])
        store.begin_list()
        for number in range(count):
            store.add_listed(("n", f"{number:05}"), tiered(f"{number:05}", f"tier-{number}"))
        store.end_list()
        store.list("n")
        counts = Counter()
        sys.setprofile(lambda _frame, what, _arg: counts.update((what,)))
        store.put(("n", "00007"), tiered("00007", "gold"))
        found = store.list_indexed("n", BY_TIER, "gold"), store.list("n")
        sys.setprofile(None)
        assert [len(each) for each in found] == [1, count]
        return counts.total()

    assert steps(5_000) <= steps(50) + 20
