"""The live cluster of a server: watches of the objects that the loaded policies look up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from webhook.apimachinery.attributes import NAMESPACE
from webhook.cluster.connection import Connection
from webhook.cluster.failure_log import FailureLog
from webhook.cluster.interest import Interest
from webhook.cluster.watch import WatchCluster
from webhook.logs.structured import Log

WAIT_S: Final = 10.0
"""Seconds that a start waits for the first lists; /readyz fails while some are missing."""


class WatchedCluster(Struct, frozen=True):
    """A live view of a cluster, and whether it can answer lookups yet."""

    cluster: WatchCluster

    @classmethod
    def start(
        cls,
        connection: Connection,
        interests: Iterable[Interest],
        log: Log,
        most_bytes: int | None = None,
        failure_log: FailureLog | None = None,
    ) -> WatchedCluster:
        """Watch, and wait for the first lists.

        Args:
            connection: the connection to the cluster.
            interests: the objects that are looked up.
            log: the log for failures.
            most_bytes: the bound of kept objects; None means no bound.
            failure_log: the log of a server, which does not wait for an API server that is away; None for a command.
        """
        cluster = WatchCluster(connection, interests, log, most_bytes=most_bytes, failure_log=failure_log)
        cluster.start()
        is_synced = cluster.wait_until_synced(WAIT_S) if failure_log is None else cluster.wait_for_first_lists(WAIT_S)
        if not (is_synced or (failure_log is not None and failure_log.is_unreachable)):
            log.warning("not synced yet", kinds=sorted(gvk.kind for gvk in cluster.failures()))
        return cls(cluster)

    def replace_interests(self, interests: Iterable[Interest]) -> None:
        """Watch exactly these objects from now on."""
        self.cluster.watch(interests)

    def why_not_ready(self) -> str:
        """Return why reviews cannot be answered yet: kinds that the view knows nothing about; "" if they can.

        Bindings select namespaces: a server that has never read namespaces denies everything for which a policy fails
        closed. If it has no right to read them, it must not get calls, so that the failurePolicy of the webhook
        configuration decides.
        """
        return (
            self.cluster.why_never_listed(NAMESPACE) if self.cluster.wait_until_synced(0) else self.describe_failures()
        )

    def describe_failures(self) -> str:
        """Return which kinds cannot be looked up, a line for each reason; policies that need them are not evaluated."""
        return "\n".join((*self.cluster.describe_failures(), *self.cluster.describe_dropped_objects()))
