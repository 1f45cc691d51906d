"""Tiers of HyperNodes, compared with the topologies of gangs and their parts."""

from __future__ import annotations

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.volcano.checks import check_job

ROOT = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "root"},
    "status": {"state": "Open"},
}


def hyper_node(tier: JSON, name: JSON = None) -> JSON:
    spec = {"tier": tier, "tierName": name}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": f"h{tier}"},
        "spec": spec,
    }


def told(topology: JSON, *world: JSON, part: JSON = None) -> list[str]:
    policy = {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 1, "networkTopology": part}} if part else {}
    containers = [{"name": "a", "image": "x"}]
    task = {"name": "a", "replicas": 2, "template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    spec = {"networkTopology": topology, "tasks": [{**task, **policy}]}
    obj = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    problems = [
        each for each in check_job(subject(obj, *world, is_whole=bool(world))) if "networkTopology" in each.path
    ]
    return [each.code.partition("/")[2] + "?" * bool(each.missing) for each in problems]


def test_a_gang_is_placed_within_an_existing_tier() -> None:
    rack, row = hyper_node(1, "rack"), hyper_node(2, "row")
    rows = {
        "the lowest tier": (told({"highestTierAllowed": 1}, rack, row), []),
        "below the lowest tier": (told({"highestTierAllowed": 1}, row), ["tier"]),
        "below the lowest tier, but only preferred": (told({"highestTierAllowed": 1, "mode": "soft"}, row), []),
        "without a highest tier": (told({"mode": "hard"}, row), []),
        "a tier by name": (told({"highestTierName": "row"}, rack, row), []),
        "a tier by a wrong name": (told({"highestTierName": "zone"}, rack, row), ["tier-name"]),
        "a tier by a name that is filled in later": (told({"highestTierName": "${TIER}"}, rack), []),
        "HyperNodes are not known": (told({"highestTierAllowed": 1}), ["tier?"]),
        "no HyperNodes exist": (told({"highestTierAllowed": 1}, ROOT), []),
        "a HyperNode without a tier": (told({"highestTierName": "zone"}, hyper_node(None)), []),
        "a part of a gang below the lowest tier": (told(None, row, part={"highestTierAllowed": 1}), ["tier"]),
        "a part with a higher tier than the gang": (
            told({"highestTierAllowed": 1}, rack, part={"highestTierAllowed": 2}),
            ["tier-order"],
        ),
        "a part with the tier of the gang": (told({"highestTierAllowed": 2}, rack, part={"highestTierAllowed": 2}), []),
        "a part of a gang with a preferred tier": (
            told({"highestTierAllowed": 1, "mode": "soft"}, rack, part={"highestTierAllowed": 2}),
            [],
        ),
    }
    assert {name: pair for name, pair in rows.items() if pair[0] != pair[1]} == {}
