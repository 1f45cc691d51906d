"""How much code one review passes through: `python -m tests.bench.count_calls` prints modules, functions and changes.

A warm review of a recorded Pod by the shipped policies, from its bytes to the bytes of the answer. A change is a call
that leads into another module, or a return to one: what a reader who follows the way of a review has to turn pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from webhook.admission.decode import decode_review_bytes
from webhook.admission.respond import encode_response
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.assumed_namespaces import ClusterWithAssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.workloads import table

RECORDED: Final = Path(__file__).parents[1] / "data" / "reviews" / "controller-replicaset-controller-create-pods.json"
_OURS: Final = "webhook."


@dataclass
class Counts:
    """Which functions of the project ran, and in which order the modules took turns."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0
    changes: int = 0
    _last: str = ""

    @property
    def modules(self) -> set[str]:
        """The modules whose functions ran."""
        return {module for module, _ in self.functions}

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Take one event of `sys.setprofile`."""
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith(_OURS):
            return
        self.functions.add((module, frame.f_code.co_qualname))
        self.calls += 1
        self.changes += module != self._last
        self._last = module


def counted(run: Callable[[], object]) -> Counts:
    """What runs when something is called."""
    counts = Counts()
    sys.setprofile(counts.note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counts


def plain_pod(phase: Phase) -> Callable[[], bytes]:
    """A review of the recorded Pod that was answered before."""
    policies, body = (
        load_policy_set([shipped.policies_folder()], Options(table=table.load_table())),
        RECORDED.read_bytes(),
    )
    policies.compile_ahead_of_requests()
    cluster = ClusterWithAssumedNamespaces(FilesCluster())

    def answer() -> bytes:
        attributes = decode_review_bytes(body)
        return encode_response(attributes.uid, answer_request(attributes, policies, cluster, phase=phase), phase)

    answer()
    answer()
    return answer


def main() -> None:
    """Print the figures of both phases."""
    for phase in Phase:
        counts = counted(plain_pod(phase))
        figures = (len(counts.modules), len(counts.functions), counts.calls, counts.changes)
        print(f"{phase.value}: {figures[0]} modules, {figures[1]} functions, {figures[2]} calls, {figures[3]} changes")


if __name__ == "__main__":
    main()
