"""The figures of `/metrics` about the view of the cluster."""

from __future__ import annotations

from webhook.cluster.live import WatchedCluster
from webhook.server.metrics import Gauges


def gauges_of_view(watched: WatchedCluster | None) -> Gauges:
    """Return the figures by name; each is 0 without a live cluster."""
    cluster = watched.cluster if watched else None
    return {
        "cluster_view_age_seconds": (
            "Seconds since the API server was heard, of the watch that heard longest ago; up to 65 is healthy.",
            lambda: cluster.age_s if cluster else 0.0,
        ),
        "watch_failures": (
            "Failed lists and watches of the cluster since the start.",
            lambda: cluster.failure_count if cluster else 0,
        ),
        "cluster_view_bytes": (
            "Bytes of objects that the view of the cluster holds; --view-memory bounds them.",
            lambda: cluster.memory.bytes if cluster else 0,
        ),
        "cluster_view_dropped_total": (
            "How often the objects of a kind in a namespace were let go because the view was full.",
            lambda: cluster.memory.dropped if cluster else 0,
        ),
        "cluster_view_unreadable_objects": (
            "Objects that the view of the cluster does not hold because each cannot be read or is too large.",
            lambda: cluster.unreadable_count if cluster else 0,
        ),
    }
