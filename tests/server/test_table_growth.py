"""No table of the process grows with the number of different names in reviews, except bounded tables.

The server answers reviews of objects with each list that a user can lengthen. Then a walk over everything that modules
and frames refer to counts the entries of each table, also of unknown tables.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests import census
from tests.bench import traffic
from tests.bench.bounds.calls import Connection, Prepared, uid
from tests.bench.bounds.fresh_reviews import FreshReviews, lists
from tests.cluster.server import eventually
from tests.literals import shipped_policies
from tests.server.asgi import Running
from tests.server.serving import Pki, listening
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.deadline import Deadline
from webhook.rules.decisions import Verdict
from webhook.server.memory_bounds import USER_CACHE_BYTES
from webhook.server.usage import MAX_ENTRIES
from webhook.text.caches import ENTRY

REVIEWS, EVERY, CALLS_OF_A_CONNECTION = 1_000, 4, 50
TENANT_MAPS = 12
MOST_ENTRIES = {
    "webhook.server.usage.BoundedMap._entries": TENANT_MAPS * MAX_ENTRIES,
    "webhook.text.caches.TwoGenerationCache.newer": USER_CACHE_BYTES // ENTRY,
    "webhook.text.caches.TwoGenerationCache._older": USER_CACHE_BYTES // ENTRY,
    "webhook.policy.policy_set.PolicySet._candidate_index": 1_000,
    "webhook.facts.subject.FactRegistry._of_kinds": 1_000,
    "re._cache": 512,
}
"""The tables that grow with what users send, and how many entries all tables of one name may gain. Other tests also use
some of them. A row needs a bound in docs/caches.md or docs/sizing.md."""
FEW = 20
"""The allowed increase of entries or objects, because of current timers, tasks and frames"""
ROUNDS = 3
"""A cycle that requests leave is there in each round. Threads of earlier tests in this process leave cycles in one."""

Answer = Callable[[Attributes, Phase, Deadline], Verdict]


def shipped() -> Answer:
    policies, cluster = shipped_policies(), ClusterWithAssumedNamespaces(FilesCluster(traffic.context()))
    policies.compile_ahead_of_requests()
    return lambda attributes, phase, deadline: answer_request(
        attributes, policies, cluster, phase=phase, deadline=deadline
    )


def thirds(answer: Answer, folder: Path, third: int = REVIEWS) -> list[census.Census]:
    """Return counts of all tables: before the reviews, and after each third of them. The first third also creates
    values that stay.
    """
    running, pki, bodies = Running(answer), Pki(folder), FreshReviews(lists(), EVERY)
    taken = [census.take(census.roots(), MOST_ENTRIES)]
    with listening(running, pki.files) as server:
        to = Connection(server.port, pki.trust(), 30)
        for number in range(3 * third):
            path = ("/validate", "/mutate")[number // len(bodies) % 2]
            assert to.ask(Prepared(path, bodies.body(number), "10s").with_uid(uid(number))).code in {200, 400}
            if number % CALLS_OF_A_CONNECTION == 0:
                to.ask(f"GET /{number} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                to.close()
            running.stream.seek(0)
            running.stream.truncate()
            if (number + 1) % third == 0:
                to.close()
                eventually(lambda: not server.listener.connections)
                gc.collect()
                taken.append(census.take(census.roots(), MOST_ENTRIES))
    return taken


def grown_tables(taken: list[census.Census]) -> set[str]:
    """Return the tables that grew in both the second and the last third. A table that is created once grows in only one
    third.
    """
    grown = (after.growth(before).items() for before, after in pairwise(taken[1:]))
    second, last = ({name for name, more in each if more > FEW} for each in grown)
    return (second & last) - set(MOST_ENTRIES)


@pytest.mark.slow
def test_only_bounded_tables_grow(tmp_path: Path) -> None:
    taken = thirds(shipped(), tmp_path)
    assert grown_tables(taken) == set(), "bound the table, or add it to MOST_ENTRIES with its bound"
    counts = [sum(each.objects.values()) for each in taken[1:]]
    assert min(after - before for before, after in pairwise(counts)) <= FEW, taken[-1].objects - taken[-2].objects
    for name, most in MOST_ENTRIES.items():
        assert taken[-1].entries[name] - taken[0].entries[name] <= most, name


@pytest.mark.slow
def test_a_table_that_grows_is_found(tmp_path: Path) -> None:
    kept: list[str] = []

    def answer(attributes: Attributes, _phase: Phase, _deadline: Deadline) -> Verdict:
        kept.append(attributes.name)
        return Verdict(allowed=True)

    grown = grown_tables(thirds(answer, tmp_path, 100))
    assert {name.rpartition(".")[2] for name in grown} == {"answer<kept>"}


REQUESTS = {
    "reviews": b"",
    "reviews with a readable head": b'"object": {"a": tru',
    "bodies that are not JSON": b"no review",
    "bodies that are not a review": b"{}",
}


def test_no_request_leaves_anything_to_the_garbage_collector(tmp_path: Path) -> None:
    """A collection starts only after 150,000 new objects. Until then, an error in a reference cycle would keep a
    connection of 58 KB.
    """
    running, pki, bodies = Running(lambda _attributes, _phase, _deadline: Verdict(allowed=True)), Pki(tmp_path), []
    reviewed = FreshReviews(lists(), EVERY).body(1)
    for name, body in REQUESTS.items():
        cut = reviewed.partition(b'"object"')[0] + body if "head" in name else body or reviewed
        bodies.append(Prepared("/validate", cut, "10s").with_uid(uid(1)))
    pages = (
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in ("/validate", "/unknown", "/metrics")
    )
    malformed = b"GET / HTTP/1.1\r\n\r\n"
    asked = [*bodies, *pages, malformed]
    with listening(running, pki.files) as server:
        trust = pki.trust()

        def ask(times: int) -> None:
            for request in asked * times:
                to = Connection(server.port, trust, 30)
                to.ask(request)
                to.close()
            eventually(lambda: not server.listener.connections)

        ask(2)
        left = [types_left_to_the_garbage_collector(lambda: ask(10))]
        while left[-1].total() > FEW and len(left) < ROUNDS:
            left.append(types_left_to_the_garbage_collector(lambda: ask(10)))
    assert left[-1].total() <= FEW, f"requests leave cycles of references, in each of {ROUNDS} rounds: {left[-1]}"


def types_left_to_the_garbage_collector(act: Callable[[], None]) -> Counter[str]:
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        act()
        gc.collect()
        return Counter(type(each).__qualname__ for each in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
