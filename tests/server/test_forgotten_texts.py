"""The server keeps no long text of a user after the answer. A cache of such texts would fill the memory in minutes.

The test looks at all objects of the garbage collector, so it also finds unknown tables.
"""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from tests.growth import LISTS, review
from tests.literals import shipped_policies
from tests.server.asgi import Running, review_of
from webhook import assembly
from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request as answer
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.deadline import Deadline
from webhook.yamltext import yamlfile

MARK = "long-text-of-a-user"
LONG = 20_000
CLUSTER = Path(__file__).parents[2] / "examples" / "research-team" / "cluster"
UNTRACKED = (dict, tuple, list)


def long_text(number: int) -> str:
    return f"{MARK}-{number}-".ljust(LONG, "x")


def lengthened(value: JSON, numbers: Iterator[int], chance: random.Random) -> JSON:
    """Replace about every tenth text or key with a long text. A text may stay as the beginning of its replacement."""
    if isinstance(value, dict):
        return {
            long_text(next(numbers)) if "/" in key and chance.random() < 0.1 else key: lengthened(each, numbers, chance)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [lengthened(each, numbers, chance) for each in value]
    if not isinstance(value, str) or chance.random() > 0.1:
        return value
    return chance.choice((value, "")) + long_text(next(numbers))


def held() -> list[str]:
    gc.unfreeze()  # tests/conftest.py froze the tables of modules
    gc.collect()
    found = [text for each in gc.get_objects() for text in _texts(each)]
    return sorted({text[: len(MARK) + 60] for text in found})


def _texts(holder: Any) -> Iterator[str]:
    for each in gc.get_referents(holder):
        if isinstance(each, str):
            if len(each) >= LONG and MARK in each:
                yield each
        elif isinstance(each, UNTRACKED) and not gc.is_tracked(each):
            yield from _texts(each)


def test_objects_seen_by_policies_are_not_kept() -> None:
    chance, numbers, policies = random.Random(7), count(), shipped_policies()
    cluster = ClusterWithAssumedNamespaces(FilesCluster(assembly.objects_of_files(yamlfile.required_files([CLUSTER]))))

    def ask() -> None:
        for make in LISTS.values():
            asked, obj = review(make(2)), make(2)
            kind = {key: obj.pop(key) for key in ("apiVersion", "kind")}
            asked["request"]["object"] = kind | lengthened(obj, numbers, chance)
            body = json.dumps(asked).encode()
            for phase in Phase:
                answer(decode_review_bytes(body), policies, cluster, phase=phase, deadline=Deadline())

    for _ in range(4):
        ask()
    assert next(numbers) > 300
    assert held() == []


def test_the_user_of_a_request_is_not_kept() -> None:
    running = Running()
    for number in range(20):
        user = {"username": long_text(number), "groups": [long_text(number)]}
        asked = review_of(userInfo=user, name=long_text(number))
        assert running.post("/validate", asked).json()["response"]["allowed"]
        del asked, user
    running.stream.seek(0)
    running.stream.truncate()
    assert held() == []
