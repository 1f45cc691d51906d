"""runtimePatches merge as Kubeflow Trainer merges them."""

import copy
import json
import pathlib
from collections import deque
from random import Random

import pytest

from tests.rows import all_rows
from webhook.deadline import Deadline
from webhook.errors import PatchError
from webhook.patch.strategic import ListIndexes, merge_patch
from webhook.yamltext.jsontext import equal_as_json

DATA = pathlib.Path(__file__).parent.parent / "data/strategic/cases.jsonl"
CASES = [json.loads(line) for line in DATA.read_text().splitlines()]


def typed(value):
    """Return a value without nulls and directives, as a typed object has it."""
    if isinstance(value, dict):
        return {key: typed(inner) for key, inner in value.items() if inner is not None and key != "$retainKeys"}
    return [typed(item) for item in value] if isinstance(value, list) else value


@all_rows("case", CASES, ids=lambda case: json.dumps(case["patch"])[:60])
def test_a_merge_gives_what_the_go_library_gives(case):
    before = copy.deepcopy(case)
    if "error" in case:
        with pytest.raises(PatchError):
            merge_patch(case["original"], case["patch"], "PodSpec")
    else:
        assert equal_as_json(typed(merge_patch(case["original"], case["patch"], "PodSpec")), typed(case["result"]))
    assert case == before


def jobset(**spec):
    template = {"spec": {"template": {"spec": spec}}}
    return {"replicatedJobs": [{"name": "node", "template": template}]}


@pytest.mark.parametrize(
    "old, new, merged",
    [
        pytest.param(
            {"containers": [{"name": "node", "image": "i"}]},
            {"containers": [{"name": "node", "env": [{"name": "A"}]}]},
            {"containers": [{"name": "node", "image": "i", "env": [{"name": "A"}]}]},
            id="containers merge by name",
        ),
        pytest.param(
            {"tolerations": [{"key": "nvidia.com/gpu"}]},
            {"tolerations": [{"key": "x"}]},
            {"tolerations": [{"key": "x"}]},
            id="tolerations are replaced",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}]},
            {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "b"}]},
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]},
            id="a claim gets both sources without retainKeys",
        ),
        pytest.param(
            {"containers": [{"name": "node", "resources": {"claims": [{"name": "a"}], "limits": {"cpu": "1"}}}]},
            {"containers": [{"name": "node", "resources": {"claims": [{"name": "b"}]}}]},
            {"containers": [{"name": "node", "resources": {"claims": [{"name": "b"}], "limits": {"cpu": "1"}}}]},
            id="claims of a container are replaced",
        ),
        pytest.param(
            {"containers": [{"name": "a"}]},
            {"containers": [{"name": "b"}]},
            {"containers": [{"name": "b"}, {"name": "a"}]},
            id="an unknown container is added before the containers that the patch does not name",
        ),
    ],
)
def test_a_patch_of_a_jobset(old, new, merged):
    assert merge_patch(jobset(**old), jobset(**new), "JobSetSpec") == jobset(**merged)


def test_a_patch_adds_an_unknown_replicated_job():
    merged = merge_patch(jobset(), {"replicatedJobs": [{"name": "other", "template": None}]}, "JobSetSpec")
    assert [job["name"] for job in merged["replicatedJobs"]] == ["other", "node"]
    assert merged["replicatedJobs"][0] == {"name": "other"}


@pytest.mark.parametrize(
    "patch, result",
    [
        ({"metadata": {"finalizers": ["c", "a"]}}, ["c", "a", "b"]),
        ({"metadata": {"finalizers": []}}, ["a", "b"]),
        ({"metadata": {"$patch": "delete"}}, None),
        ({"metadata": {"$patch": "replace", "finalizers": ["z"]}}, ["z"]),
        ({"metadata": {"finalizers": None}}, None),
        ({"metadata": {"finalizers": {"$patch": "delete"}}}, None),
        ({"metadata": {"finalizers": "odd"}}, "odd"),
    ],
)
def test_plain_values_nulls_and_directives(patch, result):
    merged = merge_patch({"metadata": {"finalizers": ["a", "b"]}}, patch, "PodTemplateSpec")
    assert merged["metadata"].get("finalizers") == result


def test_directives_are_removed_if_there_is_nothing_to_merge():
    volumes = [{"name": "v", "$retainKeys": ["name"], "x": {"$patch": "delete"}, "y": None}, {"$patch": "delete"}]
    assert merge_patch(None, {"volumes": volumes}, "PodSpec") == {"volumes": [{"name": "v"}]}


