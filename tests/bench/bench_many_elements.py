"""Measures how long one long list or map blocks the event loop, at any place of an object.

Takes one object of each kind in the public manifests of tests/data and examples, and fills each list and map of its
type: with the existing element, and with small elements of one field or none. For each place in the code, the table
shows the review that blocked the loop longest, or ran longest without a check of the clock. A slice has 10 ms.

    python -m tests.bench.bench_many_elements
    --size 100000     bytes of the list
    --seed 1          the seed of the random elements
    --elements 2      small elements a place, each for both phases
    --over 18         milliseconds from which a review is shown
    --unchecked 8     milliseconds without a check of the clock from which a review is shown
    --only PyTorchJob kinds and places that have this in them
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tests.bench.bench_growth import review
from tests.bench.bench_long_texts import LINES, Path, objects
from tests.bench.loop_time import LoopTime, collect_garbage_as_the_server, loop_time
from tests.bench.measuring import ROOT
from webhook import assembly
from webhook.apimachinery.attributes import GroupVersionKind, Phase
from webhook.schema import type_of
from webhook.schema.types import Fields, Items, Type
from webhook.settings.shared import Settings
from webhook.workloads.podsets import group_kind

TEXTS: Final = ("a#", "a", "", "1", "gpu", "nvidia.com/g#", "cuda#", "torchrun", "$(A#)", "--port=1", "a.b/c#")
"""# is the number of the element."""
NUMBERS: Final = (1, 0, 2000)
LIST: Final = "[LIST]"


class Place(NamedTuple):
    """The path of a list or map, its type, and its first element, which is None in an empty list or map."""

    at: Path
    of: Items | Fields
    first: Any


def places(of: Type | None, value: Any, at: Path = ()) -> Iterator[Place]:
    """Yield the lists and maps of a type, and those in the first element of each. An empty list or map is searched as
    if it had an element.
    """
    if isinstance(of, Items):
        first = value[0] if isinstance(value, list) and value else None
        yield Place(at, of, first)
        yield from places(of.item, first, (*at, 0))
    elif isinstance(of, Fields):
        held = value if isinstance(value, dict) else {}
        if of.others is not None:
            key = next(iter(held), "a")
            yield Place(at, of, held.get(key))
            yield from places(of.others, held.get(key), (*at, key))
        for name, inner in of.fields.items():
            yield from places(inner, held.get(name), (*at, name))


def element(of: Type, draw: random.Random, ends: float = 0.3) -> Any:
    """Return a random small element of a type. Lists have at most one item, and objects at most one field."""
    if isinstance(of, Items):
        return [element(of.item, draw)] if draw.random() > ends else []
    if isinstance(of, Fields):
        if draw.random() < ends or not (of.fields or of.others):
            return {}
        name = draw.choice(tuple(of.fields) or TEXTS)
        return {name: element(of.fields.get(name, of.others or "any"), draw, ends)}
    if of in ("text", "any", "quantity", "intOrText"):
        return draw.choice(TEXTS)
    return draw.random() < ends if of == "truth" else draw.choice(NUMBERS)


def with_elements(obj: Any, place: Place, one: str, size: int) -> str:
    number = max(1, size // (len(one) + one.count("#") * 3 + 1))
    listed = ",".join(one.replace("#", str(index)) for index in range(number))
    listed = f"[{listed}]" if isinstance(place.of, Items) else f"{{{listed}}}"
    body = json.dumps(review(_with_value(obj, place.at, LIST)), separators=(",", ":"), default=str)
    return body.replace(json.dumps(LIST), listed)


def elements(place: Place, draw: random.Random, count: int) -> Iterator[str]:
    """Yield the existing first element with another name, and then small random elements, as JSON."""
    if place.first is not None:
        yield _as_json(place, _with_own_name(place.first), "n#")
    inner = place.of.item if isinstance(place.of, Items) else place.of.others
    for _ in range(count):
        yield _as_json(place, element(inner or "any", draw), f"{draw.choice(TEXTS)}#")


def _with_own_name(one: Any) -> Any:
    return {**one, "name": f"{one['name']}#"} if isinstance(one, dict) and isinstance(one.get("name"), str) else one


def _as_json(place: Place, one: Any, key: str) -> str:
    text = json.dumps(one, default=str)
    return text if isinstance(place.of, Items) else f"{json.dumps(key)}: {text}"


def _with_value(obj: Any, at: Path, value: Any) -> Any:
    """Return a copy of the object with the value as the first element at the path. Parents that do not exist are
    created.
    """
    changed = copy.deepcopy(obj)
    inner = changed
    for step, following in pairwise(at):
        inner = _child(inner, step, [{}] if following == 0 else {})
    if isinstance(inner, list):
        inner[:1] = [value]
    else:
        inner[at[-1]] = value
    return changed


def _child(holder: Any, step: str | int, empty: Any) -> Any:
    """Return the value one step below. If it is empty, or of another type, replace it by an empty value first."""
    if isinstance(holder, list):
        holder[:1] = holder[:1] if holder and isinstance(holder[0], type(empty)) else [empty]
        return holder[0]
    if not isinstance(holder.get(step), type(empty)) or not holder[step]:
        holder[step] = empty
    return holder[step]


def main() -> None:
    flags = argparse.ArgumentParser()
    flags.add_argument("--size", type=int, default=100_000)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--elements", type=int, default=2)
    flags.add_argument("--over", type=float, default=18.0)
    flags.add_argument("--unchecked", type=float, default=8.0)
    flags.add_argument("--only", default="")
    given = flags.parse_args()
    assembled = assembly.assemble_policies_and_context(Settings(context=(ROOT / "examples/research-team/cluster",)))
    assembled.policies.compile_ahead_of_requests()
    cluster = assembled.files.cluster_view_of_file()
    collect_garbage_as_the_server()
    draw, rows, count = random.Random(given.seed), [], 0
    for obj in objects():
        kind = GroupVersionKind(*_group_version_kind(obj))
        for place in places(type_of(kind), obj):
            where = ".".join(map(str, place.at))
            for one in elements(place, draw, given.elements) if given.only in f"{kind.kind} {where}" else ():
                body = with_elements(obj, place, one, given.size).encode()
                for phase in Phase:
                    count += 1
                    taken = _least_of_three(body, phase, assembled.policies, cluster, given)
                    if taken.whole > given.over or taken.longest > given.unchecked:
                        rows.append((taken.whole, taken.longest, phase.value, kind.kind, where, one, taken.where))
        print(f"{count} reviews, {len(rows)} shown", end="\r", file=sys.stderr, flush=True)
    print(f"{count} reviews of lists of {given.size} bytes; {len(rows)} over {given.over} or {given.unchecked} ms")
    worst = {row[-1]: row for row in sorted(rows)}  # the longest review for each place in the code
    for row in sorted(worst.values(), reverse=True)[:LINES]:
        print("{:6.1f} ms, {:5.1f} unchecked  {:8} {:20} {}: {}\n        {}".format(*row))


def _group_version_kind(obj: Any) -> tuple[str, str, str]:
    group, kind = group_kind(obj)
    return group, obj["apiVersion"].rpartition("/")[2], kind


def _least_of_three(body: bytes, phase: Phase, policies: Any, cluster: Any, given: argparse.Namespace) -> LoopTime:
    """Measure once, and up to twice more if the time is long, because other processes may have used the processor.
    Return the shortest.
    """
    taken = loop_time(body, phase, policies, cluster)
    for _ in range(2):
        if taken.whole > given.over or taken.longest > given.unchecked:
            taken = min(taken, loop_time(body, phase, policies, cluster))
    return taken


if __name__ == "__main__":
    main()
