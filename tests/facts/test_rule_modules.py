"""Whoever reads the id of a rule guesses its module from the names of the files: ARCHITECTURE.md, "The module of a rule"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from webhook.facts.packages import FactPackage
from webhook.facts.registry import SHIPPED, rules_of_package
from webhook.problems.rule import Rule
from webhook.suites.rule_homes import RuleLocator

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "webhook" / "facts"
OF_ALL_RULES = {"__init__", "checks", "fact", "fact_values", "groups", "types"}
"""Modules that every package may have. None of them finds what breaks a rule."""
SMALL_WORDS = {"and", "of", "the", "for"}
MOST_EXCEPTIONS: Final = 8
"""Of about 640 rules: the home of nearly all follows from the id by words alone."""
EXCEPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "pods/pod_resources.py": (
        "what is refused of one amount is decided in one place, whoever requests it",
        "pod-resources/pod-level-name",
    ),
    "trainer/train_job_processes_and_gpus.py": (
        "GPUs are lost otherwise than claims",
        "train-job/lost-gpus",
    ),
    "training_jobs/processes_world_size_and_gpus.py": (
        "one function compares the processes of all roles with their GPUs",
        "training-job/nproc-and-gpus",
    ),
    "training_jobs/mpi_launcher_slots_and_nodes.py": (
        "the nodes of MPIJobs, and not those of torchrun",
        "training-job/nodes-for-ranks",
    ),
    "kueue/queue_admission_checks.py": (
        "flavors of an admission check",
        "kueue-queue/check-flavor",
    ),
}
"""Modules, why their rules have other words, and these rules."""


def stem(word: str) -> str:
    """A word without its ending, so that `tolerations` and `toleration` are one word."""
    word = re.sub("ies$", "y", word)
    word = re.sub("(?<=..)(?<!s)s$", "", word)
    return re.sub("(?<=....)(ation|ion|ing|ed|e)$", "", word)


def words_of(name: str) -> list[str]:
    return [word for word in re.split("[-_]", name) if word not in SMALL_WORDS]


def is_same(one: str, other: str) -> bool:
    """Whether two words are one, or one is the beginning or the end of the other, such as `tune` and `torchtune`."""
    return any(
        stem(word) == stem(longer)
        or (len(stem(word)) >= 4 and longer.startswith(stem(word)))
        or (len(word) >= 4 and longer.endswith(word) and len(longer) - len(word) > 2)
        for word, longer in ((one, other), (other, one))
    )


def has(word: str, words: list[str]) -> bool:
    return any(is_same(word, other) for other in words)


@cache
def modules_of(package: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (FACTS / package).glob("*.py") if path.stem not in OF_ALL_RULES))


def ranks(rule: Rule, folder: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """How little the name of each module of a folder fits a rule, and its path: the smallest fits best."""
    prefix, _, name = rule.id.replace("-", "_").partition("/")
    group, wanted = words_of(prefix), [word for word in words_of(name) if not has(word, words_of(prefix))]
    for module in modules_of(folder):
        words = words_of(module)
        path = module if folder == "train_job_pods" else f"{folder}_{module}"
        is_of_group = folder.replace("_", "").removesuffix("s") == prefix.replace("_", "").removesuffix("s") or any(
            f"{start}_".startswith(f"{prefix}_") for start in (module, path)
        )
        may_be = all(has(word, [*words_of(folder), folder, *words]) for word in group) or folder == "".join(group)
        shared = [word for word in wanted if has(word, words)]
        others = [word for word in words if not has(word, group) and not has(word, wanted)]
        first = wanted.index(shared[0]) if shared else len(wanted)
        yield (not is_of_group, not may_be, -len(shared), len(others), first), f"{folder}/{module}.py"


def guesses(rule: Rule, package: FactPackage) -> list[str]:
    """The modules that a reader would open first; several where their names fit as well."""
    folder = package.module.rsplit(".", 1)[1]
    folders = [folder, "train_job_pods"] if folder == "trainer" else [folder]
    ranked = sorted(rank for each in folders for rank in ranks(rule, each))
    return [module for fit, module in ranked if fit == ranked[0][0]]


@cache
def misses() -> dict[str, list[str]]:
    """The modules whose rules are not found where their ids say, with the names of these rules."""
    homes, missed = RuleLocator(), dict[str, list[str]]()
    for package in SHIPPED.packages:
        for rule in rules_of_package(package):
            (home,) = homes.find_in_checks(rule)
            module = str(Path(home.file).relative_to("webhook/facts"))
            if guesses(rule, package) != [module]:
                missed.setdefault(module, []).append(rule.id)
    return missed


def test_a_rule_is_found_where_its_id_says() -> None:
    """A new rule goes where its id says, or its module is named anew; few exceptions have their reason."""
    listed = {module: sorted(rules) for module, (_, *rules) in EXCEPTIONS.items()}
    assert {module: sorted(rules) for module, rules in misses().items()} == listed


def test_exceptions_are_few() -> None:
    assert sum(len(rules) - 1 for rules in EXCEPTIONS.values()) < MOST_EXCEPTIONS


@pytest.mark.parametrize("module", EXCEPTIONS)
def test_every_exception_has_its_reason(module: str) -> None:
    assert (FACTS / module).exists()
    assert EXCEPTIONS[module][0]
