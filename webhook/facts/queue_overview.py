"""The queues of all schedulers of a cluster, as a flat list with parents before children.

The list is flat because trees of queues may be deeper than Python can recurse.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from webhook.facts.resource_units import format_amount_in_kueue_units

Kind: TypeAlias = Literal["Cohort", "ClusterQueue", "LocalQueue", "Queue"]
"""Three kinds of Kueue, and Volcano's Queue."""


class QueueResourceAmounts(Struct, frozen=True, kw_only=True):
    """The amounts of a resource in a queue: thousandths of cpu, units of other resources.

    Args:
        flavor, resource: the names; the flavor is "" if the scheduler has no flavors.
        nominal: the declared quota; for a Queue of Volcano, the deserved amount.
        borrowing_limit, lending_limit: the declared limits; None without a limit.
        most: the most that the queue could ever use; for a Cohort, the amount that the Cohort and its descendants
            share.
        used: the amount that is reserved at present.
    """

    flavor: str
    resource: str
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    most: int
    used: int

    def format_as_quantity(self, value: int | None) -> str | None:
        """Return an amount of this resource as a quantity; None for None."""
        return None if value is None else format_amount_in_kueue_units(self.resource, value)


class QueueRow(Struct, frozen=True, kw_only=True):
    """A Cohort, a ClusterQueue, a LocalQueue, or a Queue of Volcano.

    Args:
        kind, name, namespace: the identity of the queue.
        parent: the name of the cohort or queue above this queue; "" for a root.
        depth: the number of ancestors.
        amounts: the quota of the queue. A LocalQueue has the quota of its ClusterQueue if the ClusterQueue admits
            jobs of the LocalQueue.
        obstacles: why the queue admits nothing; empty if it admits jobs.
    """

    kind: Kind
    name: str
    namespace: str = ""
    parent: str = ""
    depth: int = 0
    amounts: tuple[QueueResourceAmounts, ...] = ()
    obstacles: tuple[str, ...] = ()


class QueueOverview(Struct, frozen=True):
    """The rows of all queues, the unused flavors, and the number of Workloads with quota.

    Args:
        rows: the queues.
        unused_flavors: the flavors without quota in any queue.
        workloads: the number of Workloads with reserved quota, if the usage is computed from Workloads; None if the
            usage is read from the status of queues.
    """

    rows: tuple[QueueRow, ...]
    unused_flavors: tuple[str, ...] = ()
    workloads: int | None = None
