"""Checks certificates for as long as a process runs. This module only waits and handles signals; the caller passes
the check.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from threading import Event

from certs import CertificateError


def repeat(look: Callable[[], None], every_s: float, stopped: Event | None = None) -> None:
    """Check again and again, until SIGTERM or Ctrl-C.

    Failed checks are also repeated. An error is printed only if it differs from that of the previous check, so that a
    cluster that cannot be reached for a night causes one line.

    Args:
        look: makes one check; raises CertificateError if something is missing or the cluster refuses.
        every_s: seconds between two checks.
        stopped: ends the loop when it is set; by default the two signals set it.
    """
    stop = stopped or _on_signals()
    told = ""
    while not stop.is_set():
        try:
            look()
            told = ""
        except CertificateError as error:
            if str(error) != told:
                told = str(error)
                sys.stderr.write(f"not done, trying again every {every_s:g} seconds: {told}\n")
                sys.stderr.flush()
        stop.wait(every_s)


def _on_signals() -> Event:
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
