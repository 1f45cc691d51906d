"""Random regular expressions with nesting, alternatives, counts and Unicode classes. claimgate refuses some of them."""

from __future__ import annotations

import random

ATOMS = (
    "a", "x", "K", ".", r"\pL", r"\PN", r"\pN", r"\p{Greek}", r"\p{Han}", r"\d", r"\w", r"\W", "[a-z]", "[^a-z]",
    r"[^\pL]", "[[:alpha:]]", "[[:^word:]]", r"\b", "^", "$", r"[\x{0}-\x{10ffff}]", "é", "世", "(?i:ß)", "(?s:.)",
    r"\PL", r"[^\x{80}-\x{10fff0}]", r"\pC", r"[\pL\pN_-]", "gpu", "A100",
)  # fmt: skip
COUNTS = ("*", "+", "?", "{2}", "{10}", "{200}", "{1000}", "{0,10}", "{3,}", "{0,63}", "{0,253}", "{5,40}", "{25}")


def random_pattern(chosen: random.Random, depth: int) -> str:
    kind = chosen.random()
    if depth <= 0 or kind < 0.35:
        return chosen.choice(ATOMS)
    if kind < 0.6:
        return "".join(random_pattern(chosen, depth - 1) for _ in range(chosen.randint(1, 4)))
    if kind < 0.75:
        return "(" + "|".join(random_pattern(chosen, depth - 1) for _ in range(chosen.randint(1, 6))) + ")"
    return f"(?:{random_pattern(chosen, depth - 1)}){chosen.choice(COUNTS)}"
