"""PolicyExceptions apply only to objects of their own namespace, and only within the bounds of the configuration."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from tests.literals import policies, request, validating
from tests.manifests.test_policy_exceptions import configuration, stored
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import GroupVersionKind, Phase
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.manifests import leave_alone, policy_exceptions
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "research"}, "spec": {}}
ALLOWED = {"rules": ["*"], "maxDays": 30}


@pytest.fixture(autouse=True)
def _on_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.admission.exceptions.current_day", lambda: dt.date(2026, 12, 1))
    monkeypatch.setattr(leave_alone, "current_day", lambda: dt.date(2026, 12, 1))


def loaded(*allowed: dict[str, Any]) -> PolicySet:
    made = policies(validating("false", name="pods", failurePolicy="Fail"))
    return replace(made, configuration=configuration(*allowed))


def verdict(
    *objects: dict[str, Any], allowed: tuple[dict[str, Any], ...] = (ALLOWED,), pod: dict[str, Any] = POD
) -> Verdict:
    return answer_request(request(pod), loaded(*allowed), FilesCluster(objects), phase=Phase.VALIDATE)


def test_an_object_of_the_namespace_may_break_the_rule_and_the_use_is_reported() -> None:
    answer = verdict(stored(rules=["pods"]))
    assert answer.allowed
    (decision,) = answer.decisions
    assert decision.is_excepted
    assert decision.exception == "excepted until 2026-12-31 by PolicyException research/x of ml: r"


def test_an_object_of_another_namespace_may_not_break_the_rule() -> None:
    other = {**POD, "metadata": {"name": "p", "namespace": "others"}}
    answer = verdict(stored(rules=["pods"]), pod=other)
    assert not answer.allowed
    assert not answer.warnings


def test_without_bounds_an_exception_has_no_effect_and_is_not_looked_up() -> None:
    class Forbidden(FilesCluster):
        def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Any:
            raise AssertionError(gvk)

    answer = answer_request(request(POD), loaded(), Forbidden(), phase=Phase.VALIDATE)
    assert not answer.allowed


def test_an_exception_out_of_bounds_is_named_in_a_warning() -> None:
    answer = verdict(stored(rules=["pods"]), allowed=({**ALLOWED, "maxDays": 3},))
    assert not answer.allowed
    assert "PolicyException research/x has no effect: it ends on 2026-12-31" in answer.warnings[0]


def test_an_exception_about_another_rule_or_object_is_not_named() -> None:
    answer = verdict(stored(rules=["others"]), stored(name="y", rules=["pods"], names=["q"]), allowed=(ALLOWED,))
    assert not answer.allowed
    assert not answer.warnings


def test_a_broken_exception_does_not_change_the_effect_of_others() -> None:
    assert verdict(stored(name="a", rules=[]), stored(name="b", rules=["pods"])).allowed


def test_a_namespace_itself_gets_no_exception() -> None:
    """An API server sends a Namespace with its own name as its namespace."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}}
    asked = replace(request(namespace), namespace="research")
    about = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["namespaces"]}
    made = policies(validating("false", name="pods", failurePolicy="Fail", rule=about))
    made = replace(made, configuration=configuration(ALLOWED))
    answer = answer_request(asked, made, FilesCluster([stored(rules=["pods"])]), phase=Phase.VALIDATE)
    assert not answer.allowed


def test_a_denial_says_if_exceptions_cannot_be_looked_up() -> None:
    class Away(FilesCluster):
        def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Any:
            raise LookupFailed("PolicyException: forbidden")

    answer = answer_request(request(POD), loaded(ALLOWED), Away(), phase=Phase.VALIDATE)
    assert not answer.allowed
    told = "PolicyExceptions of namespace research have no effect: PolicyException: forbidden (policy exceptions)"
    assert answer.warnings == (told,)


def test_if_the_kind_is_not_installed_nothing_is_reported() -> None:
    class Missing(FilesCluster):
        def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> Any:
            raise LookupFailed(f"{gvk.kind}: not served by the API server; install its CustomResourceDefinition")

    answer = answer_request(request(POD), loaded(ALLOWED), Missing(), phase=Phase.VALIDATE)
    assert not answer.allowed
    assert not answer.warnings


def test_thousands_of_exceptions_are_charged_and_only_the_oldest_have_an_effect() -> None:
    many = [stored("2026-11-30T00:00:00Z", f"e{number:05}", rules=["others"]) for number in range(3000)]
    assert not verdict(*many, stored(name="late", rules=["pods"])).allowed
    oldest = stored("2026-11-01T00:00:00Z", "old", rules=["pods"], expires="2026-12-01")
    assert verdict(*many, oldest).allowed
    late = answer_request(
        request(POD), loaded(ALLOWED), FilesCluster([*many, oldest]), phase=Phase.VALIDATE, deadline=Deadline(0.0)
    )
    assert not late.allowed
    assert any("no time was left to read them" in each for each in late.warnings)


def test_the_view_holds_exceptions_only_in_namespaces_with_bounds() -> None:
    assert policy_exceptions.INTEREST in loaded(ALLOWED).interests()
    assert policy_exceptions.INTEREST.kind in loaded(ALLOWED).kinds_looked_up()
    assert policy_exceptions.INTEREST not in loaded().interests()
    assert policy_exceptions.INTEREST.kind not in loaded().kinds_looked_up()
    assert policy_exceptions.INTEREST in replace(loaded(), has_stored_policies=True).interests()
