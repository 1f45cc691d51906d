"""Fields that a case does not mention are not compared. Differences have enough detail to fix them."""

import pytest
from msgspec.structs import replace

from tests.rows import all_rows
from webhook.admission.phases import PhasesOutcome
from webhook.apimachinery.attributes import Phase
from webhook.rules.decisions import Decision, DenialStatus, Verdict
from webhook.suites.expectation import Expectation

DENIED = DenialStatus(code=422, reason="Invalid", message="spec.x: is bad (policy p)")


def outcome(allowed=True, decisions=(), changed=None, **verdict):
    status = None if allowed else DENIED
    made = Verdict(allowed=allowed, status=status, decisions=tuple(decisions), patched_object=changed, **verdict)
    return PhasesOutcome(
        verdict=made, decisions=tuple((Phase.VALIDATE, one) for one in decisions), patched_object=changed
    )


def said(evaluation, message):
    return Decision(policy="p", binding="b", evaluation=evaluation, message=message)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        pytest.param({}, outcome(), id="nothing expected"),
        pytest.param(
            {"allowed": True, "code": 422},
            outcome(),
            id="the code of a denial is not compared if the request is allowed",
        ),
        pytest.param(
            {"allowed": False, "code": 422, "reason": "Invalid", "message": "is bad"}, outcome(False), id="a denial"
        ),
        pytest.param({"warnings": []}, outcome(), id="no warnings"),
        pytest.param({"warnings": ["b", "a"]}, outcome(warnings=("xa", "ab")), id="warnings one for one in any order"),
        pytest.param({"unknown": ["x"], "errors": []}, outcome(decisions=[said("unknown", "no x")]), id="unknown"),
        pytest.param({"matched": False}, outcome(), id="not matched"),
        pytest.param({"patched": {"a": {"b": 1}}}, outcome(changed={"a": {"b": 1, "c": 2}}), id="a part of the object"),
        pytest.param({"patch": []}, outcome(), id="no patch"),
        pytest.param({"allowed": True, "rules": ["g/a", "g/b"]}, outcome(), id="several expectations that hold"),
        pytest.param({"audit_annotations": {"p/k": "v"}}, outcome(audit_annotations={"p/k": "v"}), id="annotations"),
    ],
)
def test_an_expected_result_passes(expected, found):
    assert Expectation(**expected).judge(found) == ()


@all_rows(
    ("expected", "found", "why"),
    [
        pytest.param(
            {"allowed": True},
            outcome(False),
            "verdict: expected allowed, found 422 Invalid: spec.x: is bad (policy p)",
            id="denied instead of allowed",
        ),
        pytest.param(
            {"allowed": False}, outcome(), "verdict: expected denied, found allowed", id="allowed instead of denied"
        ),
        pytest.param(
            {"warnings": [""], "rules": ["g/b"]},
            outcome(warnings=("x",), decisions=[replace(said("deny", "x"), rule="g/a")]),
            "rule: expected `g/b` to be broken, found broken rules: g/a",
            id="another rule",
        ),
        pytest.param({"code": 400}, outcome(False), "code: expected 400, found 422", id="another code"),
        pytest.param(
            {"reason": "Forbidden"}, outcome(False), "reason: expected Forbidden, found Invalid", id="another reason"
        ),
        pytest.param(
            {"message": "good"},
            outcome(False),
            "message: expected a text with\n  - good\nfound\n  + spec.x: is bad (policy p)",
            id="another message",
        ),
        pytest.param(
            {"warnings": ["a"]},
            outcome(warnings=("ab", "c")),
            "warnings: expected texts with (-), found (+)\n  - a\n  + ab\n  + c",
            id="one warning too many",
        ),
        pytest.param(
            {"warnings": []},
            outcome(warnings=("c",)),
            "warnings: expected texts with (-), found (+)\n  - none\n  + c",
            id="a warning",
        ),
        pytest.param({"warns": True}, outcome(), "warnings: expected some, found 0", id="no warning at all"),
        pytest.param(
            {"errors": ["e"]}, outcome(), "errors: expected texts with (-), found (+)\n  - e\n  + none", id="no error"
        ),
        pytest.param(
            {"matched": False},
            outcome(decisions=[said("admit", "")]),
            "matched: expected no, found policies that match: p",
            id="matched instead of not matched",
        ),
        pytest.param(
            {"patched": {"a": [{"b": "1"}], "n": 1}},
            outcome(changed={"a": [{"b": "2"}]}),
            'patched: the resulting object differs\n  - a[0].b: "1"\n  + a[0].b: "2"\n  - n: 1\n  + absent',
            id="another object",
        ),
        pytest.param(
            {"patched_object": {"a": 1}},
            outcome(changed={"a": 2}),
            "patched object:\n  --- expected\n  +++ found\n  @@ -1 +1 @@\n  -a: 1\n  +a: 2",
            id="another whole object",
        ),
        pytest.param(
            {"patch": []},
            outcome(patch=({"op": "remove", "path": "/a"},)),
            "patch:\n  --- expected\n  +++ found\n  @@ -1 +1,2 @@\n  -[]\n  +- op: remove\n  +  path: /a",
            id="a patch",
        ),
    ],
)
def test_a_failed_expectation_names_the_difference(expected, found, why):
    assert "\n".join(Expectation(**expected).judge(found)) == why
