"""Limits the age of a view: how long a watch may stay silent before people are told.

A connection whose other end is gone without a word, as behind a load balancer or a node that lost its power, looks
like a watch on which nothing happens. client-go pings over HTTP/2 (k8s.io/apimachinery v0.36 util/net/http.go, 30 s and
15 s); urllib3 speaks HTTP/1.1 alone. So each watch is asked to end soon, the API server sends a bookmark just before
(k8s.io/apiserver v0.36 storage/cacher/cache_watcher.go, nextBookmarkTime), and who hears nothing until then and a
little longer gives up the connection.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """Times of watches in seconds: how long a watch is asked to last, how late its end may be noticed, and how long
    objects that did not fit into the view are not asked for again.
    """

    least_s: int = 30
    slack_s: float = 10.0
    retry_s: float = 300.0

    def random_timeout_s(self) -> int:
        """Return a random `timeoutSeconds` for the next watch, from `least_s` to half as much again."""
        return random.randint(self.least_s, self.least_s * 3 // 2)  # noqa: S311 - spreads load, hides nothing

    @property
    def stale_s(self) -> float:
        """Return the age at which a view is stale: a watch has ended, and the next one did not begin."""
        return self.least_s * 3 // 2 + 2 * self.slack_s


DEFAULT_TIMES: Final = WatchTimes()


def describe_staleness(age_s: float) -> str:
    """Return the sentence about a view that got nothing for `age_s` seconds."""
    return f"nothing was heard from the API server for {age_s:.0f} s; answers are as old"
