"""Says how long a watch may be silent before claimgate reports it, and why an API server does not answer.

The other end of a connection may disappear silently, for example on a node without power. client-go sends HTTP/2 pings
every 30 s and waits 15 s, but urllib3 has only HTTP/1.1. So each watch asks for a short duration, and the API server
sends a bookmark just before its end. Without the bookmark, the connection is closed.

Source: k8s.io/apimachinery v0.36 util/net/http.go for pings; k8s.io/apiserver v0.36 storage/cacher/cache_watcher.go,
nextBookmarkTime.
"""

from __future__ import annotations

import math
import random
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from webhook.errors import LookupFailed


class WatchTimes(Struct, frozen=True):
    """Times of watches in seconds.

    Attributes:
        least_s: the shortest requested duration of a watch.
        slack_s: the time from the end of a watch until the connection is closed.
        retry_s: the time until objects that did not fit into the view are listed again.
        discovery_s: how long watches share a discovery document.
    """

    least_s: int = 30
    slack_s: float = 10.0
    retry_s: float = 300.0
    discovery_s: float = 2.0

    def random_timeout_s(self) -> int:
        """Return a random `timeoutSeconds`, from `least_s` to 1.5 times `least_s`."""
        return random.randint(self.least_s, self.least_s * 3 // 2)  # noqa: S311 - spreads load, hides nothing

    @property
    def stale_s(self) -> float:
        """Return the age at which a view is stale. A healthy API server sends a bookmark earlier than this."""
        return self.least_s * 3 // 2 + 2 * self.slack_s


DEFAULT_TIMES: Final = WatchTimes()


def describe_staleness(age_s: float) -> str:
    """Return the sentence about a silent API server."""
    return f"nothing was heard from the API server for {age_s:.0f} s; reviews are answered from what was read before"


def describe_old_answers(age_s: float) -> str:
    """Return the end of a sentence about reviews that are answered with old objects."""
    return f"still answered, from what was read {math.ceil(max(1.0, age_s))} s ago"


NOT_EVALUATED: Final = (
    'answered; a check that needs such an object says "not evaluated", and the request passes, unless its policy has '
    "the annotation `claimgate.dev/missing: deny` or `warn`; if the kind is that of a policy's parameters, "
    "failurePolicy of the policy decides"
)
"""What happens to reviews while a kind cannot be looked up."""
NOT_ANSWERED: Final = (
    "none are sent to a replica that is not ready; if no replica is ready, failurePolicy of the webhook configurations "
    "decides about requests"
)
"""What happens to reviews while a replica is not ready."""


class ServerUnreachable(LookupFailed):
    """The API server sent no answer, or its certificate is not trusted."""

    def __init__(self, server: str, error: BaseException) -> None:
        self.is_distrusted = any(isinstance(each, ssl.SSLCertVerificationError) for each in _error_and_causes(error))
        place, reason = server.rpartition("//")[2], describe_connection_error(error)
        super().__init__(
            f"the certificate of the API server at {place} is not trusted: {reason}"
            if self.is_distrusted
            else f"the API server at {place} does not answer: {reason}"
        )


class StreamBroken(LookupFailed):
    """A list or a watch ended in the middle; a fault only if the next attempt also fails."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"the API server ended a list or a watch: {describe_connection_error(error)}")


_LATE: Final = "timed out"


def describe_connection_error(error: BaseException) -> str:
    """Return the operating system's text about a failed connection, without texts of libraries."""
    for each in _error_and_causes(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return each.verify_message
        if isinstance(each, socket.gaierror):
            return "its name cannot be resolved"
        if isinstance(each, ssl.SSLEOFError):
            return "the connection was closed"
        if isinstance(each, TimeoutError):
            return _LATE
        if isinstance(each, OSError) and each.strerror:
            return each.strerror.lower()
    return _LATE if "timed out" in str(error) else str(error)


def _error_and_causes(error: BaseException) -> Iterator[BaseException]:
    # the cause of urllib3's ProtocolError is one of its arguments
    each: BaseException | None = error
    for _ in range(10):
        if each is None:
            return
        yield each
        yield from (argument for argument in each.args if isinstance(argument, BaseException))
        each = each.__cause__ or each.__context__
