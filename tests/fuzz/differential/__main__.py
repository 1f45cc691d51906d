"""Compares a long-lived process with a fresh evaluation of every review.

    python -m tests.fuzz.differential [REVIEWS [SEED]]        20,000 reviews by default

Policies of a site and shipped ones, reviews, reloads and changes of clusters are random. Whole verdicts are compared,
without times. A difference is shown with the review, the policies, and the earlier review that causes it. Exits 1 after
a difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.differential.comparison import compare


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.fuzz.differential")
    flags.add_argument("reviews", type=int, nargs="?", default=20_000)
    flags.add_argument("seed", type=int, nargs="?", default=1)
    flags.add_argument("--most", type=int, default=3, help="differences after which it stops")
    given = flags.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="differential-") as folder:
        result = compare(given.reviews, given.seed, Path(folder), given.most)
        for difference in result.differences:
            print(difference.told(), flush=True)
    reached = ", ".join(f"{count} {outcome}" for outcome, count in result.outcomes.most_common())
    print(f"{result.compared} reviews of seed {given.seed} in {time.monotonic() - started:.0f} s: {reached}")
    print(f"{len(result.differences)} differ")
    return bool(result.differences)


if __name__ == "__main__":
    sys.exit(main())
