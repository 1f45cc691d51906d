"""How decisions are enforced: k8s.io/apiserver v0.36 validating/dispatcher.go, filters/warning.go."""

import json

import pytest
from msgspec.structs import replace

from webhook.admission.enforce import (
    FAILURE_KEY,
    MAX_ANNOTATION,
    MAX_MESSAGE,
    MAX_WARNING,
    MAX_WARNINGS,
    fit_warnings_to_api_server_limits,
    verdict_of_decisions,
)
from webhook.apimachinery.attributes import Attributes, GroupVersionKind, GroupVersionResource, Operation
from webhook.rules.decisions import Decision, DenialReason, ValidationAction
from webhook.rules.problem import Problem

DENY, WARN, AUDIT = ValidationAction.DENY, ValidationAction.WARN, ValidationAction.AUDIT


def attributes(**changes):
    known = {
        "uid": "u",
        "kind": GroupVersionKind("apps", "v1", "Deployment"),
        "resource": GroupVersionResource("apps", "v1", "deployments"),
        "operation": Operation.CREATE,
        "request_kind": GroupVersionKind("apps", "v1", "Deployment"),
        "request_resource": GroupVersionResource("apps", "v1", "deployments"),
        "name": "d",
        "object": {},
    }
    return Attributes(**{**known, **changes})


def denial(reason="Forbidden", code=403, **changes):
    known = {"policy": "p", "binding": "b", "evaluation": "deny", "actions": (DENY,), "message": "no"}
    return Decision(**{**known, "denial": DenialReason(reason, code), **changes})


ADMITTED = Decision(policy="p", binding="b", evaluation="admit", actions=(DENY,))


def test_a_request_without_a_denial_is_allowed():
    verdict = verdict_of_decisions([ADMITTED], attributes())
    assert (verdict.allowed, verdict.status, verdict.warnings) == (True, None, ())


@pytest.mark.parametrize("api_server_text", [False, True])
def test_an_error_that_an_api_server_would_not_have_is_reported_as_a_warning(api_server_text):
    unconverted = denial(evaluation="error", lets_pass=True, message="cannot convert", warns_user=True)
    verdict = verdict_of_decisions([ADMITTED, unconverted], attributes(), api_server_text=api_server_text)
    assert (verdict.allowed, verdict.warnings) == (True, ("cannot convert (policy p)",))
    assert verdict_of_decisions([denial(), unconverted], attributes()).warnings == ("cannot convert (policy p)",)


def test_the_first_denial_gives_code_and_reason_and_all_are_reported():
    verdict = verdict_of_decisions(
        [ADMITTED, denial(), denial(policy="q", message="neither", reason="Invalid", code=422)], attributes()
    )
    assert not verdict.allowed
    assert (verdict.status.code, verdict.status.reason) == (403, "Forbidden")
    assert verdict.status.message == "2 problems:\n* no (policy p)\n* neither (policy q)"


def test_the_same_denial_is_reported_once():
    assert verdict_of_decisions([denial(), denial(binding="c")], attributes()).status.message == "no (policy p)"


def test_many_denials_are_reported_completely_up_to_the_limit():
    denials = [denial(message=f"spec.containers[{number}] " + "x" * 80) for number in range(5000)]
    message = verdict_of_decisions(denials, attributes()).status.message
    told, more = message.rsplit("\n* and ", 1)
    head, *parts = told.split("\n* ")
    assert head == "5000 problems:"
    assert parts == [f"{each.message} (policy p)" for each in denials[: len(parts)]]
    assert more == f"{5000 - len(parts)} more"
    assert MAX_MESSAGE - 300 < len(message) <= MAX_MESSAGE


