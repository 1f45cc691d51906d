"""Every kind of the workload table with every shipped policy: rules about claims apply in each template.

The API server checks claims only in its own kinds. A CRD with a PodSpec does not require exactly one source of a claim,
and a CRD without a schema requires nothing. Controllers without omitempty store null at any level. A null counts as
absent.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.literals import TABLE, shipped_policies
from tests.policies.test_portable_kinds import TEMPLATES, merged, planted
from tests.rows import all_rows, some_quickly
from webhook.admission import fixtures
from webhook.admission.phases import LocalAnswerer, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.workloads.rows import PodSetRule, Row

POLICIES = shipped_policies()


def answer(obj: JSON) -> PhasesOutcome:
    attributes = fixtures.attributes_of_object(obj, TABLE.row)
    return run_phases(
        attributes, "auto", LocalAnswerer(policies=POLICIES, cluster=ClusterWithAssumedNamespaces(FilesCluster()))
    )


def workload(row: Row, version: str, rule: PodSetRule, spec: JSON) -> JSON:
    template: JSON = {"spec": spec}
    if rule.embeds == "podSpec":
        template = spec
    if rule.embeds == "object":
        template = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": spec}}}
    obj = {
        "apiVersion": f"{row.group}/{version}".removeprefix("/"),
        "kind": row.kind,
        "metadata": {"name": "x", **({"namespace": "team-a"} if row.namespaced else {})},
    }
    if rule.when and not rule.when.startswith(rule.template):
        obj = merged(obj, planted(rule.when, {"spec": {"containers": [{"name": "other", "image": "x"}]}}))
    return merged(obj, planted(rule.template, template) if rule.template else template)


def spec(**claim: str) -> JSON:
    container = {"name": "main", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}
    return {"containers": [container], "resourceClaims": [{"name": "gpu", **claim}]}


@all_rows(("row", "version", "rule"), TEMPLATES)
@all_rows("claim", [{}, {"resourceClaimName": "a", "resourceClaimTemplateName": "b"}], ids=["none", "both"])
def test_a_claim_has_exactly_one_source(row: Row, version: str, rule: PodSetRule, claim: dict[str, str]) -> None:
    denied = {
        made.policy: made.path
        for _, made in answer(workload(row, version, rule, spec(**claim))).decisions
        if made.action == "deny"
    }
    assert "claims-exactly-one" in denied
    assert denied["claims-exactly-one"].endswith("resourceClaims[0]")


def nulled(value: JSON) -> Iterator[JSON]:
    """Yield copies of a value with null at one field or element each. apiVersion, kind, metadata and names stay."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        if step in ("apiVersion", "kind", "metadata", "name"):
            continue
        for changed in (None, *nulled(inner)):
            copy = value.copy()
            copy[step] = changed
            yield copy


@pytest.mark.parametrize(("row", "version", "rule"), some_quickly(TEMPLATES, 4))
def test_a_null_at_any_place_fails_no_expression(row: Row, version: str, rule: PodSetRule) -> None:
    full = spec(resourceClaimName="a")
    full["initContainers"] = [
        {"name": "init", "image": "x", "resources": {"limits": {"gpu": "1"}, "requests": {"cpu": "1"}}}
    ]
    for obj in nulled(workload(row, version, rule, full)):
        failed = [f"{made.policy}: {made.message}" for _, made in answer(obj).decisions if made.evaluation == "error"]
        assert failed == [], obj