def test_an_item_given_twice_is_merged_twice():
    patch = {"containers": [{"name": "b", "image": "1"}, {"name": "b", "tty": True}]}
    assert merge_patch({"containers": []}, patch, "PodSpec") == {
        "containers": [{"name": "b", "image": "1", "tty": True}]
    }


@pytest.mark.parametrize(
    "patch, message",
    [
        (["x"], "must be objects"),
        ({"$patch": "merge"}, "the patch has `\\$patch: merge`, which must be replace or delete"),
        ({"$retainKeys": "a"}, "`\\$retainKeys` must be a list"),
        ({"$retainKeys": ["a"], "b": 1}, "must be a list of every field that is set next to it"),
        ({"$setElementOrder/containers": []}, "`\\$setElementOrder/containers` is not supported"),
        ({"$deleteFromPrimitiveList/finalizers": []}, "is not supported"),
        ({"containers": [{"image": "i"}]}, r"containers\[0\] has no `name`, which tells the items of the list apart"),
        ({"containers": ["a"]}, r"containers\[0\] has no `name`, which tells the items of the list apart"),
        ({"containers": [{"name": "a", "$patch": "merge"}]}, "an item of containers has .* must be replace or delete"),
    ],
)
def test_an_invalid_strategic_patch_is_refused(patch, message):
    with pytest.raises(PatchError, match=message):
        merge_patch({"containers": [{"name": "a"}]}, patch, "PodSpec")


def variables(*names):
    return [{"name": name, "value": str(place)} for place, name in enumerate(names)]


def env_of(merged):
    return [each["name"] for each in merged["containers"][0]["env"]]


def patch_of(*names):
    return {"containers": [{"name": "node", "env": variables(*names)}]}


def reference(old, patch):
    """Return the merged list in the order of k8s.io/apimachinery: items of the patch are in its order, and the other
    items keep their places.
    """
    wanted, stood = list(dict.fromkeys(patch)), {name: place for place, name in enumerate(old)}
    others, ordered = deque(name for name in old if name not in wanted), []
    for name in wanted:
        while others and stood[others[0]] < stood.get(name, -1):
            ordered.append(others.popleft())
        ordered.append(name)
    return [*ordered, *others]


def test_patches_one_after_the_other_have_the_same_result_as_separate_merges():
    for seed in range(200):
        random = Random(seed)
        kept = alone = patch_of(*random.sample("abcdefghij", 4))
        order, indexes = env_of(kept), ListIndexes()
        for _ in range(12):
            names = random.choices("abcdefghijklmnop", k=random.choice([1, 1, 2, 3]))
            kept = merge_patch(kept, patch_of(*names), "PodSpec", indexes=indexes)
            alone = merge_patch(alone, patch_of(*names), "PodSpec")
            order = reference(order, names)
            assert kept == alone
            assert env_of(kept) == order


def test_many_patches_that_add_a_variable_each_take_linear_work():
    """The charged work of a merge does not grow with earlier merges."""
    for where, names in PLACES.items():
        merged, indexes, spent = patch_of("first", "last"), ListIndexes(), []
        for number in range(1_500):
            counting = Counting()
            merged = merge_patch(merged, patch_of(*names(number)), "PodSpec", counting, indexes)
            spent.append(counting.total)
        assert len(env_of(merged)) == 1_502, where
        assert max(spent) <= min(spent) + 3, where


PLACES = {
    "before all variables": lambda number: (f"E{number}",),
    "after the first variable": lambda number: ("first", f"E{number}"),
    "after the variable of the previous patch": lambda number: (f"E{number - 1}" if number else "first", f"E{number}"),
    "between two variables": lambda number: ("first", f"E{number}", "last"),
    "between two variables in reverse order": lambda number: ("last", f"E{number}", "first"),
}
"""Patches that each add a variable, by the place of the variable"""


def test_a_list_with_no_number_left_between_two_items_is_numbered_again():
    """Each patch uses a third of the gap between the same two items."""
    merged, indexes, counting = patch_of("first", "last"), ListIndexes(), Counting()
    names = ["first", "last"]
    for number in range(2_500):
        merged = merge_patch(merged, patch_of("first", f"E{number}"), "PodSpec", counting, indexes)
        names.insert(1, f"E{number}")
    assert env_of(merged) == names


class Counting(Deadline):
    def __init__(self):
        super().__init__()
        self.total = 0

    def spend(self, work):
        self.total += work
        super().spend(work)
