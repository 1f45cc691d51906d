"""Why an API server does not answer is reported as one sentence, without repetitions."""

import socket
import ssl

import pytest
import urllib3

from webhook.cluster.freshness import ServerUnreachable, describe_connection_error


def caused(error, cause):
    error.__cause__ = cause
    return error


UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_message = "self-signed certificate"
REFUSED = ConnectionRefusedError(111, "Connection refused")
ERRORS = {
    "refused": (caused(urllib3.exceptions.NewConnectionError(None, "x"), REFUSED), "connection refused"),
    "an unknown host name": (
        caused(urllib3.exceptions.HTTPError("x"), socket.gaierror(-2, "Name or service not known")),
        "its name cannot be resolved",
    ),
    "another authority": (
        urllib3.exceptions.SSLError(UNTRUSTED),
        "self-signed certificate",
    ),
    "reset": (
        urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError(104, "Connection reset by peer")),
        "connection reset by peer",
    ),
    "no connection in time": (
        caused(urllib3.exceptions.HTTPError("x"), TimeoutError("timed out")),
        "timed out",
    ),
    "no answer in time": (
        urllib3.exceptions.ReadTimeoutError(None, "/", "Read timed out. (read timeout=60)"),
        "timed out",
    ),
    "closed before the handshake": (
        urllib3.exceptions.SSLError(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")),
        "the connection was closed",
    ),
    "another error": (urllib3.exceptions.HTTPError("the moon is full"), "the moon is full"),
}


@pytest.mark.parametrize(("error", "words"), ERRORS.values(), ids=ERRORS)
def test_a_failed_connection_is_explained_in_words(error, words):
    assert describe_connection_error(error) == words
    told = str(ServerUnreachable("https://h:6443", error))
    if words == "self-signed certificate":
        assert told == f"the certificate of the API server at h:6443 is not trusted: {words}"
    else:
        assert told == f"the API server at h:6443 does not answer: {words}"


def test_describing_an_error_that_is_its_own_cause_ends():
    error = urllib3.exceptions.HTTPError("x")
    error.__context__ = error
    assert describe_connection_error(error) == "x"
