"""The PodDisruptionBudgets of a server's pods are found by a label, without reading all PodDisruptionBudgets."""

from __future__ import annotations

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON, GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import LookupFailed
from webhook.facts.device_failures.probes import advise_serving_readiness_and_disruption
from webhook.facts.view import ClusterView

LABELS = {"app": "llm", "tier": "gold"}


def server() -> JSON:
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai",
        "ports": [{"containerPort": 8000}],
        "readinessProbe": {"httpGet": {"port": 8000}},
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "n"}, "spec": spec}


def budget(name: str, selector: JSON, namespace: str = "n") -> JSON:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": selector}


def told(*budgets: JSON, cluster: FilesCluster | None = None, deadline: Deadline | None = None) -> list[str]:
    held = cluster or FilesCluster(budgets, is_whole=True)
    view = ClusterView(held, "n", deadline or Deadline())
    about = subject(server(), cluster=held)
    about.cluster = view
    about.deadline = view.deadline
    found = advise_serving_readiness_and_disruption(about)
    return [each.message or str(each.missing[0]) for each in found if each.code == "device-failures/disruption-budget"]


UNSELECTED = ["no PodDisruptionBudget selects the 2 pods, so node drains may stop all pods at once"]


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        pytest.param({"matchLabels": {"app": "llm"}}, True, id="one label"),
        pytest.param({"matchLabels": {"tier": "gold", "app": "llm"}}, True, id="all labels"),
        pytest.param({"matchLabels": {"app": "other"}}, False, id="another value"),
        pytest.param({"matchLabels": {"app": "llm", "zone": "a"}}, False, id="a label that the pods do not have"),
        pytest.param({"matchLabels": {}}, True, id="no label"),
        pytest.param({"matchExpressions": [{"key": "x", "operator": "Exists"}]}, True, id="an expression"),
        pytest.param(
            {"matchLabels": {"app": "no"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]},
            True,
            id="an expression and a label",
        ),
    ],
)
def test_a_budget_that_selects_or_may_select_the_pods_is_found(selector: JSON, is_selected: bool) -> None:
    assert told(budget("b", {"selector": selector})) == ([] if is_selected else UNSELECTED)
    assert told(budget("b", {"selector": selector}, namespace="other")) == UNSELECTED


class Unreadable(FilesCluster):
    def list(self, gvk: GroupVersionKind, namespace: str | None, labels: str = "") -> list[JSON]:
        raise LookupFailed("PodDisruptionBudget n/deep: it is nested deeper than 200 levels and cannot be read")


def test_unreadable_budgets_of_a_namespace_are_not_reported_as_missing() -> None:
    assert told(cluster=Unreadable(is_whole=True)) == ["PodDisruptionBudget not looked up"]


class CountedWork(Deadline):
    def __init__(self) -> None:
        super().__init__()
        self.work = 0

    def spend(self, work: int) -> None:
        self.work += work
        super().spend(work)


def test_other_budgets_of_the_namespace_cost_a_review_nothing() -> None:
    def work(count: int) -> int:
        deadline = CountedWork()
        many = (budget(f"b-{number}", {"selector": {"matchLabels": {"app": f"a-{number}"}}}) for number in range(count))
        assert told(*many, deadline=deadline) == UNSELECTED
        return deadline.work

    assert work(5_000) == work(5)
