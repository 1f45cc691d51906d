"""Which labels a typed selector selects, and which taints a pod does not tolerate."""

import pytest

from webhook.deadline import Deadline
from webhook.facts.pods.node_selection import (
    first_untolerated,
    is_selected,
    labels_meet_requirement,
    selector_json_matches,
)
from webhook.typed.pods import LabelSelector, SelectorRequirement, Taint, Toleration

LABELS = {"zone": "a", "cores": "8"}


@pytest.mark.parametrize(
    ("requirement", "is_met"),
    [
        ({"key": "zone", "operator": "In", "values": ["b", "a"]}, True),
        ({"key": "other", "operator": "In", "values": ["a"]}, False),
        ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False),
        ({"key": "other", "operator": "NotIn", "values": ["a"]}, True),
        ({"key": "zone", "operator": "Exists"}, True),
        ({"key": "zone", "operator": "DoesNotExist"}, False),
        ({"key": "cores", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "cores", "operator": "Lt", "values": ["7"]}, False),
        ({"key": "zone", "operator": "Gt", "values": ["7"]}, False),
        ({"key": "cores", "operator": "Gt"}, False),
        ({"key": "zone"}, False),
    ],
)
def test_labels_meet_a_requirement(requirement, is_met):
    assert labels_meet_requirement(LABELS, SelectorRequirement.of(requirement)) is is_met


@pytest.mark.parametrize(
    ("selector", "is_met"),
    [
        ({}, True),
        ({"matchLabels": {"zone": "a"}}, True),
        ({"matchLabels": {"zone": "b"}}, False),
        ({"matchLabels": {"zone": "a"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
    ],
)
def test_a_selector_selects_objects_that_meet_all_requirements(selector, is_met):
    assert is_selected(LABELS, LabelSelector.of(selector)) is is_met
    assert selector_json_matches(selector, LABELS, Deadline()) is is_met


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"value": "yes"}, False),
    ],
)
def test_a_taint_keeps_pods_out_that_do_not_tolerate_it(toleration, is_tolerated):
    taints = [
        Taint.of({"key": "soft", "effect": "PreferNoSchedule"}),
        Taint.of({"key": "gpu", "value": "yes", "effect": "NoSchedule"}),
    ]
    found = first_untolerated(taints, [Toleration.of(toleration)])
    assert found is (None if is_tolerated else taints[1])