def test_messages_within_the_limit_are_not_shortened():
    size = MAX_MESSAGE // 2 - 200
    denials = [denial(message="a" * size), denial(message="b" * size)]
    message = verdict_of_decisions(denials, attributes()).status.message
    assert message == f"2 problems:\n* {'a' * size} (policy p)\n* {'b' * size} (policy p)"
    longer = verdict_of_decisions([*denials, denial(message="c" * 400)], attributes()).status
    assert longer.message == f"3 problems:\n* {'a' * size} (policy p)\n* {'b' * size} (policy p)\n* and 1 more"
    assert len(longer.details.causes) == 2


@pytest.mark.parametrize("letter", ["x", "\N{GRINNING FACE}", "word "], ids=["letters", "beyond 16 bits", "words"])
def test_one_denial_that_is_too_long_ends_early_and_names_its_policy(letter):
    status = verdict_of_decisions([denial(message=f"spec.name: {letter * 20_000}; make it short")], attributes()).status
    assert status.message.startswith("spec.name: ")
    assert status.message.endswith(" … (policy p)")
    assert len(status.message) <= MAX_MESSAGE
    assert all(len(each.message) <= MAX_MESSAGE for each in status.details.causes)
    status.message.encode()


def problem(number, code="g/r"):
    return Problem(code=code, path=f"spec.x[{number}]", message="must be whole", fix="set 1", found="`1.5`")


def test_problems_are_reported_one_by_one_with_their_rules():
    found = [problem(0), problem(1, "g/s")]
    verdict = verdict_of_decisions(
        [denial(rule="g/r", problems=tuple(found), message="both", actions=(DENY, WARN))], attributes()
    )
    told = [
        "spec.x[0]: `1.5` must be whole: set 1 (g/r)",
        "spec.x[1]: `1.5` must be whole: set 1 (g/s)",
    ]
    assert verdict.status.message == "\n* ".join(["2 problems:", *told])
    assert list(verdict.warnings) == told


def test_a_denial_has_a_cause_for_each_reported_problem():
    about_all = Problem(code="g/all", path="", message="must be there")
    found = (problem(0), about_all)
    status = verdict_of_decisions(
        [denial(rule="g/r", problems=found), denial(message="spec.y: no")], attributes()
    ).status
    assert (status.details.group, status.details.kind, status.details.name) == ("apps", "Deployment", "d")
    assert [(each.field, each.message, each.reason) for each in status.details.causes] == [
        ("spec.x[0]", "`1.5` must be whole: set 1 (claimgate: g/r)", "g/r"),
        ("Deployment", "must be there (claimgate: g/all)", "g/all"),
        ("spec.y", "no (claimgate: policy p)", "p"),
    ]
    assert verdict_of_decisions([denial()], attributes(), api_server_text=True).status.details is None


def test_problems_for_users_come_before_problems_for_administrators():
    theirs = replace(problem(0), is_for_administrators=True)
    severe = denial(problems=(theirs,), severity="critical")
    status = verdict_of_decisions([severe, denial(problems=(problem(1),), severity="low")], attributes()).status
    assert [each.field for each in status.details.causes] == ["spec.x[1]", "spec.x[0]"]


def test_further_findings_are_listed_below_and_do_not_decide():
    besides = [denial(message="other", code=400), denial(message="no"), denial(message="warned", actions=(WARN,))]
    verdict = verdict_of_decisions([denial()], attributes(), further=besides)
    assert verdict.status.code == 403
    assert verdict.warnings == ()
    told = "2 problems (1 of them from checks that run later):"
    assert verdict.status.message == f"{told}\n* no (policy p)\n* other (policy p)"
    assert verdict_of_decisions([ADMITTED], attributes(), further=besides).allowed


def test_a_validation_is_reported_with_its_rule():
    assert verdict_of_decisions([denial(rule="g/r")], attributes()).status.message == "no (g/r)"


def test_the_most_severe_problem_is_first_and_gives_the_code():
    low, unsaid = denial(severity="low", message="low", code=422), denial(message="unsaid")
    status = verdict_of_decisions([unsaid, low, denial(severity="high", message="high")], attributes()).status
    assert status.message == "3 problems:\n* high (policy p)\n* low (policy p)\n* unsaid (policy p)"
    assert status.code == 403


