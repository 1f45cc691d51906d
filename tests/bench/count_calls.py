"""How much code one review passes through: `python -m tests.bench.count_calls` prints modules, functions and changes.

Counts a warm review of a recorded Pod by the shipped policies, from bytes to bytes. A change is a call into another
module, or the return from it. The figures show how much code a person reads to follow one review. Frames are those on
the stack at the first check, from the core (`answer_request`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from webhook.admission.decode import decode_review_bytes
from webhook.admission.respond import encode_response
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.facts.check import problems_of_group
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.workloads import table

RECORDED: Final = Path(__file__).parents[1] / "data" / "reviews" / "controller-replicaset-controller-create-pods.json"
_OURS: Final = "webhook."
_QUESTIONS: Final = ("webhook.facts.check", "webhook.facts.subject")


@dataclass
class Counts:
    """Counts of one review: functions of the project that ran, calls, changes of the module, and the depth of the first
    check.
    """

    functions: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0
    changes: int = 0
    frames: int = 0
    _last: str = ""

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.functions}

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event != "call" or not module.startswith(_OURS):
            return
        self.functions.add((module, frame.f_code.co_qualname))
        self.calls += 1
        self.changes += module != self._last
        self._last = module
        if not self.frames and _is_check(frame):
            self.frames = len([*_frames_of_core(frame)])


def _is_check(frame: FrameType) -> bool:
    """Return whether the frame runs a check. The test whether to run a check does not count."""
    caller = frame.f_back
    module = frame.f_globals["__name__"]
    is_called = caller is not None and caller.f_code is problems_of_group.__code__
    return is_called and module.startswith("webhook.facts.") and module not in _QUESTIONS


def _frames_of_core(frame: FrameType) -> Iterator[FrameType]:
    """Yield a frame and its callers, up to `answer_request`."""
    at: FrameType | None = frame
    while at is not None:
        yield at
        at = None if at.f_code is answer_request.__code__ else at.f_back


def counted(run: Callable[[], object]) -> Counts:
    counts = Counts()
    sys.setprofile(counts.note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return counts


def plain_pod(phase: Phase) -> Callable[[], bytes]:
    """Return a function that answers a review of the recorded Pod. It has already answered one review."""
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
    for phase in Phase:
        counts = counted(plain_pod(phase))
        figures = (len(counts.modules), len(counts.functions), counts.calls, counts.changes)
        print(f"{phase.value}: {figures[0]} modules, {figures[1]} functions, {figures[2]} calls, {figures[3]} changes")
        if counts.frames:
            print(f"the first check is frame {counts.frames} of the core")


if __name__ == "__main__":
    main()
