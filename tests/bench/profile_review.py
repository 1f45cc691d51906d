"""Where one review spends its time: `make profile REVIEW=file`, or `python -m tests.bench.profile_review FILE`.

FILE is an AdmissionReview, a request or a plain object, as for `claimgate replay`. The review is answered many times as
by a server, from bytes to bytes, by the shipped policies or those of --only. The output has:

- the time without a profiler
- the modules, functions and calls of the project in one review, and the calls that lead into another module
- the functions with the most own time, by cProfile, which exaggerates the cost of calls

    --phase mutate        the other phase
    --context DIR         objects of the cluster
    --only DIR            other policies
    --times 2000          reviews that are measured
    --lines 40            functions that are shown
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, Final

from webhook import assembly
from webhook.admission import fixtures
from webhook.admission.decode import decode_review_bytes
from webhook.admission.decode import review_of_attributes as envelope
from webhook.admission.respond import encode_response
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Attributes, Phase
from webhook.errors import InputError
from webhook.input import documents
from webhook.settings.shared import Settings

ROOT: Final = Path(__file__).parents[2]
WARM: Final = 50
"""Reviews before the first one that counts"""
BATCHES: Final = 200


@dataclass
class Passed:
    functions: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0
    changes: int = 0
    _last: str = ""

    @property
    def modules(self) -> set[str]:
        return {module for module, _ in self.functions}

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.partition(".")[0] == "webhook":
            self.functions.add((module, frame.f_code.co_qualname))
            self.calls += 1
            self.changes += module != self._last
            self._last = module


def passed(run: Callable[[], object]) -> Passed:
    result = Passed()
    sys.setprofile(result.note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return result


def median_s(run: Callable[[], object], times: int) -> float:
    measured = []
    for _ in range(times):
        start = perf_counter()
        run()
        measured.append(perf_counter() - start)
    return statistics.median(measured)


def answering(file: str, settings: Settings, phase: Phase) -> Callable[[], bytes]:
    """Return a function that answers the first review of a file. The function has already run a few times.

    Raises:
        InputError: the file, a policy or the context cannot be read.
    """
    inputs = documents.read_documents([file])
    if problems := (*inputs.problems, *documents.problem_of_nothing_read([file], inputs, "review")):
        raise InputError(*problems)
    assembled = assembly.assemble_policies_and_context(settings)
    assembled.policies.compile_ahead_of_requests()
    sent = fixtures.attributes_of_fixture(inputs.documents[0].value, assembled.table.row)
    cluster = assembled.files.cluster_view_of_file()
    body = json.dumps(envelope(sent), separators=(",", ":")).encode()

    def answer() -> bytes:
        attributes: Attributes = decode_review_bytes(body)
        verdict = answer_request(attributes, assembled.policies, cluster, phase=phase)
        return encode_response(attributes.uid, verdict, phase, attributes.operation)

    for _ in range(WARM):
        answer()
    return answer


def own_times(run: Callable[[], object], times: int) -> list[tuple[float, float, str]]:
    """Yield the own microseconds, calls and name of every function in one run, the slowest first.

    The runs are profiled in batches. The fastest batch counts, because other work of a busy machine slows some batches.
    """
    size = max(1, times // BATCHES)
    quickest = min((_profiled(run, size) for _ in range(BATCHES)), key=lambda stats: stats.total_tt)  # type: ignore[attr-defined]
    rows = [
        (own * 1e6 / size, calls / size, _name(*place))
        for place, (_, calls, own, _, _) in quickest.stats.items()  # type: ignore[attr-defined]
        if not place[0].endswith("profile_review.py")
    ]
    return sorted(rows, reverse=True)


def _profiled(run: Callable[[], object], times: int) -> pstats.Stats:
    profile = cProfile.Profile()
    profile.runcall(lambda: [run() for _ in range(times)])
    return pstats.Stats(profile)


def _name(file: str, line: int, function: str) -> str:
    """Return the place of a function, such as `webhook/apimachinery/paths.py:12 get`, or the name of a built-in
    function.
    """
    if file == "~":
        return function
    path = Path(file)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name}:{line} {function}"


def show(run: Callable[[], object], times: int, lines: int) -> None:
    found = passed(run)
    print(f"{median_s(run, times) * 1e3:.3f} ms a review, median of {times}")
    print(
        f"{len(found.modules)} modules, {len(found.functions)} functions, {found.calls} calls, "
        f"{found.changes} changes of module"
    )
    rows = own_times(run, times)
    whole = sum(own for own, _, _ in rows)
    print(f"\n{'own us':>9} {'share':>6} {'calls':>8}  function")
    for own, calls, name in rows[:lines]:
        print(f"{own:>9.2f} {own / whole:>6.1%} {calls:>8.1f}  {name}")


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.bench.profile_review")
    flags.add_argument("file", help="a review, a request or an object, in JSON or YAML")
    flags.add_argument("--phase", type=Phase, choices=tuple(Phase), default=Phase.VALIDATE)
    flags.add_argument("--only", type=Path, action="append", default=[])
    flags.add_argument("--context", type=Path, action="append", default=[])
    flags.add_argument("--times", type=int, default=1000, help="reviews that are measured")
    flags.add_argument("--lines", type=int, default=25, help="functions that are shown")
    given = flags.parse_args()
    settings = Settings(only=tuple(given.only), context=tuple(given.context))
    try:
        run = answering(given.file, settings, given.phase)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    show(run, given.times, given.lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
