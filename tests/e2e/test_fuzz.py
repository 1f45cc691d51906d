"""Random CEL expressions, mutations and policies have the same result as in a real API server."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Cluster
from tests.fuzz.mutations import compare_mutations
from tests.fuzz.policies import compare_policies
from tests.fuzz.server import compare

pytestmark = pytest.mark.e2e


def test_random_expressions_have_the_api_servers_answers(cluster: Cluster) -> None:
    outcomes = compare(100, 5, str(cluster.server.kubeconfig))
    assert {kind for kind in outcomes if not kind.startswith(("same", "value not", "text of refused"))} == set()
    assert outcomes["same value"] > 20


def test_random_mutations_have_the_api_servers_outcome(cluster: Cluster) -> None:
    outcomes = compare_mutations(100, 12, str(cluster.server.kubeconfig))
    assert {kind for kind in outcomes if not kind.startswith(("same", "invalid object", "message of"))} == set()
    assert outcomes["same allowed"] > 20


def test_random_policies_have_the_api_servers_verdict(cluster: Cluster) -> None:
    outcomes = compare_policies(100, 13, str(cluster.server.kubeconfig))
    assert {kind for kind in outcomes if not kind.startswith(("same", "message of"))} == set()
    assert outcomes["same denied"] > 20
