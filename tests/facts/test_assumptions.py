"""What the param of a policy says about the cluster reaches the facts that the policy reads."""

from __future__ import annotations

import pytest

from webhook.errors import LookupFailed
from webhook.facts.assumptions import ClusterAssumptions, read_assumptions


@pytest.mark.parametrize(
    ("param", "expected"),
    [
        (None, ClusterAssumptions()),
        ({"kind": "ConfigMap"}, ClusterAssumptions()),
        ({"data": None}, ClusterAssumptions()),
        ({"data": {"trainer": "2.2"}}, ClusterAssumptions(trainer=(2, 2))),
        (
            {"data": {"trainer": "v2.1.3-rc.1", "kubernetes": "1.34", "other": "x"}},
            ClusterAssumptions(trainer=(2, 1), kubernetes=(1, 34)),
        ),
        (
            {"data": {"featureGates": "A=true, B,C=false,", "dynamicResourceAllocation": "true"}},
            ClusterAssumptions(feature_gates=frozenset("AB"), device_claims=True),
        ),
    ],
)
def test_a_param_says_what_a_cluster_has(param: object, expected: ClusterAssumptions) -> None:
    assert read_assumptions(param) == expected


def test_params_that_say_the_same_are_one_value() -> None:
    """Facts and checks are computed once for all policies with the same assumptions."""
    assert read_assumptions({"data": {"kubernetes": "1.36"}}) is read_assumptions(None)
    assert read_assumptions({"data": {"kubernetes": "1.35"}}) is read_assumptions(
        {"data": {"kubernetes": "v1.35.2", "other": "x"}}
    )


def test_a_string_that_is_not_a_release_is_an_error() -> None:
    with pytest.raises(LookupFailed, match=r"data.trainer of its parameter is `latest`: write a release such as 2.3"):
        read_assumptions({"data": {"trainer": "latest"}})
