"""Why an API server does not answer is said in words, and once."""

import io
import json
import socket
import ssl

import pytest
import urllib3

from webhook.cluster.freshness import OutageLog, ServerUnreachable, describe_connection_error
from webhook.logs.structured import Log


def caused(error, cause):
    error.__cause__ = cause
    return error


UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "self-signed certificate"
REFUSED = ConnectionRefusedError(111, "Connection refused")
ERRORS = {
    "refused": (caused(urllib3.exceptions.NewConnectionError(None, "x"), REFUSED), "connection refused"),
    "a name that nobody knows": (
        caused(urllib3.exceptions.HTTPError("x"), socket.gaierror(-2, "Name or service not known")),
        "its name cannot be resolved",
    ),
    "another authority": (
        urllib3.exceptions.SSLError(UNTRUSTED),
        "its certificate is not trusted: self-signed certificate",
    ),
    "reset": (
        urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError(104, "Connection reset by peer")),
        "connection reset by peer",
    ),
    "no connection in time": (
        caused(urllib3.exceptions.HTTPError("x"), TimeoutError("timed out")),
        "it did not answer in time",
    ),
    "no answer in time": (
        urllib3.exceptions.ReadTimeoutError(None, "/", "Read timed out. (read timeout=60)"),
        "it did not answer in time",
    ),
    "something else": (urllib3.exceptions.HTTPError("the moon is full"), "the moon is full"),
}


@pytest.mark.parametrize(("error", "words"), ERRORS.values(), ids=ERRORS)
def test_a_failed_connection_is_said_in_words(error, words):
    assert describe_connection_error(error) == words
    assert str(ServerUnreachable("https://h", error)) == f"the API server https://h cannot be reached: {words}"


def test_an_error_that_is_its_own_cause_ends():
    error = urllib3.exceptions.HTTPError("x")
    error.__context__ = error
    assert describe_connection_error(error) == "x"


def test_an_outage_is_logged_when_it_begins_and_when_it_ends():
    stream = io.StringIO()
    outages = OutageLog(Log(stream=stream))
    outages.log_end()
    for _ in range(3):
        outages.log_begin(ServerUnreachable("https://h", REFUSED))
    for _ in range(2):
        outages.log_end()
    outages.log_begin(ServerUnreachable("https://h", REFUSED))
    said = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert said == ["API server unreachable", "API server reachable again", "API server unreachable"]


def test_a_log_that_nobody_can_write_to_ends_no_watch():
    stream = io.StringIO()
    stream.close()
    OutageLog(Log(stream=stream)).log_begin(ServerUnreachable("https://h", REFUSED))
