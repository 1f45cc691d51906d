"""The input of `replay` and of the server: recorded reviews, cases of suites, and random reviews, with context."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Final

from tests import quick_yaml
from tests.fuzz.differential.epochs import Epochs
from tests.literals import TABLE
from webhook import assembly
from webhook.admission import fixtures
from webhook.admission.decode import review_of_attributes
from webhook.apimachinery.attributes import JSON, Operation, Phase
from webhook.errors import CallError
from webhook.input import shipped
from webhook.yamltext import yamlfile

_ROOT: Final = Path(__file__).parents[3]
_REVIEWS_OF_AN_EPOCH: Final = 40
_SHIPPED: Final = (Path(shipped.policies_folder()),)


@dataclass(frozen=True)
class Group:
    """Fixtures that are replayed as one input, and their context. `policies` are files and folders."""

    fixtures: tuple[JSON, ...]
    context: tuple[JSON, ...]
    policies: tuple[Path, ...] = _SHIPPED
    phase: Phase = Phase.VALIDATE

    @property
    def has_shipped_policies(self) -> bool:
        """Return whether the group has the shipped policies. Only random policies may read any field."""
        return self.policies == _SHIPPED


def groups(reviews: int, seed: int, folder: Path) -> Iterator[Group]:
    """Yield groups with at least this number of fixtures in total. At most half of them come from files.

    Args:
        reviews: the number of fixtures.
        seed: of the random numbers.
        folder: where random policies are written.
    """
    random, drawn = Random(seed), 0
    kept = [*chain(recorded_groups(), _of_suites())]
    random.shuffle(kept)
    for group in kept:
        if drawn >= reviews // 2:
            break
        drawn += len(group.fixtures)
        yield group
    for group in _random(seed, folder):
        if drawn >= reviews:
            return
        drawn += len(group.fixtures)
        yield group


def recorded_groups() -> Iterator[Group]:
    samples = assembly.objects_of_files(yamlfile.required_files([_ROOT / "deploy/samples/context"]))
    for files in ("tests/data/reviews", "deploy/samples/reviews"):
        found = [json.loads(file.read_text()) for file in sorted((_ROOT / files).glob("*.json"))]
        for start in range(0, len(found), 10):
            for phase in Phase:
                yield Group(tuple(found[start : start + 10]), samples, phase=phase)


def _of_suites() -> Iterator[Group]:
    """Yield the cases of suites. A creation becomes a plain object, and another case a review. Cases of shipped
    policies form one group.
    """
    for file in sorted(_SHIPPED[0].glob("*/suite.yaml")):
        for case in quick_yaml.load(file.read_text())["cases"]:
            held = [*case.get("params", ()), *case.get("context", ())]
            asked = case.get("input", case.get("oldInput"))
            if isinstance(asked, str) or any(isinstance(each, str) for each in held):
                continue  # names of files; the random cases have their objects
            fixture = _fixture(asked, case)
            if fixture is not None:
                phase = Phase.MUTATE if "patched" in case["expect"] else Phase.VALIDATE
                yield Group((fixture,), tuple(held), phase=phase)


def _fixture(asked: JSON, case: JSON) -> JSON | None:
    """Return a case as a file; None if no server would get its object."""
    operation = Operation(case.get("operation", "CREATE"))
    if fixtures.is_review_or_request(asked) or operation is Operation.CREATE:
        return asked
    try:
        made = fixtures.attributes_of_object(asked, TABLE.row, operation=operation, old_object=case.get("oldInput"))
    except CallError:
        return None
    return review_of_attributes(made)


def _random(seed: int, folder: Path) -> Iterator[Group]:
    """Yield reviews of random operations, and plain objects with nulls and empty values, in clusters that change."""
    epochs, random = Epochs(seed, folder), Random(seed)
    while True:
        epoch = epochs.draw(_REVIEWS_OF_AN_EPOCH)
        for number, view in enumerate(epoch.views):
            steps = [step for step in epoch.steps if step.view == number]
            for phase in Phase:
                found = [_drawn(json.loads(step.body), random) for step in steps if step.phase is phase]
                if found:
                    yield Group(tuple(found), view.objects, epoch.policies, phase)


def _drawn(sent: JSON, random: Random) -> JSON:
    obj = sent["request"]["object"]
    if obj is not None and random.random() < 0.3:
        holders = [*_holders(obj)]
        for _ in range(random.choice((0, 1, 2))):
            holder = random.choice(holders)
            if holder:
                holder[random.choice([*holder])] = random.choice((None, None, [], {}))
        if random.random() < 0.6:
            return obj
    return sent


def _holders(value: JSON) -> Sequence[JSON]:
    found = [value["spec"]] if isinstance(value.get("spec"), dict) else []
    for holder in found:
        for inner in holder.values():
            found += [each for each in (inner if isinstance(inner, list) else [inner]) if isinstance(each, dict)]
    return found or [{}]
