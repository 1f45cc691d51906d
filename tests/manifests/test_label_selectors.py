"""Label selectors on objects that no API server has decoded, which may have labels that are not strings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.literals import PODS, namespace, pod, policies, request, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import JSON, Phase
from webhook.cluster.files import FilesCluster
from webhook.errors import MistypedLabels
from webhook.manifests.label_selectors import Requirement, Selector, string_labels_of

TEAM = Requirement("team", "In", frozenset(("a",)))
STAGE = Requirement("stage", "Exists")
NOT_TEAM = Requirement("team", "NotIn", frozenset(("a",)))
A_LIST = "metadata.labels.team: must be a string, not a list"
NO_LABELS = "metadata.labels: must be an object, not a list"


@pytest.mark.parametrize(
    ("metadata", "requirements", "refusal"),
    [
        ({"labels": {"team": ["a"]}}, (TEAM,), A_LIST),
        ({"labels": {"team": ["a"]}}, (NOT_TEAM,), A_LIST),
        ({"labels": {"team": ["a"], "stage": "b"}}, (STAGE, TEAM), A_LIST),
        ({"labels": {"team": {}}}, (TEAM,), "metadata.labels.team: must be a string, not an object"),
        ({"labels": {"stage": 4}}, (STAGE,), "metadata.labels.stage: must be a string, not the number 4"),
        ({"labels": ["team"]}, (TEAM,), NO_LABELS),
        ("x", (TEAM,), "metadata: must be an object, not the string `x`"),
    ],
)
def test_a_selector_refuses_to_decide_about_a_label_that_is_not_a_string(
    metadata: JSON, requirements: tuple[Requirement, ...], refusal: str
) -> None:
    with pytest.raises(MistypedLabels) as error:
        Selector(requirements).selects({"metadata": metadata})
    assert str(error.value) == refusal


@pytest.mark.parametrize(
    ("labels", "requirements", "selected"),
    [
        ({"team": "a", "stage": ["b"]}, (TEAM,), True),
        ({"team": "b", "stage": ["b"]}, (TEAM,), False),
        ({"team": ["a"]}, (STAGE, TEAM), False),
        ({"team": None}, (TEAM,), False),
        ({"team": None}, (NOT_TEAM,), True),
        (None, (TEAM,), False),
    ],
)
def test_a_label_that_does_not_count_may_have_any_value(
    labels: JSON, requirements: tuple[Requirement, ...], selected: bool
) -> None:
    assert Selector(requirements).selects({"metadata": {"labels": labels}}) is selected


def test_a_label_that_is_not_a_string_meets_no_requirement() -> None:
    for requirement in (TEAM, NOT_TEAM, Requirement("team", "Exists"), Requirement("team", "DoesNotExist")):
        assert not Selector((requirement,)).matches({"team": ["a"]})  # type: ignore[dict-item]


def test_all_labels_of_a_namespace_must_be_strings() -> None:
    assert string_labels_of({"metadata": {"labels": {"a": "b"}}}) == {"a": "b"}
    with pytest.raises(MistypedLabels):
        string_labels_of({"metadata": {"labels": {"a": "b", "team": ["a"]}}})


SELECTOR = {"matchLabels": {"team": "a"}}


@pytest.mark.parametrize(
    ("match", "labels", "of_namespace", "refusal"),
    [
        ({"objectSelector": SELECTOR}, {"team": ["a"]}, {}, f"not evaluated: {A_LIST}"),
        ({"objectSelector": SELECTOR}, ["team"], {}, f"not evaluated: {NO_LABELS}"),
        ({"namespaceSelector": SELECTOR}, {}, {"team": ["a"]}, f"not evaluated: {A_LIST}"),
    ],
    ids=["a label of the object", "the labels of the object", "a label of the Namespace"],
)
@pytest.mark.parametrize("of_binding", [False, True], ids=["the policy", "the binding of the policy"])
def test_a_policy_that_selects_by_a_label_of_a_wrong_type_is_not_evaluated(
    match: JSON, labels: JSON, of_namespace: dict[str, Any], refusal: str, of_binding: bool
) -> None:
    rule = {"expression": "false", "message": "refused"}
    if of_binding:
        selecting = validating(rule, binding={"matchResources": match})
    else:
        selecting = validating(rule, matchConstraints={"resourceRules": [PODS], **match})
    obj = pod(containers=[{"name": "a", "image": "b"}])
    obj["metadata"]["labels"] = labels
    cluster = FilesCluster([namespace(**of_namespace)])
    verdict = answer_request(request(obj), policies(selecting), cluster, phase=Phase.VALIDATE)
    assert verdict.faults == ()
    assert refusal in [each.message for each in verdict.decisions]
    assert "refused" not in [each.message for each in verdict.decisions]
