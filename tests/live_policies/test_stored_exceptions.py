"""PolicyExceptions of a cluster: their status, the answer to kubectl apply, and announcements of their end."""

from __future__ import annotations

import datetime as dt
import gc
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from time import thread_time
from typing import Any

import pytest

from tests.literals import policies, request, validating
from tests.manifests.test_policy_exceptions import configuration, stored
from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.errors import LookupFailed
from webhook.live_policies import exceptions
from webhook.live_policies.exceptions import (
    LOOK_S,
    MOST_ANNOUNCED,
    EndingExceptions,
    StoredExceptions,
    exceptions_in_effect,
    refusal_of_exception,
)
from webhook.logs.structured import Log
from webhook.manifests.configuration import NO_FILE
from webhook.manifests.policy_exceptions import MOST_IN_NAMESPACE
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import ValidationAction

DAY = dt.date(2026, 12, 1)
ALLOWED = {"rules": ["*"], "maxDays": 30}


def loaded(*allowed: dict[str, Any]) -> PolicySet:
    made = policies(validating("false", name="pods"), validating("false", name="others"))
    return replace(made, configuration=configuration(*allowed))


def with_uid(value: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    metadata = value["metadata"]
    return {**value, "metadata": {**metadata, "uid": metadata["name"], "generation": generation}}


class ApiServer:
    def __init__(self) -> None:
        self.written: dict[str, JSON] = {}

    def apply(self, path: str, body: JSON, manager: str, read_s: float) -> JSON:
        assert manager == "claimgate"
        assert read_s > 0
        self.written[path] = body
        return body

    def conditions(self, name: str = "x") -> dict[str, tuple[str, str, str]]:
        path = f"/apis/claimgate.dev/v1alpha1/namespaces/research/policyexceptions/{name}/status"
        listed = self.written[path]["status"]["conditions"]
        return {each["type"]: (each["status"], each["reason"], each["message"]) for each in listed}


def statuses(*objects: dict[str, Any], policy_set: PolicySet, day: dt.date = DAY) -> ApiServer:
    server, view = ApiServer(), FilesCluster(objects, is_whole=True)
    one = StoredExceptions(lambda: policy_set, lambda: view, server)
    one._writer.spread = lambda: 0.0  # replicas wait a random time before they write a status
    one.write_missing_conditions(day)
    return server


def test_the_status_says_that_an_exception_has_an_effect() -> None:
    server = statuses(with_uid(stored(rules=["pods"])), policy_set=loaded(ALLOWED))
    told = server.conditions()
    assert told["InEffect"] == ("True", "InEffect", "objects of namespace research may break pods until 2026-12-31")
    assert told["Valid"] == ("True", "Valid", "its rules and kinds exist")


@pytest.mark.parametrize(
    ("spec", "allowed", "reason", "words"),
    [
        ({}, (), "NotAllowed", "claimgate.yaml allows no PolicyException for rule pods in namespace research: ask"),
        ({}, ({**ALLOWED, "maxDays": 2},), "TooLong", "claimgate.yaml allows 2 days from its creation for pods"),
        ({"expires": "2026-11-30"}, (ALLOWED,), "Expired", "it expired on 2026-11-30: delete it"),
        ({"owner": ""}, (ALLOWED,), "WrongShape", "see condition Valid"),
    ],
    ids=["no bounds", "too long", "expired", "a mistake"],
)
def test_the_status_says_why_an_exception_has_no_effect(
    spec: dict[str, Any], allowed: tuple[dict[str, Any], ...], reason: str, words: str
) -> None:
    told = statuses(with_uid(stored(**{"rules": ["pods"], **spec})), policy_set=loaded(*allowed)).conditions()
    status, given, message = told["InEffect"]
    assert (status, given) == ("False", reason)
    assert words in message


def test_a_rule_or_kind_that_does_not_exist_is_reported_and_the_other_rules_apply() -> None:
    one = with_uid(stored(rules=["pods", "podz"], kinds=["Job", "Pod"]))
    told = statuses(one, policy_set=loaded(ALLOWED)).conditions()
    assert told["InEffect"][0] == "True"
    status, _, message = told["Valid"]
    assert status == "False"
    assert "spec.rules[1]: unknown rule, group or policy `podz`: did you mean `pods`?" in message
    assert "spec.kinds[0]: `Job` is a kind of" in message


def test_of_too_many_exceptions_the_oldest_have_an_effect() -> None:
    many = [
        with_uid(stored("2026-11-02T00:00:00Z", f"e{n:02}", rules=["pods"], expires="2026-12-02")) for n in range(51)
    ]
    policy_set, view, server = loaded(ALLOWED), FilesCluster(many), ApiServer()
    one = StoredExceptions(lambda: policy_set, lambda: view, server)
    one._writer.spread = lambda: 0.0
    for _ in range(3):  # each run writes only some of the statuses
        one.write_missing_conditions(DAY)
    assert server.conditions(f"e{MOST_IN_NAMESPACE - 1}")["InEffect"][0] == "True"
    assert server.conditions(f"e{MOST_IN_NAMESPACE}")["InEffect"][1] == "TooMany"


def test_the_day_changes_the_status() -> None:
    policy_set, view, server = loaded(ALLOWED), FilesCluster([with_uid(stored(rules=["pods"]))]), ApiServer()
    one = StoredExceptions(lambda: policy_set, lambda: view, server)
    one._writer.spread = lambda: 0.0
    one.write_missing_conditions(dt.date(2026, 12, 31))
    assert server.conditions()["InEffect"][0] == "True"
    one.write_missing_conditions(dt.date(2027, 1, 1))
    assert server.conditions()["InEffect"][1] == "Expired"


UNKNOWN = [f"volcano-job/task-requred-{number}" for number in range(50)]


def test_checks_of_exceptions_use_a_small_share_of_a_processor() -> None:
    made = [with_uid(stored(name=f"e{number}", rules=UNKNOWN)) for number in range(60)]
    view, policy_set = FilesCluster(made), loaded(ALLOWED)
    views = [view]
    one = StoredExceptions(lambda: policy_set, lambda: views[-1], ApiServer())
    assert one.pause_s == LOOK_S
    one.write_missing_conditions(DAY)
    assert one.pause_s > LOOK_S
    views.append(FilesCluster([with_uid(stored(name="e0", rules=UNKNOWN), generation=2), *made[1:]]))
    one.write_missing_conditions(DAY)  # the other objects did not change, so they are not checked again
    assert one.pause_s == LOOK_S


def test_fifty_names_that_do_not_exist_take_little_time() -> None:
    policy_set, begun = loaded(ALLOWED), thread_time()
    told = statuses(with_uid(stored(rules=UNKNOWN)), policy_set=policy_set).conditions()
    assert thread_time() - begun < 0.3
    *_, message = told["Valid"]
    assert message.startswith("spec.rules[0]: unknown rule, group or policy `volcano-job/task-requred-0`: ")
    assert "spec.rules[49]: unknown rule" in message


def test_no_status_is_written_while_exceptions_are_not_known() -> None:
    class Away(FilesCluster):
        def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Any:
            raise LookupFailed("not synced yet")

    server, policy_set = ApiServer(), loaded(ALLOWED)
    StoredExceptions(lambda: policy_set, Away, server).write_missing_conditions(DAY)
    assert server.written == {}


def asked(new: dict[str, Any], old: dict[str, Any] | None = None) -> Any:
    return request(new, "UPDATE" if old else "CREATE", old=old, resource="policyexceptions")


def test_a_mistake_is_refused_at_apply() -> None:
    wrong = stored(rules=["podz"], kinds=["Job"])
    refused = refusal_of_exception(asked(wrong), loaded(ALLOWED), DAY)
    assert refused is not None
    assert refused.actions == (ValidationAction.DENY,)
    assert "did you mean `pods`?" in refused.message
    assert "spec.kinds[0]: `Job` is a kind of" in refused.message
    shape = refusal_of_exception(asked(stored(expires="soon")), loaded(ALLOWED), DAY)
    assert shape is not None
    assert "spec.expires" in shape.message


def test_an_expired_exception_is_refused_and_a_change_may_end_an_exception() -> None:
    ended = stored(rules=["pods"], expires="2026-11-30")
    refused = refusal_of_exception(asked(ended), loaded(ALLOWED), DAY)
    assert refused is not None
    assert refused.actions == (ValidationAction.DENY,)
    changed = refusal_of_exception(asked(ended, stored(rules=["pods"])), loaded(ALLOWED), DAY)
    assert changed is not None
    assert changed.actions == (ValidationAction.WARN,)


def test_an_exception_without_an_effect_is_stored_with_a_warning() -> None:
    """GitOps may apply an exception before the operator allows it."""
    told = refusal_of_exception(asked(stored(rules=["pods"])), loaded(), DAY)
    assert told is not None
    assert told.actions == (ValidationAction.WARN,)
    assert told.message.startswith("PolicyException research/x has no effect: claimgate.yaml allows no")


def test_a_valid_exception_and_a_label_of_a_broken_exception_are_accepted() -> None:
    assert refusal_of_exception(asked(stored(rules=["pods"])), loaded(ALLOWED), DAY) is None
    broken = stored(rules=["podz"])
    labelled = {**broken, "metadata": {**broken["metadata"], "labels": {"a": "b"}}}
    assert refusal_of_exception(asked(labelled, broken), loaded(ALLOWED), DAY) is None


def test_the_ends_of_exceptions_are_announced_once_a_day() -> None:
    objects = [
        stored(name="soon", rules=["pods"], expires="2026-12-10"),
        stored(name="late", rules=["pods"], expires="2026-12-31"),
        stored("2026-11-01T00:00:00Z", "ended", rules=["pods"], expires="2026-11-20"),
        stored("2026-11-01T00:00:00Z", "forgotten", rules=["pods"], expires="2026-11-10"),
        stored(name="beyond", rules=["pods"], expires="2028-12-10"),
    ]
    policy_set, view, out = loaded(ALLOWED), FilesCluster(objects), io.StringIO()
    one = EndingExceptions(
        lambda: NO_FILE,
        Log(stream=out),
        lambda day, last: exceptions_in_effect(policy_set, view, day, last),
    )
    one.announce(DAY)
    days_left = one.announce(DAY)
    lines = [json.loads(each) for each in out.getvalue().splitlines()]
    assert [(each["message"], each["place"], each["days_left"]) for each in lines] == [
        ("exception has expired", "PolicyException research/ended", -11),
        ("exception ends soon", "PolicyException research/soon", 9),
    ]
    assert days_left == {
        ("PolicyException", "ml", "2026-11-20"): -11,
        ("PolicyException", "ml", "2026-12-10"): 9,
        ("PolicyException", "ml", "2026-12-31"): 30,
    }


def test_announcements_of_thousands_of_exceptions_are_bounded() -> None:
    many = [stored(name=f"e{n}", rules=["pods"], owner=f"team-{n}", expires="2026-12-10") for n in range(3000)]
    policy_set, view, out = loaded(ALLOWED), FilesCluster(many), io.StringIO()
    stored_ones = exceptions_in_effect(policy_set, view, DAY, DAY)
    one = EndingExceptions(lambda: NO_FILE, Log(stream=out), lambda _, __: stored_ones)
    one.announce(DAY)
    days_left = one.announce(DAY)
    assert len(stored_ones) == 1000
    assert len(days_left) == MOST_ANNOUNCED
    assert len(out.getvalue().splitlines()) == 10


def of_namespace(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    made = with_uid(stored("2026-12-01T11:00:00Z", name, rules=["pods"], **spec))
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


def longest_call_of_c(work: Callable[[], object]) -> float:
    """Return the longest time, in seconds, in which no line of Python runs. Such a call blocks the event loop."""
    longest, last = 0.0, thread_time()

    def note(*_: object) -> None:
        nonlocal longest, last
        now = thread_time()
        longest, last = max(longest, now - last), thread_time()

    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return longest


def test_no_call_sorts_all_objects_that_users_store() -> None:
    """One of many objects changes each second. Sorting 40,000 objects would block the event loop for 0.1 s.

    The limit is a part of the time that this machine needs to sort all objects.
    """
    objects = [of_namespace(f"n-{n % 2000 if n % 2 else 0}", f"e-{n}") for n in range(20_000)]
    random.Random(1).shuffle(objects)

    class Stored(FilesCluster):
        def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Any:
            return objects

    took = min(longest_call_of_c(lambda: exceptions._list_first_ones(Stored([]))) for _ in range(2))
    listed = exceptions._list_first_ones(Stored([]))
    start = thread_time()
    sorted(objects, key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"]))
    assert took < 0.3 * (thread_time() - start)
    by_turn: dict[str, int] = Counter()
    wanted = []
    for each in sorted(objects, key=lambda one: one["metadata"]["name"]):
        by_turn[each["metadata"]["namespace"]] += 1
        wanted.append((by_turn[each["metadata"]["namespace"]], each))
    wanted.sort(key=lambda rank: rank[0])
    assert [each.value for each in listed] == [each for _, each in wanted[: exceptions.MOST_STATUSES]]


def test_a_namespace_with_very_many_exceptions_does_not_displace_the_exceptions_of_others() -> None:
    many = [with_uid(stored(name=f"e{n}", rules=["pods"], expires="2026-12-02")) for n in range(1200)]
    late = of_namespace("quiet", "late", expires="2026-12-14", owner="quiet")
    view, policy_set, out = FilesCluster([*many, late]), loaded(ALLOWED), io.StringIO()
    one = StoredExceptions(lambda: policy_set, lambda: view, ApiServer())
    one.write_missing_conditions(DAY)
    assert len(one._statuses) == 1000
    assert "quiet" in {each.namespace for each, _ in one._statuses[:2]}  # its status is one of the first to be written
    ending = EndingExceptions(
        lambda: NO_FILE,
        Log(stream=out),
        lambda day, last: exceptions_in_effect(policy_set, view, day, last),
    )
    days_left = ending.announce(DAY)
    assert "PolicyException quiet/late" in out.getvalue()
    assert ("PolicyException", "quiet", "2026-12-14") in days_left
