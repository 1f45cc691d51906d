"""Compares the answers of `claimgate replay` with those of a running server over TLS.

    python -m tests.fuzz.doors [REVIEWS [SEED]]        10,000 reviews by default

The input is recorded reviews, the cases of suites and random reviews, as reviews and as plain objects. Both sides get
the same policies and context. Whole response documents are compared. Exits 1 after a difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.doors.comparison import compare


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.fuzz.doors")
    flags.add_argument("reviews", type=int, nargs="?", default=10_000)
    flags.add_argument("seed", type=int, nargs="?", default=1)
    flags.add_argument("--most", type=int, default=3, help="differences after which it stops")
    given = flags.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="doors-") as folder:
        result = compare(given.reviews, given.seed, Path(folder), given.most)
    for difference in result.differences:
        print(difference.told(), flush=True)
    reached = ", ".join(f"{count} {outcome}" for outcome, count in result.outcomes.most_common())
    print(f"{result.compared} reviews of seed {given.seed} in {time.monotonic() - started:.0f} s: {reached}")
    print(f"{len(result.differences)} differ")
    return bool(result.differences)


if __name__ == "__main__":
    sys.exit(main())
