"""Measures how long one long text blocks the event loop, at any place of an object.

Makes each text and key long, in one object of each kind in the public manifests of tests/data and examples. The review
runs as on the event loop, which ends it after its slice of 10 ms and leaves the rest to a worker. The table shows the
reviews that blocked the loop longest. bench_many_elements does the same with long lists and maps.

    python -m tests.bench.bench_long_texts
    --size 300000     characters of the text
    --seed 1          the seed of the random texts
    --texts 4         texts for each place
    --over 18         milliseconds from which a review is shown
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections.abc import Iterator
from typing import Any, Final

import yaml

from tests import quick_yaml
from tests.bench.bench_growth import review
from tests.bench.loop_time import loop_time
from tests.bench.measuring import ROOT
from webhook import assembly
from webhook.apimachinery.attributes import Phase
from webhook.settings.shared import Settings

LARGEST_MANIFEST: Final = 20_000
LINES: Final = 40
PIECES: Final = (
    "x", "7", "<", "a.b-", "a/", "a:\n", "a ", "a.b==1&&", "$(A)", "{{x}}", '{"a":[', "A=b; torchrun --nnodes=2 $A\n",
)  # fmt: skip
Path = tuple[str | int, ...]


def objects() -> Iterator[Any]:
    """Yield one object of each kind in the public manifests: the second largest if there are several."""
    found: dict[tuple[str, str], list[Any]] = {}
    for file in sorted(path for folder in ("tests/data", "examples") for path in (ROOT / folder).rglob("*.yaml")):
        for obj in _documents(file.read_text()):
            if (
                isinstance(obj, dict)
                and {"apiVersion", "kind", "metadata"} <= set(obj)
                and len(json.dumps(obj, default=str)) < LARGEST_MANIFEST
            ):
                found.setdefault((str(obj.get("apiVersion")), str(obj.get("kind"))), []).append(obj)
    for listed in found.values():
        listed.sort(key=lambda obj: -len(json.dumps(obj, default=str)))
        yield listed[:2][-1]


def _documents(text: str) -> list[Any]:
    try:
        return list(quick_yaml.load_all(text))
    except yaml.YAMLError:  # a template of Helm, or a file that is broken for a test
        return []


def places(value: Any, at: Path = ()) -> Iterator[tuple[Path, bool]]:
    """Yield the path of each text and key, with True for a key. In a list, only the first item is searched."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if at or key not in ("apiVersion", "kind"):
                yield (*at, key), True
                yield from places(inner, (*at, key))
    elif isinstance(value, list):
        yield from places(value[0], (*at, 0)) if value else ()
    elif isinstance(value, str):
        yield at, False


def with_text(obj: Any, at: Path, text: str, *, is_key: bool) -> Any:
    changed = copy.deepcopy(obj)
    inner = changed
    for step in at[:-1]:
        inner = inner[step]
    if is_key:
        inner[text] = inner.pop(at[-1])
    else:
        inner[at[-1]] = text
    return changed


def main() -> None:
    flags = argparse.ArgumentParser()
    flags.add_argument("--size", type=int, default=300_000)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--texts", type=int, default=4)
    flags.add_argument("--over", type=float, default=18.0)
    given = flags.parse_args()
    draw, rows, count = random.Random(given.seed), [], 0
    assembled = assembly.assemble_policies_and_context(Settings())
    assembled.policies.compile_ahead_of_requests()
    cluster = assembled.files.cluster_view_of_file()
    for obj in objects():
        for at, is_key in places(obj):
            for piece in draw.sample(PIECES, given.texts):
                text = piece * (given.size // len(piece))
                body = json.dumps(review(with_text(obj, at, text, is_key=is_key)), default=str).encode()
                taken = loop_time(body, draw.choice(list(Phase)), assembled.policies, cluster).whole
                count += 1
                if taken > given.over:
                    rows.append((taken, obj["kind"], ".".join(map(str, at)), "key" if is_key else "text", repr(piece)))
        print(f"{count} reviews, {len(rows)} over {given.over} ms", end="\r", file=sys.stderr, flush=True)
    print(f"{count} reviews of texts of {given.size} characters; {len(rows)} held the loop for over {given.over} ms")
    for row in sorted(rows, reverse=True)[:LINES]:
        print(f"{row[0]:8.1f} ms  {row[1]:24} {row[3]:5} {row[4]:32} {row[2]}")


if __name__ == "__main__":
    main()
