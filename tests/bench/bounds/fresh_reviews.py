"""Reviews in which no name is repeated, from objects and users to arguments and queues.

The objects are those of the shipped policies' suites and of every list that a user can lengthen, so each kind and each
rule gets new texts. In half of them, all names get the same new end, and references by name still work. In the others,
any text may get a new value, which gives many findings. A client must cost less than the server, so bodies are made
once and filled in for each review.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from tests.bench import traffic
from tests.bench.bounds.calls import UID
from tests.growth import LISTS, review
from webhook.apimachinery.attributes import JSON

ROOT = Path(__file__).parents[3]
TOKEN, DIGITS, PADDING = "qzjqzjqz", "70707070", "paddingpadding"
"""Placeholders for unique values: eight hexadecimal digits, eight decimal digits, and a text of any length."""
_FIXED = frozenset({"apiVersion", "kind", "operator", "effect", "restartPolicy", "matchAttribute", "apiGroup", "op"})
_NAMES = frozenset(
    ["name", "namespace", "image", "key", "value", "claimName", "queue", "queueName", "path", "nodeName"]
)
_LARGE_EVERY, _LARGE, _PADDED = 250, 90_000, 6_000
_CHANGED_TEXTS = 0.3
_ORDINARY = (traffic.pod, traffic.gpu_pod, traffic.claim_pod, traffic.OBJECTS["Volcano Job"])


class FreshReviews:
    """Makes a different review for each number. Reviews of two numbers have no name in common."""

    def __init__(self, inputs: Iterable[tuple[JSON, JSON]], every: int) -> None:
        """Args:
        inputs: pairs of an object and, for an update, the old object.
        every: one in this many reviews is about these inputs. The others are about ordinary objects, and ten times as
            fast.
        """
        chance, self._every = random.Random(7), every
        made = [_request(new, old, names_only, chance) for new, old in inputs for names_only in (True, False)]
        chance.shuffle(made)
        self._bodies = [body for body in made if len(body) < _LARGE // 2]
        ordinary = [make(number) for number in range(20) for make in _ORDINARY]
        self._ordinary = [_request(each, None, True, chance) for each in ordinary]

    def __len__(self) -> int:
        """Return the number of reviews after which an object is repeated with other names."""
        return len(self._bodies) * self._every

    def body(self, number: int) -> bytes:
        """Return the body of the review with this number. The uid is filled in later."""
        chance = random.Random(number)
        length = _LARGE if number % _LARGE_EVERY == 0 else int(chance.random() ** 4 * _PADDED)
        turn, rest = divmod(number, self._every)
        bodies = self._ordinary if rest else self._bodies
        body = bodies[turn % len(bodies)].replace(PADDING.encode(), b"x" * length)
        return body.replace(TOKEN.encode(), b"%08x" % (number & 0xFFFFFFFF)).replace(
            DIGITS.encode(), b"%08d" % (number % 10**8)
        )


def lists() -> Iterator[tuple[JSON, JSON]]:
    yield from ((make(3), None) for make in LISTS.values())


def cases() -> Iterator[tuple[JSON, JSON]]:
    for file in sorted((ROOT / "policies").glob("*/suite.yaml")):
        for case in yaml.load(file.read_text(), yaml.CSafeLoader)["cases"]:
            if isinstance(found := case.get("input"), dict) and found.get("kind") and found.get("apiVersion"):
                yield found, case.get("oldInput")


def _request(new: JSON, old: JSON, names_only: bool, chance: random.Random) -> bytes:
    seed = chance.random()
    made, before = (
        None if each is None else _renewed(each, "", names_only, random.Random(seed)) | _kind(each)
        for each in (new, old)
    )
    for each in filter(None, (made, before)):
        metadata = each["metadata"] = dict(each.get("metadata") or {})
        metadata |= {"name": f"object-{TOKEN}", "namespace": f"team-{TOKEN}"}
        metadata["labels"] = {**(metadata.get("labels") or {}), f"label-{TOKEN}": f"value-{TOKEN}"}
        note = {f"{TOKEN}.example/note": TOKEN, "example.org/padding": PADDING}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **note}
    if made is None:
        raise ValueError("a review needs an object")
    whole = review(made, "UPDATE" if before else "CREATE", before)
    whole["request"] |= {
        "uid": UID.decode(),
        "name": f"object-{TOKEN}",
        "namespace": f"team-{TOKEN}",
        "userInfo": {
            "username": chance.choice(("", f"system:serviceaccount:team-{TOKEN}:")) + f"user-{TOKEN}",
            "uid": TOKEN,
            "groups": ["system:authenticated", f"group-{TOKEN}"],
            "extra": {f"example.org/{TOKEN}": [TOKEN]},
        },
    }
    return json.dumps(whole, separators=(",", ":")).encode() + b"\n"


def _kind(obj: JSON) -> JSON:
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}


def _renewed(value: JSON, key: str, names_only: bool, chance: random.Random) -> JSON:
    """Return a copy of the value with a new end of each name, or with any text and some keys and numbers changed."""
    if isinstance(value, dict):
        return {
            _renewed_key(each, names_only, chance): _renewed(inner, each, names_only, chance)
            for each, inner in value.items()
        }
    if isinstance(value, list):
        return [_renewed(each, key, names_only, chance) for each in value]
    if key == "expression" and isinstance(value, str):
        return f"({value}) && '{TOKEN}' != ''"
    is_fixed = key in _FIXED and (names_only or chance.random() > _CHANGED_TEXTS)
    if isinstance(value, str) and not is_fixed:
        is_name = key in _NAMES or key.endswith(("Name", "name")) or key in {"args", "command"}
        if is_name if names_only else chance.random() < _CHANGED_TEXTS:
            return f"{value}-{TOKEN}" if value else value
    if type(value) is int and not names_only and chance.random() < _CHANGED_TEXTS / 2:
        return int(DIGITS)
    return value


def _renewed_key(key: str, names_only: bool, chance: random.Random) -> str:
    is_free = "/" in key or "." in key
    return f"{key}-{TOKEN}" if is_free and not names_only and chance.random() < _CHANGED_TEXTS else key
