"""JSON of an API server is decoded object by object, with any content, and in chunks of any size."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.cluster import decoding
from webhook.cluster.decoding import DEEPEST, TOO_DEEP, ListDecoder, decode_json, is_too_deep
from webhook.cluster.store import ObjectStore

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def pieces(text, size):
    return iter([text[at : at + size] for at in range(0, len(text), size)])


@given(
    items=st.lists(st.dictionaries(st.text(), VALUES, max_size=3), max_size=4),
    size=st.integers(1, 40),
    indent=st.sampled_from([None, 1]),
    is_last=st.booleans(),
)
def test_a_list_comes_item_by_item(items, size, indent, is_last):
    fields = {"metadata": {"resourceVersion": "1"}, "number": 12}
    body = {**fields, "items": items} if is_last else {"items": items, **fields}
    listed = ListDecoder(pieces(json.dumps(body, ensure_ascii=False, indent=indent).encode("utf-8", "replace"), size))
    assert list(listed) == json.loads(json.dumps(items, ensure_ascii=False).encode("utf-8", "replace"))
    assert listed.fields == fields


def test_an_item_at_the_end_of_a_chunk_is_decoded_once():
    """An API server may send each object as a chunk. Only a number may continue in the next chunk."""
    decoded = []

    def read_item(text, at):
        decoded.append(text[at:])
        return decoding.decode_value_at(text, at)

    items = [{"name": "a"}, [1], "text"]
    parts = [f"{',' * bool(at)}{json.dumps(item)}".encode() for at, item in enumerate(items)]
    assert list(ListDecoder(iter([b'{"items":[', *parts, b"]}"]), read_item)) == items
    assert len(decoded) == len(items)
    assert list(ListDecoder(iter([b'{"items":[1', b"2]}"]))) == [12]


def test_a_list_without_items_has_only_fields():
    listed = ListDecoder(iter([b'{"items":null,"metadata":{}}']))
    assert list(listed) == []
    assert listed.fields == {"items": None, "metadata": {}}


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b'{"items":[{"a":', b'{"items":[{}', b'{"items" 1}', b'{"items":[oops]}']
)
def test_a_response_that_is_not_a_list_is_an_error(text):
    with pytest.raises(ValueError, match=r"expected|cut off"):
        list(ListDecoder(iter([text])))


def test_an_endless_object_is_read_only_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(decoding, "LARGEST", 1000)
    taken = []

    def chunks():
        yield b'{"items":[{"a":"'
        while True:
            taken.append(1)
            yield b"x" * 100

    with pytest.raises(ValueError, match="larger than 1000 bytes"):
        list(ListDecoder(chunks()))
    assert len(taken) < 50


def nested(depth):
    return '{"metadata":{"name":"a]}"},"spec":' + '{"x":[' * depth + '"}"' + "]}" * depth + ',"after":1}'


def test_an_object_that_is_too_deep_for_python_is_cut():
    text = nested(20_000)  # Python 3.13 reads ten thousand levels
    with pytest.raises(RecursionError):
        json.loads(text)
    found = decode_json(text.encode())
    assert (found["metadata"], found["after"]) == ({"name": "a]}"}, 1)
    depth, value = 0, found["spec"]
    while value is not TOO_DEEP:
        depth, value = depth + 1, value[0] if isinstance(value, list) else value["x"]
    assert depth == DEEPEST - 1
    assert is_too_deep(found)
    whole = f'{{"items":[{text},{{"b":1}}],"metadata":{{}}}}'.encode()
    for size in (100, 5000, len(whole)):
        assert list(ListDecoder(pieces(whole, size))) == [found, {"b": 1}]


@pytest.mark.parametrize(("depth", "is_deep"), [(DEEPEST, False), (DEEPEST + 1, True), (900, True)])
def test_it_is_known_whether_a_value_is_deeper_than_others_may_walk(depth, is_deep):
    assert is_too_deep(json.loads("[" * depth + "]" * depth)) is is_deep


def test_numbers_and_bytes_that_python_refuses_are_read():
    found = decode_json(b'{"a":' + b"9" * 5000 + b',"b":"\xff","c":-12}')
    assert (found["a"], found["b"], found["c"]) == (float("inf"), "\ufffd", -12)
    with pytest.raises(ValueError, match="not JSON"):
        decode_json(b"{not")


def replace(store, objects):
    store.begin_list()
    for place, obj in objects.items():
        store.add_listed(place, obj)
    store.end_list()


def test_a_list_is_the_same_until_something_changes():
    store = ObjectStore()
    replace(store, {("b", "x"): {"n": 1}, ("a", "y"): {"n": 2}})
    listed = store.list(None)
    assert listed == ({"n": 2}, {"n": 1})
    store.put(("b", "x"), {"n": 1})
    store.drop(("c", "z"))
    assert store.list(None) is listed
    assert store.list("b") == ({"n": 1},)
    assert store.list("c") == ()
    store.put(("b", "x"), {"n": 3})
    assert store.list("b") == ({"n": 3},)
    assert store.list(None)[0] is listed[0]
    assert store.reuse_equal_object(("a", "y"), {"n": 2}) is listed[0]


@pytest.mark.parametrize(("before", "after"), [(1, True), (True, 1), (1, 1.0), (0.0, -0.0), ([0], [False])])
def test_a_value_that_gets_another_type_is_a_change(before, after):
    store = ObjectStore()
    replace(store, {("a", "x"): {"spec": {"strict": before}}})
    listed, changes = store.list(None), store.changes
    store.put(("a", "x"), {"spec": {"strict": after}})
    assert store.changes == changes + 1
    assert repr(store.list(None)) == repr(({"spec": {"strict": after}},)) != repr(listed)


FORKING = """
import os, threading
from webhook.cluster.store import ObjectStore

