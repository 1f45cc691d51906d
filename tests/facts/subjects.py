"""Objects in the form that facts read, for tests of several facts."""

from __future__ import annotations

from collections.abc import Mapping

from tests.literals import TABLE
from webhook.admission import fixtures
from webhook.apimachinery.attributes import JSON
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.fact import FactResult
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.schema import decode_object

POD: Mapping[str, JSON] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def subject(
    obj: JSON,
    *context: JSON,
    old: JSON = None,
    cluster: Cluster | None = None,
    trainer: tuple[int, int] = (2, 3),
    resources: tuple[tuple[str, str], ...] = (),
    is_whole: bool = False,
) -> Subject:
    """Return a decoded object in a cluster. With `is_whole`, the cluster has only the given objects. null is a deleted
    object.
    """
    attributes = fixtures.attributes_of_object(obj or POD, TABLE.row)
    decoded = decode_object(obj, attributes.kind)
    return Subject(
        object=decoded.value,
        old_object=decode_object(old, attributes.kind).value,
        attributes=attributes,
        cluster=ClusterView(cluster or FilesCluster(context, is_whole=is_whole), attributes.namespace),
        table=TABLE,
        assumptions=ClusterAssumptions(trainer=trainer, resources=resources),
        omitted=frozenset(decoded.unfilled),
    )


def with_missing(value: JSON, view: ClusterView) -> JSON:
    """Return the value of a fact with its missing objects under the key `missing`."""
    return {
        **value,
        "missing": [
            str(each) for each in FactResult(value, view.missing_objects_by_field()).missing_objects_of_fields()
        ],
    }
