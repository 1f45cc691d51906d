"""The parts that the page draws next to a verdict: the pod sets of an object, and the queues of its cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from webhook.apimachinery.attributes import JSON, Attributes
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.facts.kueue.overview import read_queue_overview
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.report.queue_svg import queue_svg
from webhook.report.queue_text import queue_text
from webhook.schema import decode_object
from webhook.workloads.table import Table


def list_pod_sets_with_devices(attributes: Attributes, cluster: Cluster, table: Table) -> list[dict[str, Any]]:
    """List the pod sets of an object, by the facts `podSets` and `gpu`: name, path, pods, and the devices of one and
    all.
    """
    view = ClusterView(cluster, attributes.namespace, Deadline())
    obj = decode_object(attributes.object, attributes.kind, view.deadline).value
    if not isinstance(obj, dict):
        return []
    subject = Subject(object=obj, old_object=attributes.old_object, attributes=attributes, cluster=view, table=table)
    devices = {each["path"]: each for each in subject.fact("gpu")["podSets"]}
    return [
        {
            "name": each["name"],
            "path": each["path"],
            "pods": each["pods"],
            "devices": devices.get(each["path"], {}).get("devices", 0),
            "total": devices.get(each["path"], {}).get("total"),
        }
        for each in subject.fact("podSets")
    ]


def describe_queues(objects: Iterable[JSON]) -> dict[str, str] | None:
    """Return the queues of Kueue as a picture and as text; None if the cluster has none."""
    made = read_queue_overview(ClusterView(FilesCluster(objects, is_whole=True), ""))
    return {"svg": queue_svg(made), "text": queue_text(made)} if made.rows else None