store, stopped = ObjectStore(), threading.Event()
store.begin_list()
for number in range(500):
    store.add_listed(("n", str(number)), {"n": number})
store.end_list()

def write():
    number = 0
    while not stopped.is_set():
        number += 1
        store.put(("n", str(number % 700)), {"n": number})
        store.drop(("n", str((number + 350) % 700)))

writer = threading.Thread(target=write)
writer.start()
codes = []
for _ in range(20):
    child = os.fork()
    if not child:
        os._exit(0 if len(store.list("n")) == len(store.list(None)) > 0 else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stopped.set()
writer.join()
raise SystemExit(any(codes))
"""


def test_a_forked_child_can_read_during_a_write():
    """A separate process, because a process that measures coverage has locks that stay locked after a fork."""
    done = subprocess.run([sys.executable, "-c", FORKING], timeout=120, check=False)
    assert done.returncode == 0


def functions_entered(work):
    """Count the functions that Python enters. Another thread can run only at a call."""
    count = 0

    def note(_frame, what, _arg):
        nonlocal count
        count += what == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


LONG = {
    "numbers": ["1e308"] * 1_000,
    "objects": ['{"a":""}'] * 1_000,
    "objects without fields": ["{}"] * 1_000,
    "integers": ["1"] * 1_000,
}


@pytest.mark.parametrize("items", LONG.values(), ids=LONG.keys())
def test_objects_are_not_decoded_or_compared_in_one_long_c_call(items):
    text = f'{{"spec": [{",".join(items)}]}}'
    store = ObjectStore()
    store.begin_list()
    store.add_listed(("n", "a"), decoding.decode_value_at(text, 0)[0])
    store.end_list()
    same = decoding.decode_value_at(text, 0)[0]
    assert functions_entered(lambda: decoding.decode_value_at(text, 0)) >= len(items)
    assert functions_entered(lambda: store.reuse_equal_object(("n", "a"), same)) >= len(items)
    assert store.reuse_equal_object(("n", "a"), same) is store.get(("n", "a"))
