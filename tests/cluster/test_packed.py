"""Large objects are held as text. Text needs little memory, is compared in one call, and reads like other objects."""

import json
import sys

import pytest

from tests.cluster.server import CONFIG, CONFIGS, event, eventually, page
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import Operation
from webhook.cluster import packed
from webhook.cluster.interest import Index, interest_in_fields
from webhook.cluster.layered import view_before_request
from webhook.deadline import Deadline
from webhook.errors import LookupFailed

BY_SIZE = Index("size", lambda obj: (str(len(obj["data"])),))
READ = interest_in_fields(CONFIG, "data", indexes=(BY_SIZE,))
COUNT = 1_000


def config(name, count=COUNT, version="1", value=1.0):
    metadata = {"name": name, "namespace": "n", "resourceVersion": version, "managedFields": [{}]}
    data = [{"name": f"V{number}", "value": value} for number in range(count)]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def kept(obj):
    return {**obj, "metadata": {"name": obj["metadata"]["name"], "namespace": "n"}}


@pytest.fixture
def view(server, started):
    server.answers[CONFIGS] = page(config("large"), config("small", 1), config("huge", 5_000))
    view = started(READ)
    assert view.wait_until_synced(5)
    return view


def test_a_large_object_is_read_as_others_are(view, server):
    assert view.get(CONFIG, "n", "large") == kept(config("large"))
    assert view.get(CONFIG, "n", "small") == kept(config("small", 1))
    with pytest.raises(
        LookupFailed, match=r"ConfigMap n/huge: it has \d+ bytes, more than the 131072 bytes that the view keeps"
    ):
        view.get(CONFIG, "n", "huge")
    server.send(CONFIGS, event("DELETED", config("huge", 1, "11")))
    eventually(lambda: not view.unreadable_count)
    for where in ("n", None):
        listed = view.list(CONFIG, where)
        assert [*listed] == [kept(config("large")), kept(config("small", 1))]
        assert (len(listed), listed[0], [*listed[1:]]) == (2, kept(config("large")), [kept(config("small", 1))])
        assert view.list(CONFIG, where) is listed
    assert [*view.list_indexed(CONFIG, "n", BY_SIZE, str(COUNT))] == [kept(config("large"))]
    assert [*packed.places_of_objects(view.list(CONFIG, "n"))] == [("n", "large"), ("n", "small")]


def test_a_packed_object_takes_little_more_memory_than_its_text(view):
    text = len(json.dumps(kept(config("large")), separators=(",", ":")))
    assert text < view.memory.bytes < 1.2 * text + 2_000
    assert view.memory.bytes < sum(map(sys.getsizeof, config("large")["data"]))


def test_only_a_different_value_is_a_change(view, server):
    before = view.revision(CONFIG)
    server.send(CONFIGS, event("MODIFIED", config("large", version="11")), event("ADDED", config("last", 1, "12")))
    eventually(lambda: view.get(CONFIG, "n", "last"))
    assert view.revision(CONFIG)[1] == before[1] + 1  # the first change is not visible
    server.send(CONFIGS, event("MODIFIED", config("large", version="13", value=1)))
    eventually(lambda: type(view.get(CONFIG, "n", "large")["data"][0]["value"]) is int)


def test_reading_is_charged_by_the_size(view, server):
    server.send(CONFIGS, event("DELETED", config("huge", 1, "11")))
    eventually(lambda: not view.unreadable_count)
    deadline = Deadline()
    deadline.left = 10_000
    assert len([*packed.charge_for_objects(view.list(CONFIG, "n"), deadline)]) == 2
    assert 10_000 - deadline.left > COUNT * 20 / packed.WORK_BYTES


def test_the_view_before_a_request_has_the_old_object(view, server):
    server.send(CONFIGS, event("DELETED", config("huge", 1, "11")))
    eventually(lambda: not view.unreadable_count)
    old = config("large", 2)
    request = attributes_of_object(config("large"), operation=Operation.UPDATE, old_object=old)
    before = view_before_request(view, request)
    assert [*before.list(CONFIG, "n")] == [old, kept(config("small", 1))]
    assert [*before.list_indexed(CONFIG, "n", BY_SIZE, str(COUNT))] == []
    assert [*before.list_indexed(CONFIG, "n", BY_SIZE, "2")] == [old]
