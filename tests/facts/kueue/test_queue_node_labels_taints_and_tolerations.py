"""The part of an AdmissionCheck that stays, and the message for a user who changes it."""

from __future__ import annotations

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.kueue.queue import validate_controller_name_unchanged


def check(**spec: JSON) -> JSON:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": "prov"},
        "spec": spec,
    }


def fixes(old: JSON, new: JSON) -> list[str]:
    return [problem.fix for problem in validate_controller_name_unchanged(subject(new, old=old))]


def test_a_controller_that_changes_is_to_be_set_again() -> None:
    told = fixes(check(controllerName="a.example/b"), check(controllerName="a.example/c"))
    assert told == ["set `a.example/b` again, or create another AdmissionCheck"]


def test_a_controller_that_is_added_is_to_be_removed() -> None:
    assert fixes(check(), check(controllerName="a.example/c")) == ["remove it, or create another AdmissionCheck"]


def test_a_controller_that_stays_is_fine() -> None:
    assert fixes(check(controllerName="a.example/b"), check(controllerName="a.example/b")) == []
