"""Pods of patched shards as OpenSandbox's controller makes them, and the findings about their patches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rows import all_rows
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import path_as_text
from webhook.facts.sandbox.shards import ShardTemplate

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "strategic" / "shards.jsonl").read_text().splitlines()
]
AT = ("spec", "shardPatches", 0)
TEMPLATE = {
    "spec": {
        "containers": [
            {
                "name": "sandbox",
                "image": "x",
                "resources": {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}},
            }
        ],
        "nodeSelector": {"zone": "a"},
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
    }
}


def solid(value: JSON) -> JSON:
    """Drop the fields that Go omits or reads as empty, and directives that Go does not know."""
    if isinstance(value, dict):
        made = {name: solid(inner) for name, inner in value.items() if not name.startswith("$")}
        return {name: inner for name, inner in made.items() if inner not in (None, {}, [], "", False, "0")}
    return [solid(inner) for inner in value] if isinstance(value, list) else value


@all_rows("case", CASES, ids=range(len(CASES)))
def test_a_pod_is_made_as_the_controller_makes_it(case: JSON) -> None:
    assert solid(ShardTemplate(case["template"]).merge_and_decode_patch(case["patch"])[1]) == solid(case["pod"])


def said(patch: JSON, template: JSON = TEMPLATE) -> list[tuple[str, str, bool]]:
    """Return the problems of a patch, with the path in the patch, and whether each problem is certain."""
    found = ShardTemplate(template).notes_on_patch(patch, AT)
    return [(note.what, path_as_text(note.path).removeprefix("spec.shardPatches[0]"), note.certain) for note in found]


def containers(*listed: JSON) -> JSON:
    return {"spec": {"containers": list(listed)}}


GPU = '.spec.containers[0].resources.limits["nvidia.com/gpu"]'


@all_rows(
    ("patch", "expected"),
    [
        (None, []),
        ({}, []),
        ({"metadata": None, "spec": None}, []),
        (containers({"name": "sandbox", "image": "y"}), []),
        ([1], [("type", "", True)]),
        ({"spec": "x"}, [("type", ".spec", True)]),
        ({"spec": {"hostNetwork": "yes"}}, [("type", ".spec.hostNetwork", True)]),
        ({"spec": {"terminationGracePeriodSeconds": True}}, [("type", ".spec.terminationGracePeriodSeconds", True)]),
        ({"spec": {"hostNetwork": "{{ .host }}", "nodeName": "$NODE"}}, []),
        ({"spec": {"foo": 1}}, [("unknown", ".spec.foo", True)]),
        (containers({"image": "x"}), [("key", ".spec.containers[0]", True)]),
        (containers({"name": "sandbox", "env": [{"value": "x"}]}), [("key", ".spec.containers[0].env[0]", True)]),
        (containers({"name": "sandbox", "env": [{"name": "A", "value": "x"}]}), []),
        (containers({"name": "sandbox", "$patch": "move"}), [("merge", "", True)]),
        ({"spec": {"nodeSelector": {"zone": None}}}, [("keeps", ".spec.nodeSelector.zone", True)]),
        ({"spec": {"nodeSelector": None}}, []),
        ({"spec": {"nodeSelector": {"$patch": "replace"}}}, [("directive", ".spec.nodeSelector.$patch", True)]),
        (containers({"name": "sandbox", "resources": {"limits": {"nvidia.com/gpu": "1"}}}), [("resources", GPU, True)]),
        (containers({"name": "sandbox", "resources": {"limits": {"nvidia.com/gpu": None}}}), [("keeps", GPU, True)]),
        (
            containers({"name": "sandbox", "resources": {"requests": {"amd.com/gpu": "1"}}}),
            [("resources", '.spec.containers[0].resources.requests["amd.com/gpu"]', True)],
        ),
        (containers({"name": "sandbox", "resources": {"requests": {"kubernetes.io/x": "1"}}}), []),
        (containers({"name": "sandbox"}, {"name": "new"}), [("image", ".spec.containers[1]", True)]),
        (containers({"name": "sandbox"}, {"name": "new", "image": "y"}), [("added", ".spec.containers[1]", True)]),
        (
            containers({"name": "new"}),
            [("added", ".spec.containers[0]", False), ("inherits", ".spec.containers[0]", False)],
        ),
        (
            containers({"name": "sandbox", "resources": {"claims": [{"name": "h"}]}}),
            [("claim", ".spec.containers[0].resources.claims[0]", True)],
        ),
        (
            {"spec": {"resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}},
            [("sources", ".spec.resourceClaims[0]", True)],
        ),
        (
            {"spec": {"resourceClaims": [{"name": "h", "resourceClaimName": "c"}]}},
            [("sources", ".spec.resourceClaims[0]", False)],
        ),
        ({"spec": {"resourceClaims": [{"name": "g"}, {"name": "h"}]}}, [("sources", ".spec.resourceClaims[1]", True)]),
    ],
    ids=str,
)
def test_a_shard_patch_gets_these_findings(patch: JSON, expected: list[tuple[str, str, bool]]) -> None:
    assert said(patch) == expected


@pytest.mark.parametrize("template", [None, "x", {}, {"spec": None}, {"spec": "x"}, {"spec": {"containers": [None]}}])
def test_a_patch_of_an_invalid_template_adds_its_container(template: JSON) -> None:
    assert [what for what, _, _ in said(containers({"name": "a", "image": "x"}), template)] == ["added"]
