"""PolicyExceptions: what owners may write, and what the bounds of the operator allow."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from tests.rows import all_rows
from webhook.manifests.configuration import FileConfiguration
from webhook.manifests.models import ShapeError
from webhook.manifests.policy_exceptions import (
    MOST_BYTES,
    MOST_IN_NAMESPACE,
    effect_of_exception,
    is_description_of_object,
    oldest_of_namespace,
    parse_policy_exception,
)
from webhook.yamltext.unread import Unread

DAY = dt.date(2026, 12, 1)
SPEC = {"rules": ["pods/a"], "owner": "ml", "reason": "r", "expires": "2026-12-31"}


def stored(created: str | None = "2026-12-01T10:00:00Z", name: str = "x", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "research", **({"creationTimestamp": created} if created else {})}
    return {
        "apiVersion": "claimgate.dev/v1alpha1",
        "kind": "PolicyException",
        "metadata": metadata,
        "spec": {**SPEC, **spec},
    }


def configuration(*allowed: dict[str, Any]) -> FileConfiguration:
    return FileConfiguration.model_validate_json(json.dumps({"policyExceptions": allowed}))


def effect(value: dict[str, Any], *allowed: dict[str, Any], day: dt.date = DAY) -> str:
    return effect_of_exception(parse_policy_exception(value), configuration(*allowed), day).reason


@all_rows(
    ("change", "mistake"),
    [
        ({"expires": "soon"}, "spec.expires"),
        ({"expires": None}, "spec.expires: is required"),
        ({"rules": []}, "spec.rules: expected one entry or more"),
        ({"owner": ""}, "spec.owner: expected some text"),
        ({"namespaces": ["other"]}, "spec.namespaces: unknown field: did you mean `names`?"),
        ({"kind": ["Pod"]}, "spec.kind: unknown field: did you mean `kinds`?"),
        ({"names": "a"}, "spec.names: expected a list, found `a`"),
        ({"names": ["a" * 254]}, "spec.names.0: string should have at most 253 characters"),
        ({"rules": ["a"] * 51}, "spec.rules: tuple should have at most 50 items"),
        ({"objectSelector": {"matchLabels": {"a b": "c"}}}, "spec.objectSelector.matchLabels: Invalid value"),
        (
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is", "values": []}]}},
            "spec.objectSelector.matchExpressions.0.operator: Invalid value",
        ),
        ({"names": ["é" * 200] * 50}, "spec: the object has"),
        (
            {"names": Unread("[]", "it is nested too deeply")},
            "spec: a part of the object was not read: it is nested too deeply",
        ),
    ],
)
def test_mistakes_have_their_place(change: dict[str, Any], mistake: str) -> None:
    with pytest.raises(ShapeError) as raised:
        parse_policy_exception(stored(**change))
    told = [f"{'.'.join(map(str, path))}: {text}" for path, text in raised.value.problems]
    assert any(each.startswith(mistake) for each in told), told


def test_another_version_and_an_object_that_is_too_large_are_not_exceptions() -> None:
    with pytest.raises(ShapeError, match=r"unknown version `claimgate\.dev/v2`"):
        parse_policy_exception({**stored(), "apiVersion": "claimgate.dev/v2"})
    with pytest.raises(ShapeError, match=f"the object has 99999 bytes, and at most {MOST_BYTES} are allowed"):
        parse_policy_exception({**stored(), "claimgate.dev/omitted-bytes": 99_999})


@all_rows(
    ("allowed", "reason"),
    [
        ([], "NotAllowed"),
        ([{"rules": ["pods/a"], "maxDays": 30}], "InEffect"),
        ([{"rules": ["pods"], "maxDays": 30}], "InEffect"),
        ([{"rules": ["*"], "maxDays": 30}], "InEffect"),
        ([{"rules": ["pods/b"], "maxDays": 30}], "NotAllowed"),
        ([{"rules": ["pods/a"], "maxDays": 29}], "TooLong"),
        ([{"rules": ["pods/a"], "maxDays": 29}, {"rules": ["pods"], "maxDays": 30}], "InEffect"),
        ([{"rules": ["pods/a"], "maxDays": 30, "namespaces": ["research"]}], "InEffect"),
        ([{"rules": ["pods/a"], "maxDays": 30, "namespaces": ["res*"]}], "InEffect"),
        ([{"rules": ["pods/a"], "maxDays": 30, "namespaces": ["other"]}], "NotAllowed"),
    ],
)
def test_the_operator_bounds_rules_namespaces_and_days(allowed: list[dict[str, Any]], reason: str) -> None:
    assert effect(stored(), *allowed) == reason


def test_each_rule_of_an_exception_must_be_allowed() -> None:
    allowed = {"rules": ["pods/a"], "maxDays": 30}
    assert effect(stored(rules=["pods/a", "pods/b"]), allowed) == "NotAllowed"
    assert effect(stored(rules=["pods"]), allowed) == "NotAllowed"  # a group is wider than one of its rules
    shorter = {"rules": ["pods/b"], "maxDays": 5}
    assert effect(stored(rules=["pods/a", "pods/b"]), allowed, shorter) == "TooLong"


def test_the_days_of_an_exception_count_from_its_creation() -> None:
    allowed = {"rules": ["*"], "maxDays": 30}
    late = dt.date(2026, 12, 20)
    assert effect(stored("2026-12-02T00:00:00Z", expires="2027-01-01"), allowed, day=late) == "InEffect"
    assert effect(stored("2026-12-02T00:00:00Z", expires="2027-01-02"), allowed, day=late) == "TooLong"
    assert effect(stored(None, expires="2027-01-19"), allowed, day=late) == "InEffect"  # of a file
    assert effect(stored("never", expires="2027-01-20"), allowed, day=late) == "TooLong"


def test_an_exception_has_an_effect_until_the_end_of_its_last_day() -> None:
    allowed = {"rules": ["*"], "maxDays": 30}
    assert effect(stored(), allowed, day=dt.date(2026, 12, 31)) == "InEffect"
    assert effect(stored(), allowed, day=dt.date(2027, 1, 1)) == "Expired"


@all_rows(
    ("spec", "kind", "name", "labels", "is_about"),
    [
        ({}, ("", "Pod"), "a", {}, True),
        ({"kinds": ["Pod"]}, ("", "Pod"), "a", {}, True),
        ({"kinds": ["Job.batch"]}, ("batch", "Job"), "a", {}, True),
        ({"kinds": ["Job.batch"]}, ("batch.volcano.sh", "Job"), "a", {}, False),
        ({"kinds": ["Service.core"]}, ("", "Service"), "a", {}, True),
        ({"names": ["train-*"]}, ("", "Pod"), "train-1", {}, True),
        ({"names": ["train-*"]}, ("", "Pod"), "other", {}, False),
        ({"names": ["*-1"]}, ("", "Pod"), "train-1", {}, True),
        ({"names": ["a*b*c"]}, ("", "Pod"), "a-b-c", {}, True),
        ({"names": ["a*b*c"]}, ("", "Pod"), "a-c", {}, False),
        ({"names": ["ab*ba"]}, ("", "Pod"), "aba", {}, False),
        ({"names": ["*"]}, ("", "Pod"), "", {}, True),
        ({"names": ["a?c"]}, ("", "Pod"), "abc", {}, False),
        ({"objectSelector": {"matchLabels": {"team": "a"}}}, ("", "Pod"), "a", {"team": "a"}, True),
        ({"objectSelector": {"matchLabels": {"team": "a"}}}, ("", "Pod"), "a", {}, False),
        ({"kinds": ["Pod"], "names": ["b"]}, ("", "Pod"), "a", {}, False),
    ],
)
def test_kinds_names_and_labels_select(
    spec: dict[str, Any], kind: tuple[str, str], name: str, labels: dict[str, str], is_about: bool
) -> None:
    assert parse_policy_exception(stored(**spec)).is_about(kind, name, labels) is is_about


def test_only_the_oldest_exceptions_of_a_namespace_have_an_effect() -> None:
    many = [stored(f"2026-11-{1 + number % 28:02}T00:00:00Z", f"e{number}") for number in range(200)]
    counting = oldest_of_namespace(many)
    assert len(counting) == MOST_IN_NAMESPACE
    assert max(each["metadata"]["creationTimestamp"] for each in counting) == "2026-11-07T00:00:00Z"
    assert oldest_of_namespace(reversed(many)) == counting


def test_the_description_of_an_exception_is_one_line_with_its_name() -> None:
    told = parse_policy_exception(stored(reason="two\nlines\n")).description
    assert told == "excepted until 2026-12-31 by PolicyException research/x of ml: two lines"
    assert is_description_of_object(told)
    assert not is_description_of_object("excepted until 2026-12-31 by ml: PolicyException of old")
