"""Describes why an API server does not answer, and logs one line when that begins and one when it ends."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress

from webhook.errors import LookupFailed
from webhook.logs import Log


class ServerUnreachable(LookupFailed):
    """The API server sent no answer."""

    def __init__(self, server: str, error: BaseException) -> None:
        super().__init__(f"the API server {server} cannot be reached: {describe_connection_error(error)}")


def describe_connection_error(error: BaseException) -> str:
    """Return the system's text of a failed connection, without the libraries' wrapping."""
    for each in _error_and_causes(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {each.verify_message}"
        if isinstance(each, socket.gaierror):
            return "its name cannot be resolved"
        if isinstance(each, TimeoutError):
            return "it did not answer in time"
        if isinstance(each, OSError) and each.strerror:
            return each.strerror.lower()
    return "it did not answer in time" if "timed out" in str(error) else str(error)


def _error_and_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes; urllib3's ProtocolError has the cause among its arguments."""
    each: BaseException | None = error
    for _ in range(10):
        if each is None:
            return
        yield each
        yield from (argument for argument in each.args if isinstance(argument, BaseException))
        each = each.__cause__ or each.__context__


class OutageLog:
    """Logs once that the API server is away, and once that it is back, however many watches notice."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._is_away = False

    def log_begin(self, error: ServerUnreachable) -> None:
        """Log that the API server is away, unless that was logged before."""
        if self._set_is_away(to=True):
            with suppress(OSError, ValueError):  # a log that nobody can write to is not a watch's to mend
                self._log.warning("API server unreachable", error=str(error))

    def log_end(self) -> None:
        """Log that the API server is back, if it was away."""
        if self._set_is_away(to=False):
            with suppress(OSError, ValueError):
                self._log.info("API server reachable again")

    def _set_is_away(self, *, to: bool) -> bool:
        if self._is_away is to:  # as nearly always
            return False
        with self._lock:
            turned, self._is_away = self._is_away is not to, to
        return turned
