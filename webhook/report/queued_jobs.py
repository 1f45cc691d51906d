"""Sums up the demands of jobs in the queues that they name, and keeps the names of the first jobs of each queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from webhook.facts.queue_overview import QueueOverview, QueueRow

MOST_JOBS: Final = 30
"""At most this number of jobs of a queue is kept by name. Further jobs only add to the sums, so memory is bounded."""
_NAMED: Final = ("LocalQueue", "Queue")
"""The kinds that jobs name."""
Scheduler: TypeAlias = Literal["Kueue", "Volcano"]


class QueueKey(Struct, frozen=True):
    """A queue that jobs name: a LocalQueue of Kueue, or a Queue of Volcano, which is cluster-scoped."""

    scheduler: Scheduler
    namespace: str
    name: str


class QueuedJob(Struct, frozen=True):
    """A job and its demand.

    Attributes:
        amounts: the amounts by resource, in thousandths of a CPU and in units of other resources.
        note: a remark, such as that the job can never be admitted; usually "".
    """

    job: str
    amounts: Mapping[str, int]
    note: str = ""


class Demand(Struct):
    """The total demand of the jobs of a queue. `jobs` has the first jobs."""

    count: int = 0
    amounts: Counter[str] = field(default_factory=Counter)
    jobs: list[QueuedJob] = field(default_factory=list)

    def add_job(self, job: QueuedJob) -> None:
        self.add(Demand(1, Counter(job.amounts), [job]))

    def add(self, other: Demand) -> None:
        """Add the demand of another part of the input, or of a child queue."""
        self.count += other.count
        self.amounts.update(other.amounts)
        self.jobs += other.jobs[: MOST_JOBS - len(self.jobs)]


Demands: TypeAlias = Mapping[QueueKey, Demand]


class QueueTrees(Struct, frozen=True):
    """The queues of a scheduler, with the demands of the jobs of a run."""

    scheduler: Scheduler
    overview: QueueOverview
    demands: Demands

    def rows_with_demand(self) -> Sequence[tuple[QueueRow, Demand, Demand]]:
        """Return each queue with the demand of its own jobs, and with the total demand including its child queues."""
        sums: list[Demand] = []
        named_here: list[Demand] = []
        path: list[int] = []
        for number, row in enumerate(self.overview.rows):
            path = [*path[: row.depth], number]
            sums.append(Demand())
            key = QueueKey(self.scheduler, row.namespace, row.name)
            named_here.append(self.demands.get(key, Demand()) if row.kind in _NAMED else Demand())
            for above in path:
                sums[above].add(named_here[-1])
        return tuple(zip(self.overview.rows, named_here, sums, strict=True))

    def find_unknown_queues(self) -> Iterator[tuple[QueueKey, Demand]]:
        """Yield the queues that jobs name and that do not exist, by name."""
        shown = {(row.namespace, row.name) for row in self.overview.rows if row.kind in _NAMED}
        for key in sorted(self.demands, key=lambda each: (each.namespace, each.name)):
            if key.scheduler == self.scheduler and (key.namespace, key.name) not in shown:
                yield key, self.demands[key]
