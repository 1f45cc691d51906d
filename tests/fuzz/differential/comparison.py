"""Compares the answers of a long-lived process with fresh ones, and finds the earlier review that changed an answer."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.fuzz.differential.answers import Epoch, Step, Warm, fresh_answers
from tests.fuzz.differential.epochs import Epochs
from tests.fuzz.differential.random_reviews import recorded

REVIEWS_OF_AN_EPOCH: Final = 60


@dataclass(frozen=True)
class Difference:
    """A review with different answers. `number` counts the reviews of the run."""

    number: int
    epoch: Epoch
    step: Step
    warm: str
    fresh: str
    cause: Step | None

    def told(self) -> str:
        changed = difflib.unified_diff(self.fresh.split("\n"), self.warm.split("\n"), "fresh", "warm", n=0, lineterm="")
        before = "no single earlier review of this epoch" if self.cause is None else _shown(self.cause)
        written = [file.read_text() for file in self.epoch.policies if file.is_file()] or ["the shipped ones"]
        return "\n".join(
            (
                f"review {self.number} differs:",
                *changed,
                f"the review: {_shown(self.step)}",
                f"after: {before}",
                f"policies: {' and '.join(written)}",
            )
        )


def _shown(step: Step) -> str:
    request = json.loads(step.body)["request"]
    return f"{step.phase} in view {step.view}: {json.dumps(request)}"


@dataclass
class Comparison:
    compared: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    def add(self, epoch: Epoch, warm: Sequence[str], fresh: Sequence[str]) -> None:
        for place, (had, right) in enumerate(zip(warm, fresh, strict=True)):
            self.compared += 1
            self.outcomes.update(outcomes(right))
            if had != right:
                cause = _cause(epoch, place, right)
                self.differences.append(Difference(self.compared, epoch, epoch.steps[place], had, right, cause))


_SIGNS: Final = {
    "denied": "(False, ",
    "patched": "{'op': ",
    "audited": "validation.policy.admission.k8s.io/",
    "failed": "evaluation='error'",
    "not evaluated": "evaluation='unknown'",
    "over the budget": "out of cost budget",
    "over the limit": "actual cost limit exceeded",
    "problems": "problems=(Problem(",
    "namespace absent": '" not found',
}
"""The features that a run should reach, with the text of an answer"""


def outcomes(answer: str) -> Iterator[str]:
    yield from (outcome for outcome, sign in _SIGNS.items() if sign in answer)


def compare(reviews: int, seed: int, folder: Path, most: int) -> Comparison:
    """Draw reviews and compare the answers.

    Args:
        reviews: how many are drawn.
        seed: of the random numbers.
        folder: where policies are written.
        most: the comparison ends after this number of differences.
    """
    recorded()  # read once, before processes are forked
    epochs, warm, result = Epochs(seed, folder), Warm(), Comparison()
    try:
        while result.compared < reviews and len(result.differences) < most:
            epoch = epochs.draw(min(REVIEWS_OF_AN_EPOCH, reviews - result.compared))
            warm.begin(epoch)
            right = fresh_answers(epoch, [(step,) for step in epoch.steps])
            result.add(epoch, warm.answers(), right)
    finally:
        warm.stop()
    return result


def _cause(epoch: Epoch, place: int, right: str) -> Step | None:
    """Return the earlier review after which even a fresh process gives a different answer."""
    cases = [(step, epoch.steps[place]) for step in epoch.steps[:place]]
    answers = fresh_answers(epoch, cases)
    return next((case[0] for case, had in zip(cases, answers, strict=True) if had != right), None)