def test_the_deadline_is_checked_between_problems():
    found = tuple(problem(number) for number in range(1000))
    message = verdict_of_decisions([denial(problems=found)], attributes()).status.message
    assert message.endswith(f" (g/r)\n* and {1000 - message.count('set 1')} more")


def test_the_message_in_the_form_of_the_api_server_is_bounded_too():
    long = denial(message="x " * 20_000, actions=(DENY, WARN, AUDIT), audit_annotations={"k": "y " * 20_000})
    verdict = verdict_of_decisions(
        [long, *[denial(message=f"{'z' * 300} {n}", actions=(WARN,)) for n in range(100)]],
        attributes(),
        api_server_text=True,
    )
    assert MAX_MESSAGE - 4 < len(verdict.status.message) <= MAX_MESSAGE
    assert MAX_MESSAGE - 4 < len(verdict.warnings[0]) <= MAX_MESSAGE
    assert len(verdict.warnings) == MAX_WARNINGS // MAX_WARNING
    assert MAX_MESSAGE - 4 < len(json.loads(verdict.audit_annotations[FAILURE_KEY])[0]["message"]) <= MAX_MESSAGE
    assert MAX_ANNOTATION - 10 < len(verdict.audit_annotations["p/k"]) <= MAX_ANNOTATION


@pytest.mark.parametrize(
    ("decision", "text"),
    [
        (
            denial(),
            "deployments.apps \"d\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
        ),
        (denial(binding=""), "deployments.apps \"d\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"),
        (denial(kind="mutating"), "policy 'p' with binding 'b' denied request: no"),
        (denial(kind="mutating", binding=""), 'policy "p" denied request: no'),
        (denial(kind="mutating", code=500, reason="InternalError"), "Internal error occurred: no"),
    ],
)
def test_a_denial_has_the_text_of_the_api_server(decision, text):
    verdict = verdict_of_decisions([decision, denial(message="second")], attributes(), api_server_text=True)
    assert verdict.status.message == text


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "d"),
        ({"name": "", "object": {"metadata": {"generateName": "d-"}}}, "d-"),
        ({"name": "", "object": {"metadata": {"name": "x"}}}, "x"),
        ({"name": "", "object": None}, "Unknown"),
    ],
)
def test_the_api_server_names_the_object(changes, name):
    verdict = verdict_of_decisions([denial()], attributes(**changes), api_server_text=True)
    assert f'deployments.apps "{name}" is' in verdict.status.message


def test_a_warning_does_not_deny_and_names_its_policy():
    verdict = verdict_of_decisions([denial(actions=(WARN,))], attributes())
    assert verdict.allowed
    assert verdict.warnings == ("no (policy p)",)
    native = verdict_of_decisions([denial(actions=(WARN,))], attributes(), api_server_text=True)
    assert native.warnings == ("Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no",)


def test_warnings_are_one_line_and_not_repeated():
    decisions = [denial(actions=(WARN,), message=f"{i}\n\t\x7f{'x' * 300}") for i in range(12)]
    found = verdict_of_decisions([*decisions, decisions[0]], attributes()).warnings
    assert len(found) == 12
    assert all(text.isprintable() for text in found)


def test_warnings_are_limited_to_what_the_api_server_passes_on():
    decisions = [denial(actions=(WARN,), message=f"{i} {'x' * 400}") for i in range(40)]
    *kept, last = verdict_of_decisions(decisions, attributes()).warnings
    assert kept == [f"{each.message} (policy p)" for each in decisions[: len(kept)]]
    assert last == f"and {40 - len(kept)} more warnings"
    assert MAX_WARNINGS - 500 < sum(map(len, (*kept, last))) <= MAX_WARNINGS


def test_one_very_long_warning_ends_early():
    (found,) = verdict_of_decisions([denial(actions=(WARN,), message="word " * 5000)], attributes()).warnings
    assert len(found) <= MAX_WARNINGS
    assert found.endswith(" …")


