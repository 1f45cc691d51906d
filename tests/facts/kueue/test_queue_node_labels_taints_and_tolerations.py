"""The immutable fields of an AdmissionCheck, and the message for a user who changes one of them."""

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


def test_the_fix_of_a_changed_controller_is_to_set_it_again() -> None:
    told = fixes(check(controllerName="a.example/b"), check(controllerName="a.example/c"))
    assert told == ["set `a.example/b` again, or create another AdmissionCheck"]


def test_the_fix_of_an_added_controller_is_to_remove_it() -> None:
    assert fixes(check(), check(controllerName="a.example/c")) == ["remove the field, or create another AdmissionCheck"]


def test_an_unchanged_controller_gets_no_finding() -> None:
    assert fixes(check(controllerName="a.example/b"), check(controllerName="a.example/b")) == []
