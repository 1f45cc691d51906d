"""The benchmark of bounds measures correctly: bodies are valid, policies compile and report, and wrong answers are
counted.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import Counter

import pytest

from tests.bench.bounds import bodies, generations, memory, own_policies, slow_expressions
from tests.bench.bounds.__main__ import TOGETHER, planned
from tests.bench.bounds.attackers import judge
from tests.bench.bounds.attacks import GROUPS, Attack
from tests.bench.bounds.calls import UID, Answer, Connection, Prepared, uid
from tests.bench.bounds.pods import DEVICE_LISTS, POD_LISTS
from tests.bench.bounds.report import Report, percentile
from tests.bench.bounds.reviews import count_for, review
from tests.bench.bounds.rows import victims_missed
from tests.bench.bounds.victims import Seen, mixed_generations, questions
from tests.bench.bounds.waiting import Stopwatch, Took
from tests.bench.bounds.workloads import WORKLOAD_LISTS
from webhook.admission import review as core
from webhook.admission.decode import decode_review_bytes
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.errors import CallError
from webhook.policy.load import Options, load_policy_set
from webhook.workloads import table

LISTS = {**POD_LISTS, **DEVICE_LISTS, **WORKLOAD_LISTS}
SENT = uid(7)


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return load_policy_set([own_policies.write(tmp_path_factory.mktemp("own"))], Options(table=table.load_table()))


def reviewed(body, policies):
    return core.answer_request(decode_review_bytes(body), policies, FilesCluster(), phase=Phase.VALIDATE)


def answer(code=200, **response):
    sent = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return Answer(code, json.dumps(sent).encode(), 0.1)


@pytest.mark.parametrize("maker", LISTS.values(), ids=LISTS)
def test_every_attack_list_is_a_review_that_grows_with_its_size(maker):
    assert decode_review_bytes(review(maker(3))).namespace == "attackers"
    assert len(review(maker(40))) > len(review(maker(20)))
    assert len(review(maker(count_for(maker, 100_000)))) == pytest.approx(100_000, rel=0.3)


@pytest.mark.parametrize("one", slow_expressions.OWN, ids=lambda one: one.name)
def test_a_slow_policy_is_false_where_it_ends(own, one):
    """The policies `ranges` and `texts of numbers` reach the cost limit for any Pod, so they end with an error."""
    verdict = reviewed(review(one.pod(10)), own)
    spoke = [decision for decision in verdict.decisions if decision.policy == one.label]
    assert [decision.evaluation for decision in spoke] == [
        "error" if one.name in {"ranges", "texts of numbers"} else "deny"
    ]


def test_slow_policies_do_not_match_other_pods(own):
    assert not reviewed(questions()[0].body, own).decisions


def test_bodies_that_are_reviews_are_read():
    for body in (bodies.nested(10_000), bodies.nested_maps(10_000), bodies.quotes(1000), bodies.twice(2000)):
        assert decode_review_bytes(body).kind.kind == "Pod"


@pytest.mark.slow
@pytest.mark.parametrize("make", bodies.NOT_REVIEWS.values(), ids=bodies.NOT_REVIEWS)
def test_invalid_bodies_are_refused(make):
    with pytest.raises(CallError):
        decode_review_bytes(make())


def test_every_attack_is_in_the_table():
    counts = Counter(attack.name for _, row in planned("", each=False) for attack in row)
    assert counts == Counter(attack.name for make in GROUPS.values() for attack in make())
    assert set(TOGETHER) == set(GROUPS)


def test_each_request_has_its_own_uid():
    prepared = Prepared("/validate", b'{"uid":"' + UID + b'"}', "1s")
    assert prepared.with_uid(SENT).endswith(b'{"uid":"00000007-0000-4000-8000-000000000000"}')


@pytest.mark.parametrize(
    ("attack", "given", "kind", "fault"),
    [
        ({}, answer(uid=SENT.decode(), allowed=True), "allowed", ""),
        ({}, answer(uid=UID.decode(), allowed=True), "200", "HTTP 200 is no AdmissionReview"),
        ({}, answer(500, uid=SENT.decode(), allowed=True), "500", "HTTP 500 is no AdmissionReview"),
        (
            {"may_allow": False},
            answer(uid=SENT.decode(), allowed=True),
            "allowed",
            "allowed by a policy that fails closed",
        ),
        ({"is_review": False}, Answer(400, b'{"kind": "Status", "message": "no"}', 0.1), "400", ""),
        ({"is_review": False}, Answer(200, b"{}", 0.1), "200", "HTTP 200 is no refusal with a Status"),
        (
            {"policy": "slow", "is_ignored": True},
            answer(uid=SENT.decode(), allowed=False, status={"message": "interrupted (policy slow)"}),
            "denied",
            "denied by the error of a policy that is ignored",
        ),
        (
            {"policy": "slow", "is_ignored": True},
            answer(uid=SENT.decode(), allowed=False, status={"message": "interrupted (policy gpu-limits)"}),
            "denied",
            "",
        ),
    ],
)
def test_the_answer_to_an_attack_is_rated(attack, given, kind, fault):
    assert judge(Attack("row", bytes, **attack), SENT, given) == (kind, fault)


def test_generations_load_and_must_agree(tmp_path):
    written = generations.Generations(tmp_path / "generations")
    written.write()
    loaded = load_policy_set([written.policies], Options(table=table.load_table()))
    assert [policy.name for policy in loaded.policies] == ["generation-one", "generation-params", "generation-two"]
    messages = {decision.message for decision in reviewed(generations.question().body, loaded).decisions}
    assert "policy-generation 2" in messages
    assert mixed_generations("policy-generation 2, policy-generation 2, params-generation 1") == ""
    assert mixed_generations("policy-generation 2, policy-generation 3") == "policy of generations ['2', '3']"


def test_a_row_that_misses_a_percentile_is_measured_again_for_longer(capsys):
    slow, quick = [Took(0.06)] * 100, [Took(0.01)] * 100
    for name, times, measured, failed in (
        ("passes", {1: quick}, [1], False),
        ("passes when it is longer", {1: slow, 4: quick}, [1, 4], False),
        ("fails twice", {1: slow, 4: slow}, [1, 4], True),
    ):
        report, seconds = Report(), []

        def measure(row_s, times=times, seconds=seconds):
            seconds.append(row_s)
            return "", victims_missed(Seen(times=times[row_s]))

        report.measured_row(name, 1, measure)
        assert (seconds, bool(report.failures), report.targets) == (measured, failed, 1), name
    lost = Report()
    lost.measured_row("lost", 1, lambda row_s: ("", victims_missed(Seen(times=slow, lost=Counter(late=1)))))
    assert len(lost.failures) == 2
    assert capsys.readouterr().out.count("AGAIN") == 2


def test_missed_targets_are_reported():
    slow = Seen(times=[Took(0.06, client_s=0.001)] * 100, health=[Took(0.3)], fresh=[Took(0.1)], lost=Counter(late=1))
    assert victims_missed(slow) == [
        "victims' p99 59 ms, 59 ms without waiting for a processor, the loop ran 0 ms",
        "/healthz 300 ms, 300 ms without waiting for a processor, the loop ran 0 ms",
        "lost 1 late",
    ]
    assert victims_missed(Seen(times=[Took(0.06, client_s=0.02)] * 100, health=[Took(0.1)])) == []
    assert percentile([3, 1, 2], 0.5) == 2


def test_waiting_for_a_processor_is_distinguished_from_a_fault(capsys):
    report = Report()
    report.section("victims")
    report.row("busy", "", victims_missed(Seen(times=[Took(0.08, server_s=0.05)])))
    report.row("slow", "", victims_missed(Seen(times=[Took(0.08, server_s=0.01)])))
    assert report.summary() == 1
    told = capsys.readouterr().out.partition("== summary\n")[2].splitlines()
    assert told[0] == "2 rows, 2 targets missed, 1 of them by waiting for a processor"
    assert [line.split()[:3] for line in told[1:3]] == [["FAIL", "victims", "slow"], ["BUSY", "victims", "busy"]]


def test_memory_is_measured_again_if_a_process_started_meanwhile(monkeypatch):
    pid = os.getpid()
    families = iter([[pid], [pid, pid], [pid, pid], [pid], [pid], [pid]])
    monkeypatch.setattr(memory, "family", lambda _pid: next(families))
    sample = memory.look(pid)
    assert (sample.processes, sample.rss) == (1, sample.main_rss)
    assert next(families, None) is None


def test_a_later_request_waited_less():
    assert Took(0.4, client_s=0.1, server_s=0.2).less(0.2) == Took(0.2, client_s=0.05, server_s=0.1)


def test_a_stopwatch_counts_the_wait_of_its_own_thread():
    with Stopwatch(os.getpid()).timing() as took:
        time.sleep(0.01)
    assert took.seconds >= 0.01
    assert 0 <= took.client_s <= took.seconds


def test_an_early_answer_is_read_before_the_request_is_complete():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        read_no_more = threading.Event()
        serving = threading.Thread(target=_answer_early, args=(listening, read_no_more))
        serving.start()
        to = Connection(listening.getsockname()[1], None, 10)
        codes = [to.ask(b"POST / HTTP/1.1\r\n\r\n" + bytes(30_000_000)).code for _ in range(2)]
        read_no_more.set()
        serving.join()
        to.close()
    assert codes == [408, 408]


def test_a_closed_idle_connection_is_opened_again():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        to = Connection(listening.getsockname()[1], None, 10)
        ended = threading.Semaphore(0)
        serving = threading.Thread(target=_answer_two_and_end, args=(listening, ended))
        serving.start()
        codes = []
        for _ in range(2):
            codes.append(to.ask(b"GET / HTTP/1.1\r\n\r\n").code)
            to.close_if_ended()  # the connection stays open for the next request
            codes.append(to.ask(b"GET / HTTP/1.1\r\n\r\n").code)
            ended.acquire()
            to.close_if_ended()
        serving.join()
    assert codes == [200, 201, 200, 201]


def _answer_two_and_end(listening, ended):
    for _ in range(2):
        client, _ = listening.accept()
        with client:
            for code in (b"200", b"201"):
                client.recv(1000)
                client.sendall(b"HTTP/1.1 %s OK\r\ncontent-length: 2\r\n\r\nok" % code)
        ended.release()


def _answer_early(listening, end):
    held = []
    for _ in range(2):
        client, _ = listening.accept()
        held.append(client)
        client.recv(1000)
        client.sendall(b"HTTP/1.1 408 RequestTimeout\r\ncontent-length: 4\r\n\r\nlate")
    end.wait(10)
    for client in held:
        client.close()
