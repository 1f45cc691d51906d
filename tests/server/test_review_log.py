"""The log line of a review has user, request, verdict and reason. It has the message of a denial and the object only if
the settings ask for them.
"""

import json

import pytest
from msgspec.structs import replace

from tests.server.asgi import review_of
from webhook.admission.decode import decode_review_bytes
from webhook.apimachinery.attributes import Phase
from webhook.rules.decisions import Decision, DenialStatus, Verdict
from webhook.server.application import _logs_denials
from webhook.server.review_log import log_fields_of_review
from webhook.settings.serving import ServerSettings

DENIED = Verdict(allowed=False, status=DenialStatus(code=400, reason="BadRequest", message="spec.x: is `hunter2`"))


def fields(verdict=DENIED, *, with_denial=False, **request):
    return log_fields_of_review(
        decode_review_bytes(json.dumps(review_of(**request)).encode()),
        Phase.VALIDATE,
        verdict,
        0.001,
        with_denial=with_denial,
    )


def test_the_message_of_a_denial_is_left_out():
    """The message quotes the object, and more people may read the log than the object."""
    assert "hunter2" not in str(fields())
    assert fields()["code"] == 400


def test_the_message_of_a_denial_is_logged_on_request():
    assert fields(with_denial=True)["denial"] == "spec.x: is `hunter2`"
    assert "denial" not in fields(Verdict(allowed=True), with_denial=True)


def test_a_long_message_is_cut():
    status = DenialStatus(code=400, reason="BadRequest", message="x" * 1_000_000)
    assert len(fields(Verdict(allowed=False, status=status), with_denial=True)["denial"]) <= 4096


def test_the_line_of_a_dry_run_says_so():
    assert fields(dryRun=True)["dry_run"] is True
    assert "dry_run" not in fields()


def test_rules_with_an_exception_are_listed_separately():
    """The owner and the reason of an exception are in the configuration, and not in the log."""
    broken = Decision(policy="p", rule="a/b", binding="", evaluation="deny")
    excepted = replace(broken, rule="a/c", lets_pass=True, exception="excepted until 2027-01-31 by us: hunter2")
    written = fields(Verdict(allowed=False, decisions=(broken, excepted)))
    assert (written["rules"], written["excepted"]) == (["a/b"], ["a/c"])
    assert "hunter2" not in str(written)


@pytest.mark.parametrize(
    ("wanted", "log_level", "expected"),
    [
        ("never", "debug", False),
        ("debug", "debug", True),
        ("debug", "info", False),
        ("info", "info", True),
        ("info", "debug", True),
        ("info", "warning", False),
    ],
)
def test_denials_are_logged_at_the_configured_level(wanted, log_level, expected):
    assert _logs_denials(ServerSettings(log_denials=wanted, log_level=log_level)) is expected
