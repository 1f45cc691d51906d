"""The documented Python API. tests/test_page_blocks.py runs the example of its page."""

from pathlib import Path

import pytest

import claimgate

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "python.md").read_text()
POLICY = str(ROOT / "tests" / "data" / "commands" / "policies")


def test_the_page_names_every_public_name():
    assert [name for name in claimgate.__all__ if name not in PAGE and name != "__version__"] == []


def test_mistakes_are_errors_of_the_api(tmp_path):
    with pytest.raises(claimgate.PolicyError, match="no such file"):
        claimgate.load_policies(tmp_path / "absent")
    policies = claimgate.load_policies(POLICY)
    with pytest.raises(claimgate.InputError, match="apiVersion"):
        claimgate.review(policies, {"kind": "Pod"})
    with pytest.raises(claimgate.InputError, match="PATCH"):
        claimgate.review(policies, {"apiVersion": "v1", "kind": "Pod"}, operation="PATCH")


def test_a_review_mutates_a_copy_of_the_object():
    policies = claimgate.load_policies(POLICY)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    result = claimgate.review(policies, pod)
    assert pod["metadata"] == {"name": "p"}
    assert {finding.policy for finding in result.findings} <= set(policies.names)
