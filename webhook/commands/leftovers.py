"""Objects of earlier versions that this version does not install: `claimgate webhook-config --check --live`.

`kubectl apply` deletes nothing, so these objects stay and continue to work after an upgrade. Helm deletes them itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from webhook.workloads.plurals import plural_of_kind

if TYPE_CHECKING:
    from webhook.commands.enforcing import ClusterReader


class RemovedObject(Struct, frozen=True, kw_only=True):
    """An object in the namespace of claimgate that a version of deploy/ was the last to have.

    api: the path of the API group and version, such as `/apis/batch/v1`.
    effect: what the object does if it stays.
    """

    kind: str
    api: str
    name: str
    version: str
    effect: str


_CERTIFICATES: Final = "claimgate-certificates"
REMOVED_OBJECTS: Final = (
    RemovedObject(
        kind="CronJob",
        api="/apis/batch/v1",
        name=_CERTIFICATES,
        version="0.1.0",
        effect=f"it renews the certificate with an old image, beside the Deployment {_CERTIFICATES}",
    ),
    RemovedObject(
        kind="Job",
        api="/apis/batch/v1",
        name=_CERTIFICATES,
        version="0.1.0",
        effect=f"the Deployment {_CERTIFICATES} does its work",
    ),
)
"""tests/e2e/test_upgrade.py compares these with what an earlier version really installs."""


def leftovers(cluster: ClusterReader, namespace: str) -> Iterator[str]:
    """Yield each object of an earlier version in the namespace of claimgate, with the command that deletes it.

    Raises:
        LookupFailed: the cluster cannot be read.
    """
    for removed in REMOVED_OBJECTS:
        resource = plural_of_kind(removed.kind)
        if cluster.get_or_none(f"{removed.api}/namespaces/{namespace}/{resource}/{removed.name}") is not None:
            fix = f"`kubectl -n {namespace} delete {removed.kind.lower()} {removed.name}`"
            place = f"{removed.kind} {namespace}/{removed.name}"
            yield f"{place}: no version after {removed.version} installs it, and {removed.effect}: {fix}"
