"""Repeats a check of certificates, and handles signals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from threading import Event

from certs import CertificateError


def repeat(look: Callable[[], None], every_s: float, stopped: Event | None = None) -> None:
    """Check again and again, until SIGTERM or Ctrl-C, or until a given `stopped` is set.

    A CertificateError of `look` is printed only if it differs from the previous one: a cluster that is away for a night
    causes one line.
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
