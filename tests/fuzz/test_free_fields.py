"""Content of a field that no policy reads does not change the verdict, with any JSON that an API server stores."""

import json
from pathlib import Path

import pytest

from tests.fuzz.differential.answers import load
from tests.fuzz.doors.cases import groups
from tests.fuzz.doors.comparison import Served
from tests.fuzz.free_fields import DENIED, compare, recorded
from tests.literals import TABLE
from tests.server.asgi import Running
from webhook.admission.decode import review_of_attributes
from webhook.admission.fixtures import attributes_of_object
from webhook.input import shipped

STORED = (
    b'{"f:\xff":{}}',
    b"[" * 300 + b"]" * 300,
    b'{"a":' * 9_900 + b"1" + b"}" * 9_900,
    rb'{"\ud800":1e999}',
)
"""Texts of a user of at most three kilobytes, and the deepest JSON that an API server reads."""


def test_any_json_in_a_free_field_changes_no_verdict():
    outcome = compare(recorded(3), 47)
    assert outcome.differences[:1] == []
    assert outcome.faults[:1] == []
    assert outcome.answers["denied"] > 10


@pytest.mark.parametrize(("version", "kind", "spec"), DENIED, ids=[kind for _, kind, _ in DENIED])
def test_no_review_of_a_denied_object_is_an_http_error(version, kind, spec):
    """A server evaluates the reviews on the event loop and in a worker. Content of `managedFields` hides no problem."""
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "managedFields": "here"}, "spec": spec}
    sent = json.dumps(review_of_attributes(attributes_of_object(obj, TABLE.row))).encode()
    served = Served()
    served.hold(load((Path(shipped.policies_folder()),)), ())
    running = Running(served.review)
    plain = running.post("/validate", sent.replace(b'"here"', b"[]")).json()
    assert not plain["response"]["allowed"]
    for stored in (*STORED, b"[" * 20_000 + b"]" * 20_000):
        answer = running.post("/validate", sent.replace(b'"here"', b'[{"fieldsV1":{"f:x":%b}}]' % stored))
        assert (answer.status_code, answer.json()) == (200, plain), stored[:40]
    assert running.counters.lanes["worker",] > 0


@pytest.mark.nightly
def test_any_json_in_a_free_field_changes_no_verdict_of_thousands(tmp_path):
    outcome = compare(groups(3_000, 48, tmp_path), 48)
    assert outcome.differences[:1] == []
    assert outcome.faults[:1] == []
