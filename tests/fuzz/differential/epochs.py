"""Draws epochs: a set of policies, a cluster that changes, and the reviews between two reloads."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz.differential.answers import Epoch, Step, View, load
from tests.fuzz.differential.cluster_changes import Clusters
from tests.fuzz.differential.random_reviews import Reviews
from tests.fuzz.differential.site_policies import SitePolicies
from webhook.apimachinery.attributes import JSON, Phase
from webhook.errors import PolicyError
from webhook.input import shipped

_MOST_POLICIES: Final = 6


class Epochs:
    """Draws epochs. The same seed gives the same epochs."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._random = Random(seed)
        self._folder = folder
        self._policies = SitePolicies(self._random)
        self._clusters = Clusters(self._random)
        self._drawn = 0

    def draw(self, reviews: int) -> Epoch:
        random, self._drawn = self._random, self._drawn + 1
        policies = self._set()
        drawn, views, steps = Reviews(random), list[View](), list[Step]()
        for number in range(reviews):
            if number == 0 or random.random() < 0.08:
                self._clusters.change()
                views.append(View(self._clusters.objects(), self._clusters.is_complete))
            phase = Phase.VALIDATE if random.random() < 0.6 else Phase.MUTATE
            steps.append(Step(drawn.draw(), phase, len(views) - 1))
        return Epoch(policies, tuple(views), tuple(steps))

    def _set(self) -> tuple[Path, ...]:
        """Return folders with policies of a site, with the shipped policies, or with both."""
        random = self._random
        chosen = random.choices(("site", "shipped", "both"), (70, 18, 12))[0]
        places = [] if chosen == "site" else [Path(shipped.policies_folder())]
        if chosen != "shipped":
            places.append(self._written(random.randint(1, _MOST_POLICIES)))
        return tuple(places)

    def _written(self, count: int) -> Path:
        """Write random policies that an API server would accept, and return their folder."""
        items: list[JSON] = []
        while count:
            policy = self._policies.draw(f"site-{count}")
            if self._is_taken(policy):
                items += policy
                count -= 1
        return self._write(self._folder / f"epoch-{self._drawn}.json", items)

    def _is_taken(self, policy: list[JSON]) -> bool:
        file = self._write(self._folder / "drawn.json", policy)
        try:
            load((file,))
        except PolicyError:
            return False
        return True

    def _write(self, file: Path, items: list[JSON]) -> Path:
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return file
