"""Texts of users that the server compiles: selectors and patterns.

A number chooses letters, classes, counts and operators of a body, so the server sees no text twice. All bodies need the
same amount of work.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from tests.bench.bounds.reviews import JSON, container, pod, review
from tests.bench.bounds.slow_expressions import LABEL
from tests.random_patterns import ATOMS, random_pattern

CLASSES = (r"\\pL", r"\\PN", r"\\pN", r"[^\\pL]", r"\\PL", r"[\\pL\\pN_-]", "[^a-z]")
_PARTS = (
    "{}<{}", "{}!={}", "[{}]==[{}]", "{{{0}:{0}}}=={{{0}:{1}}}", "'{}'=='{}'", "dyn({})<{}", "[{}].exists(x,x=={})",
    "device.driver!='{}.{}'", "quantity('{}')==quantity('{}')", "!({}>{})", "('{}'+'{}').size()>0",
)  # fmt: skip


def _claim(name: str, selectors: list[str]) -> JSON:
    listed = [{"cel": {"expression": expression}} for expression in selectors]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "selectors": listed}}
    metadata = {"name": name, "namespace": "attackers"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": [request]}},
    }


def heavy_pattern(chosen: random.Random) -> str:
    """Return a pattern that RE2 compiles in about a hundred milliseconds: `q1(\\pL{200}|…){8}`, with random classes and
    counts.
    """
    parts = (f"{chosen.choice(CLASSES)}{{{chosen.randint(150, 250)}}}" for _ in range(chosen.randint(6, 9)))
    return f"{chosen.choice('qrstuv')}{chosen.randrange(10**4)}({'|'.join(parts)})"


def heavy_patterns(count: int, number: int) -> bytes:
    """Return the review of a claim with this number of selectors. Each selector has one heavy pattern."""
    chosen = random.Random(number)
    return review(_claim(f"c-{number}", [f"device.driver.matches('{heavy_pattern(chosen)}')" for _ in range(count)]))


def long_expression(size: int, number: int) -> bytes:
    """Return the review of a claim with one selector of this length, made of `1<2&&` and other texts that compile
    slowly.
    """
    chosen, parts, length = random.Random(number), [], 0
    of = chosen.sample(_PARTS, chosen.randint(1, 3))
    while length < size:
        parts.append(chosen.choice(of).format(chosen.randrange(10), chosen.randrange(10)))
        length += len(parts[-1]) + 2
    return review(_claim(f"c-{number}", [chosen.choice(("&&", "||")).join(parts[:-1])]))


def unknown_names(number: int) -> bytes:
    """Return the review of a claim with one selector of 10 KB of unknown names."""
    return review(_claim(f"c-{number}", [f"[n{number}, {', '.join(['a'] * 3_300)}].size() > 0"]))


def repeated_operand(number: int) -> bytes:
    """Return the review of a claim with 60 nested calls of `optMap`. The innermost operand has a mistake."""
    return review(_claim(f"c-{number}", [f"n{number}{'.optMap(a, a)' * 60}.hasValue()"]))


def random_selectors(number: int) -> bytes:
    """Return the review of a claim with one to ten selectors: deep, wide, with counts, with classes, or invalid."""
    chosen = random.Random(number)
    return review(_claim(f"c-{number}", [random_selector(chosen) for _ in range(chosen.randint(1, 10))]))


def random_selector(chosen: random.Random) -> str:
    """Return a selector of a random form: wide, deep, with counts, with classes, or invalid."""
    kind = chosen.randrange(6)
    if kind == 0:
        return "&&".join(chosen.choice(_PARTS).format(chosen.randrange(9), "1") for _ in range(chosen.randint(1, 300)))
    if kind == 1:
        depth = chosen.randint(1, 12)
        return "[1,2].exists(x," * depth + "x==1" + ")" * depth
    if kind == 2:
        depth = chosen.randint(1, 400)
        return "(" * depth + "true" + ")" * depth
    if kind == 3:
        return "".join(chosen.choice("()[]'\"!&|<>=.,+-ab12 \\") for _ in range(chosen.randint(1, 4000)))
    pattern = random_pattern(chosen, chosen.randint(1, 6)) * chosen.choice((1, 1, 1, 10))
    if kind == 4:
        pattern = "".join(chosen.choice(ATOMS) for _ in range(chosen.randint(1, 500)))
    text = pattern[:3000].replace("\\", "\\\\").replace("'", "")
    return f"device.driver.matches('{text}')"


def patterns_of_objects(number: int) -> bytes:
    """Return the review of a Pod with patterns in its arguments, which a policy of the site compiles."""
    chosen = random.Random(number)
    words = [heavy_pattern(chosen).replace("\\\\", "\\") if i % 5 == 0 else _word(chosen) for i in range(40)]
    made = pod({"containers": [container("main", args=words)]}, {"annotations": {"text": "abc é世 " * 200}})
    return review({**made, "metadata": {**made["metadata"], "labels": {LABEL: "patterns-of-objects"}}})


def _word(chosen: random.Random) -> str:
    return random_pattern(chosen, chosen.randint(1, 6))[:4000]


VARIED: dict[str, Callable[[int], bytes]] = {
    "claims with 20 heavy patterns, 2.9 KB": partial(heavy_patterns, 20),
    "claims with 80 heavy patterns, 10 KB": partial(heavy_patterns, 80),
    "claims with one heavy pattern": partial(heavy_patterns, 1),
    "selectors of 10 KB": partial(long_expression, 10_000),
    "selectors of 700 characters": partial(long_expression, 700),
    "selectors of unknown names": unknown_names,
    "selectors that repeat a mistake": repeated_operand,
    "random selectors and patterns": random_selectors,
    "patterns of objects": patterns_of_objects,
}
