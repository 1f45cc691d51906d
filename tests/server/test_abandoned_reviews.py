"""A review is stopped when its client closes the connection."""

from __future__ import annotations

import json
from pathlib import Path

from tests.server.asgi import Running, review_of
from tests.server.serving import Pki, listening
from tests.server.test_slow_clients import HEAD, answer, connect, until
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.deadline import Deadline
from webhook.errors import InlineBudgetSpent
from webhook.rules.decisions import Verdict
from webhook.server.scheduler import InlineTimeSlice
from webhook.settings.serving import ServerSettings


def endless_in_a_worker(attributes: Attributes, _phase: Phase, deadline: Deadline) -> Verdict:
    """Move every review to a worker. There, the review with the uid `endless` runs until its deadline."""
    if isinstance(deadline, InlineTimeSlice):
        raise InlineBudgetSpent
    while attributes.uid == "endless":
        deadline.check_clock()
    return Verdict(allowed=True)


def sent(uid: str) -> bytes:
    body = json.dumps(review_of(uid)).encode()
    return HEAD.replace(b"/validate", b"/validate?timeout=30s") + b"content-length: %d\r\n\r\n" % len(body) + body


def test_the_only_worker_is_free_again_when_the_client_of_its_review_is_gone(tmp_path: Path) -> None:
    pki, running = Pki(tmp_path), Running(endless_in_a_worker, settings=ServerSettings(workers=1))
    with listening(running, pki.files) as server:
        gone = connect(server, pki)
        gone.sendall(sent("endless"))
        until(lambda: running.counters.lanes["worker",] == 1)
        gone.close()
        until(lambda: running.counters.lanes["abandoned",] == 1)
        waiting = connect(server, pki)
        waiting.sendall(sent("next"))
        assert b'"uid":"next"' in answer(waiting)
        waiting.close()
    assert [line["uid"] for line in running.lines() if line["message"] == "review"] == ["next"]
    assert not [line for line in running.lines() if line["message"] == "internal fault"]


def test_the_end_of_a_connection_cancels_all_its_reviews(tmp_path: Path) -> None:
    pki, running = Pki(tmp_path), Running(endless_in_a_worker, settings=ServerSettings(workers=1))
    with listening(running, pki.files) as server:
        gone = connect(server, pki)
        gone.sendall(sent("endless") * 2)
        until(lambda: running.counters.lanes["worker",] == 1)
        gone.close()
        until(lambda: running.counters.lanes["abandoned",] == 1)
        until(lambda: not server.listener.server_state.tasks)
    assert running.counters.lanes["worker",] == 1
