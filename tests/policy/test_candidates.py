"""Checks about parts that a Pod lacks are skipped. The decisions are those of all checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from msgspec import structs

from webhook.admission.decode import decode_review_bytes
from webhook.apimachinery.attributes import POD, Attributes, Operation, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.evaluation.request_context import request_context
from webhook.evaluation.validating import validating_decisions
from webhook.facts.subject import SHIPPED
from webhook.input import shipped
from webhook.policy.load import Options, load_policy_set
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Decision
from webhook.typed.pod_parts import CLAIMS, DEVICES
from webhook.workloads import table

REVIEWS = Path(__file__).parents[1] / "data" / "reviews"
CLUSTER = ClusterWithAssumedNamespaces(FilesCluster())


def _recorded_pods() -> list[Attributes]:
    recorded = [decode_review_bytes(path.read_bytes()) for path in sorted(REVIEWS.glob("*.json"))]
    return [each for each in recorded if each.kind == POD]


def _decisions(attributes: Attributes, policies: PolicySet) -> list[Decision]:
    return [
        structs.replace(each, elapsed_s=0)
        for each in validating_decisions(request_context(policies, attributes, CLUSTER), Phase.VALIDATE)
    ]


def test_running_all_checks_reports_the_same() -> None:
    policies = load_policy_set([shipped.policies_folder()], Options(table=table.load_table()))
    skipped = set()
    for attributes in _recorded_pods():
        candidates = policies.validating_for(attributes, Phase.VALIDATE)
        skipped |= {each.policy.name for each in candidates if each.pod_parts}
        asking_all = replace(policies)
        all_candidates = tuple(structs.replace(each, pod_parts=frozenset()) for each in candidates)
        asking_all._candidate_index.update(
            {key: all_candidates for key, listed in policies._candidate_index.items() if listed is candidates}
        )
        assert asking_all.validating_for(attributes, Phase.VALIDATE) is all_candidates
        assert _decisions(attributes, asking_all) == _decisions(attributes, policies)
    assert "device-failures" in skipped


def test_the_parts_of_a_policy_are_those_of_all_its_checks() -> None:
    of_pods = SHIPPED.checks_of_kind(("", "Pod"), is_deleted=False)
    assert of_pods.pod_parts_that_checks_need(["device-failures"]) == {CLAIMS, DEVICES}
    assert of_pods.pod_parts_that_checks_need(["device-failures", "kueue-job"]) == frozenset()
    assert of_pods.pod_parts_that_checks_need([]) == frozenset()


def test_a_delete_is_evaluated_by_all_policies_of_its_kind() -> None:
    policies = load_policy_set([shipped.policies_folder()], Options(table=table.load_table()))
    deleted = replace(_recorded_pods()[0], operation=Operation.DELETE)
    assert not any(each.pod_parts for each in policies.validating_for(deleted, Phase.VALIDATE))
