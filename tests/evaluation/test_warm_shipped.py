"""What the shipped policies keep changes no answer: the cases of their suites, each altered a little, in any order."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.evaluation.warm import Step, assert_same, examples, forgetful
from tests.literals import OPTIONS, TABLE, request, shipped_policies
from webhook import paths, shipped
from webhook.attributes import JSON, UserInfo
from webhook.cluster.assumed_namespaces import AssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet
from webhook.suites import own
from webhook.suites.files import Suite
from webhook.workloads.podsets import podsets

ROOT = Path(shipped.policies())
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/suite.yaml"))


@cache
def again() -> PolicySet:
    """The shipped policies, compiled once more."""
    return load([ROOT], OPTIONS)


@cache
def cases(folder: str) -> list[Step]:
    """The requests of a suite, each with its cluster."""
    suite = Suite(file=ROOT / folder / "suite.yaml", root=ROOT / folder)
    asked = [own.request(case, suite, shipped_policies, OPTIONS) for case in own.cases(suite)]
    return [Step(each.attributes, AssumedNamespaces(FilesCluster(each.context))) for each in asked]


VALUES = (
    None,
    True,
    False,
    0,
    1,
    1.0,
    2,
    -1,
    "",
    "0",
    "1",
    "2",
    "100m",
    "x",
    "nvidia.com/gpu",
    "y" * 65,
    [],
    {},
    ["a"],
)


def altered(value: JSON, chosen: Random, donor: JSON) -> JSON:
    """A copy of which one part is dropped, has another value, or is that of another object."""
    made = copy.deepcopy(value)
    holder, place = made, "spec" if "spec" in made else next(iter(made))
    while isinstance(holder[place], dict | list) and holder[place] and chosen.random() < 0.8:
        donor = donor.get(place) if isinstance(donor, dict) else None
        holder = holder[place]
        place = chosen.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    how = chosen.randrange(4)
    if how == 0:
        del holder[place]
    elif how == 1 and isinstance(donor, dict) and donor:
        holder[place] = copy.deepcopy(donor.get(place, chosen.choice(list(donor.values()))))
    elif how == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[place]))
    else:
        holder[place] = chosen.choice(VALUES)
    return made


def pod_of(obj: JSON, chosen: Random) -> JSON:
    """A pod as a template of an object makes it; the object where it has none."""
    templates = [each.template for each in podsets(obj, TABLE) if isinstance(each.template, dict)]
    if not templates or obj.get("kind") == "Pod":
        return obj
    template = chosen.choice(templates)
    own, place = template.get("metadata"), {"name": "p", "namespace": paths.get(obj, ("metadata", "namespace"), "team")}
    metadata = {**own, **place} if isinstance(own, dict) else place
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def step(chosen: Random, known: list[Step], views: list[AssumedNamespaces]) -> Step:
    """A request like one of some cases, in a cluster like that of one of them."""
    like = chosen.choice(known).attributes
    obj, old = like.object, like.old_object
    if obj is not None and chosen.random() < 0.5:
        obj, old = pod_of(obj, chosen), old and pod_of(old, chosen)
        like = replace(request(obj, like.operation, old), user_info=like.user_info)
    for _ in range(chosen.choice((0, 1, 1, 2))):
        if obj is not None:
            obj = altered(obj, chosen, chosen.choice(known).attributes.object)
    user = chosen.choice((like.user_info, like.user_info, UserInfo(username="system:serviceaccount:kube-system:x")))
    sent = replace(like, object=obj, old_object=old, user_info=user, is_decoded=chosen.random() < 0.8)
    return Step(sent, chosen.choice(views))


@given(st.lists(st.sampled_from(FOLDERS), min_size=1, max_size=2, unique=True), st.integers(0, 2**32))
@examples(3)
def test_altered_cases_are_answered_as_if_they_were_the_first(folders, seed):
    chosen = Random(seed)
    known = [each for folder in folders for each in cases(folder)]
    few = [chosen.choice(known) for _ in range(6)]
    views = [each.view for each in few[:3]]
    steps = [step(chosen, few, views) for _ in range(25)]
    assert_same(forgetful(shipped_policies()), again(), steps)
