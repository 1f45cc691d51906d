"""If a view does not have a namespace, the labels of the namespace are unknown, and not absent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.literals import mutating, policies, request, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.errors import LookupFailed
from webhook.manifests.configuration import FileConfiguration

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "new"}, "spec": {"containers": []}}
NOT_IN = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}
ABSENT = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
EQUAL = {"matchLabels": {"team": "a"}}
BY_NAME = {"matchLabels": {"kubernetes.io/metadata.name": "new"}}
NOT_BY_NAME = {
    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]
}


class Failing(FilesCluster):
    """A view that fails to look up namespaces."""

    def get(self, gvk, namespace, name):
        if gvk.kind == "Namespace":
            raise LookupFailed("Namespace: not synced yet")
        return super().get(gvk, namespace, name)


VIEWS = {
    "a view that has other namespaces": FilesCluster(()),
    "a view that cannot answer": Failing(()),
    "a view of files, which assumes that each namespace exists": ClusterWithAssumedNamespaces(FilesCluster(())),
}
LABELLED = FilesCluster(
    [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": {"team": "b"}}}]
)


def configured(selector):
    loaded = policies(validating("false", failurePolicy="Fail"))
    configuration = FileConfiguration.model_validate({"ignore": {"namespaceSelector": selector}})
    return replace(loaded, configuration=configuration)


def allows(loaded, view, phase=Phase.VALIDATE):
    return answer_request(request(POD), loaded, view, phase=phase).allowed


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("selector", [NOT_IN, ABSENT, EQUAL], ids=["NotIn", "DoesNotExist", "In"])
def test_unknown_labels_do_not_ignore_an_object(selector, view):
    assert not allows(configured(selector), view)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("selector", [BY_NAME, NOT_BY_NAME], ids=["In", "NotIn"])
def test_the_name_of_a_namespace_is_always_known(selector, view):
    assert allows(configured(selector), view)


def test_known_labels_can_ignore_an_object():
    assert allows(configured(NOT_IN), LABELLED)
    assert allows(configured(ABSENT), FilesCluster([{**POD, "kind": "Namespace", "metadata": {"name": "new"}}]))
    assert not allows(configured(EQUAL), LABELLED)


RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
CONSTRAINTS = {"resourceRules": [RULE], "namespaceSelector": NOT_IN}
MATCHED = {"matchResources": {"namespaceSelector": NOT_IN}}
CHANGE = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]'
NAMESPACED = "namespaceObject.metadata.name == 'old'"
ASKING = {
    "a policy's namespaceSelector": (validating, "true", {"matchConstraints": CONSTRAINTS}),
    "a binding's namespaceSelector": (validating, "true", {"binding": MATCHED}),
    "namespaceObject in a validation": (validating, f"!({NAMESPACED})", {}),
    "a mutating policy's namespaceSelector": (mutating, CHANGE, {"matchConstraints": CONSTRAINTS}),
    "a mutating binding's namespaceSelector": (mutating, CHANGE, {"binding": MATCHED}),
    "namespaceObject in a mutation": (mutating, CHANGE.replace('"b"', "namespaceObject.metadata.name"), {}),
}


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(
    "view", [VIEWS["a view that has other namespaces"], VIEWS["a view that cannot answer"]], ids=["absent", "fails"]
)
@pytest.mark.parametrize(("make", "text", "spec"), ASKING.values(), ids=ASKING.keys())
def test_the_failure_policy_decides_what_needs_the_namespace(make, text, spec, view, failure_policy):
    loaded = policies(make(text, failurePolicy=failure_policy, **spec))
    phase = Phase.VALIDATE if make is validating else Phase.MUTATE
    verdict = answer_request(request(POD), loaded, view, phase=phase)
    assert [each.evaluation for each in verdict.decisions] == ["error"]
    assert verdict.allowed is (failure_policy == "Ignore")
    assert verdict.patch in ((), None)


@pytest.mark.parametrize(("make", "text", "spec"), ASKING.values(), ids=ASKING.keys())
def test_a_namespace_that_is_known_is_matched(make, text, spec):
    loaded = policies(make(text, failurePolicy="Fail", **spec))
    phase = Phase.VALIDATE if make is validating else Phase.MUTATE
    verdict = answer_request(request(POD), loaded, LABELLED, phase=phase)
    assert verdict.allowed
    assert not [each for each in verdict.decisions if each.evaluation == "error"]
    assert bool(verdict.patch) is (make is mutating)


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
@pytest.mark.parametrize(("make", "text", "spec"), ASKING.values(), ids=ASKING.keys())
def test_a_policy_that_needs_an_unknown_namespace_is_not_evaluated(make, text, spec, failure_policy):
    loaded = policies(make(text, failurePolicy=failure_policy, **spec))
    phase = Phase.VALIDATE if make is validating else Phase.MUTATE
    view = VIEWS["a view of files, which assumes that each namespace exists"]
    verdict = answer_request(request(POD), loaded, view, phase=phase)
    said = [(each.evaluation, each.message) for each in verdict.decisions]
    assert said == [("unknown", "not evaluated: labels of Namespace new are not known")]
    assert verdict.allowed
    assert [each.name for decision in verdict.decisions for each in decision.missing] == ["new"]


OWN_LABEL = {"matchExpressions": [{"key": "claimgate.dev/gpu", "operator": "NotIn", "values": ["own"]}]}


def test_a_label_of_claimgate_is_absent_unless_a_file_sets_it():
    loaded = policies(validating("false", binding={"matchResources": {"namespaceSelector": OWN_LABEL}}))
    assert not allows(loaded, VIEWS["a view of files, which assumes that each namespace exists"])


def test_namespaces_of_whole_files_have_the_labels_that_they_have():
    loaded = policies(validating("false", binding={"matchResources": {"namespaceSelector": EQUAL}}))
    view = ClusterWithAssumedNamespaces(FilesCluster((), is_whole=True))
    verdict = answer_request(request(POD), loaded, view, phase=Phase.VALIDATE)
    assert (verdict.allowed, verdict.decisions) == (True, ())
