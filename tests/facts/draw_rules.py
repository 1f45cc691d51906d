"""Random rules with their modules, for a person who guesses the module from the id: `python -m tests.facts.draw_rules`.

The seed is printed, so two readers can get the same rules.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

from webhook.facts.subject import SHIPPED, rules_of_package
from webhook.suites.rule_homes import RuleLocator


def drawn(seed: int, count: int) -> Iterator[tuple[str, str]]:
    rules = sorted(
        (rule for package in SHIPPED.packages for rule in rules_of_package(package)),
        key=lambda rule: rule.id,
    )
    homes = RuleLocator()
    for rule in random.Random(seed).sample(rules, count):
        (home,) = homes.find_in_checks(rule)
        yield rule.id, str(home)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--count", type=int, default=50)
    given = parser.parse_args()
    print(f"seed {given.seed}")
    for rule, home in drawn(given.seed, given.count):
        print(f"{rule}\t{home}")
