"""Repeated checks of certificates. A failure is reported once and checked again. A signal ends the checks."""

from __future__ import annotations

import signal
import subprocess
import sys
from threading import Event

import pytest

from certs import CertificateError
from certs.repeat import repeat

ENDLESS = """
from certs.repeat import repeat

repeat(lambda: print("looked", flush=True), 60)
"""


def test_a_failed_look_is_tried_again_and_each_new_error_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    stopped, errors = Event(), iter(["away", "away", "", "away", "refused"])

    def look() -> None:
        error = next(errors)
        if error == "refused":
            stopped.set()
        if error:
            raise CertificateError(error)

    repeat(look, 0.001, stopped)
    told = [line.partition("seconds: ")[2] for line in capsys.readouterr().err.splitlines()]
    assert told == ["away", "away", "refused"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"looked\n"
        process.send_signal(number)
        assert process.wait(30) == 0
