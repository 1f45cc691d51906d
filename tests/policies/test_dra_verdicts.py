"""The shipped policies refuse exactly the claims, classes, taint rules and pod groups that kube-apiserver 1.36.1 refuses.

tests/data/dra/verdicts.tsv has the API server's answers. `python -m tests.e2e.dra_verdicts` writes them again.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest

from tests.dra_selectors import DOMAIN
from tests.dra_variants import variants
from tests.e2e.dra_verdicts import FILE, fingerprint
from tests.literals import TABLE, shipped_policies
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, PhasesOutcome, run_phases
from webhook.apimachinery import paths
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces

POLICIES = shipped_policies()
OBJECTS = dict(variants())
VERDICTS = {row[0]: row[1:] for row in (line.split("\t") for line in FILE.read_text().splitlines())}

PLAIN = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
LENIENT = {
    # a cluster with the alpha feature gate DRAListTypeAttributes accepts these selectors: a warning says so
    f"{DOMAIN}.model.exists(x, x > 0)",
    f"{DOMAIN}.model.includes('x')",
    f"dyn({DOMAIN}.model)",
}
UNSEEN = {
    # an API server refuses these empty lists itself, and leaves them out of what it sends to webhooks
    "template with metadata: owners",
    "claim v1beta1: selectors [] beside firstAvailable",
}
IGNORED_NULLS = {
    # the API server also counts an unknown field that is null
    "template v1beta1: exactly null",
    "claim v1: choice with adminAccess None",
    "template v1beta1: choice with adminAccess None",
}


def judged(name: str) -> PhasesOutcome:
    return judge(OBJECTS[name])


def judge(obj: Any) -> PhasesOutcome:
    door = LocalAnswerer(policies=POLICIES, cluster=ClusterWithAssumedNamespaces(FilesCluster([PLAIN])))
    return run_phases(fixtures.attributes_of_object(obj, TABLE.row), "validate", door)


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places at which the test puts other values."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in entries:
        if at or key not in ("apiVersion", "kind", "metadata"):
            yield (*at, key)
            yield from places(held, (*at, key))


def instead(value: Any, at: tuple[str | int, ...], other: Any) -> Any:
    if not at:
        return other
    held = copy(value)
    held[at[0]] = instead(held[at[0]], at[1:], other)
    return held


def is_lenient(name: str) -> bool:
    return name.partition("selector ")[2] in LENIENT


def test_the_table_is_about_these_objects() -> None:
    assert {name: fingerprint(obj) for name, obj in OBJECTS.items()} == {name: row[0] for name, row in VERDICTS.items()}
    assert len(OBJECTS) > 1000


@pytest.mark.parametrize("chunk", range(8))
def test_only_claims_that_kubernetes_refuses_are_refused(chunk: int) -> None:
    wrong = []
    for name in list(OBJECTS)[chunk::8]:
        outcome = judged(name)
        verdict = outcome.verdict
        assert not [made.message for _, made in outcome.decisions if made.evaluation == "error"], name
        if verdict.allowed != (VERDICTS[name][1] == "201" or name in UNSEEN) and not is_lenient(name):
            wrong.append((name, verdict.status and verdict.status.message, VERDICTS[name][3]))
        if is_lenient(name):
            assert any("needs the feature gate DRAListTypeAttributes" in each for each in verdict.warnings), name
    assert wrong == []


@pytest.mark.parametrize("chunk", range(8))
def test_a_denial_names_the_place_that_kubernetes_names(chunk: int) -> None:
    """The first place of the API server must be this place, or directly above or below it."""
    wrong = []
    for name in list(OBJECTS)[chunk::8]:
        status = judged(name).verdict.status
        theirs = re.match(r"\[?((?:spec|metadata)[^:]*):", VERDICTS[name][3])
        if status is None or status.code == 200 or not theirs or is_lenient(name):
            continue
        expected = _place(theirs[1].replace(".exactly", "").replace("uID", "uid"))
        places = [_place(each.field.replace(".exactly", "")) for each in status.details.causes]
        if not any(_near(expected, place) for place in places):
            wrong.append((name, status.message, VERDICTS[name][3]))
    assert wrong == []


def _place(text: str) -> tuple[str | int, ...]:
    return paths.split_off_leading_path(f"{text}: ")[0] if ":" not in text else paths.split_off_leading_path(text)[0]


def _near(one: tuple[str | int, ...], other: tuple[str | int, ...]) -> bool:
    return bool(other) and (one[: len(other)] == other or other[: len(one)] == one)


def test_unknown_fields_of_pods_are_reported() -> None:
    told = []
    for name, (_, code, unknown, _) in VERDICTS.items():
        text = " ".join(judged(name).verdict.warnings) if code == "201" else ""
        if code == "201" and ("this field does not exist" in text) != (unknown != "0") and name not in IGNORED_NULLS:
            told.append((name, text, unknown))
    assert told == []


ODD = (None, "", 0, -1, 1.5, True, [], {}, "x", ["x"], {"a": 1}, [None], {"a": None}, "${X}", [[]], 2**70)


@pytest.mark.parametrize("seed", range(4))
def test_no_value_of_any_shape_causes_an_error(seed: int) -> None:
    """With any value at any place, the policies report the value, and no expression fails."""
    pick = random.Random(seed)
    objects = [obj for obj in OBJECTS.values() if len(str(obj)) < 2000]
    for _ in range(250):
        obj = pick.choice(objects)
        for _ in range(pick.choice((1, 1, 2))):
            found = [*places(obj)]
            obj = instead(obj, pick.choice(found), pick.choice(ODD)) if found else obj
        failed = [made.message for _, made in judge(obj).decisions if made.evaluation == "error"]
        assert failed == [], obj