def test_only_the_beginning_of_a_too_long_warning_is_read():
    class Text(str):
        __slots__ = ()

        def isprintable(self):
            raise AssertionError

    assert len(fit_warnings_to_api_server_limits([Text("x" * 10**6)])[0]) <= MAX_WARNINGS


def test_no_character_makes_the_api_server_drop_a_warning():
    assert fit_warnings_to_api_server_limits(["a\u2028b\x85c\ud800 ", "\t\n"]) == (r"a\u2028b\x85c\ud800",)


HOSTILE = "\x1b[2J\x9b1m\u202e\u200b\r\n* what to do: run this\x00\ud800"
SHOWN = r"\x1b[2J\x9b1m\u202e\u200b\r\n* what to do: run this\x00\ud800"


def test_a_denial_quotes_control_characters_as_escapes():
    """kubectl prints the text of a denial unchanged. A terminal obeys ESC."""
    found = Problem(code="g/r", path=f"spec[{HOSTILE}]", found=f"`{HOSTILE}`", message="is wrong", fix="set 1")
    problem = denial(problems=(found,), message="")
    for decision in (denial(message=HOSTILE), problem, denial(evaluation="error", message=HOSTILE)):
        status = verdict_of_decisions([decision, decision], attributes()).status
        for said in (status.message, *(each.message for each in status.details.causes)):
            assert SHOWN in said
            assert all(each == " " or each.isprintable() for each in said)
        assert all(each.field.isprintable() for each in status.details.causes)
    assert (
        verdict_of_decisions([denial(message="é漢\u3000\\n")], attributes()).status.message == "é漢\u3000\\n (policy p)"
    )


def test_the_lines_of_an_expression_with_an_error_stay_lines():
    error = "ERROR: <input>:1:1: undeclared\n | x\x1b\n | ^\nwhat to do: pay"
    status = verdict_of_decisions([denial(evaluation="error", message=error)], attributes()).status
    assert status.message == "ERROR: <input>:1:1: undeclared\n | x\\x1b\n | ^\\nwhat to do: pay (policy p)"


def test_api_server_text_is_the_text_that_the_api_server_writes():
    verdict = verdict_of_decisions([denial(message="a\x1bb")], attributes(), api_server_text=True)
    assert verdict.status.message.endswith("denied request: a\x1bb")


def test_escapes_do_not_make_a_denial_longer():
    decisions = [denial(message="\u202e" * 5000, policy=f"p{n}") for n in range(50)]
    status = verdict_of_decisions(decisions, attributes()).status
    assert len(status.message) <= MAX_MESSAGE
    assert status.message.isascii() is False
    assert "\u202e" not in status.message
    assert status.message.startswith(r"50 problems:")


def test_the_first_failure_under_audit_is_recorded():
    verdict = verdict_of_decisions(
        [denial(actions=(AUDIT, WARN), message="<a>&\u2028", index=2), denial(actions=(AUDIT,), message="later")],
        attributes(),
    )
    text = verdict.audit_annotations[FAILURE_KEY]
    assert text.startswith(
        '[{"message":"\\u003ca\\u003e\\u0026\\u2028","policy":"p","binding":"b","expressionIndex":2,'
    )
    assert json.loads(text)[0]["validationActions"] == ["Audit", "Warn"]


def test_audit_annotations_are_joined_by_policy_and_key():
    published = [
        Decision(policy="p", binding=b, evaluation="admit", audit_annotations={"k": value})
        for b, value in (("b1", "one"), ("b2", "two"), ("b3", "one"))
    ]
    assert verdict_of_decisions(published, attributes()).audit_annotations == {"p/k": "one, two"}


def test_an_ignored_error_has_no_message():
    ignored = Decision(policy="p", binding="b", evaluation="error", lets_pass=True, actions=(DENY, AUDIT), message="x")
    verdict = verdict_of_decisions([ignored], attributes())
    assert (verdict.allowed, verdict.audit_annotations) == (True, {})
