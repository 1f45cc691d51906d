"""What is kept of earlier Pods never changes an answer: about another Pod, namespace, user, parameter or time."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from tests.evaluation.warm import ByKind
from tests.literals import mutating, namespace, pod, policies, request, shipped_policies, validating
from webhook.admission.review import review
from webhook.attributes import JSON, GroupVersionKind, Phase, UserInfo
from webhook.cluster import Cluster
from webhook.cluster.assumed_namespaces import AssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.evaluation import decision_list, kept_answers
from webhook.evaluation.mutating import mutate
from webhook.evaluation.selected_bindings import SelectedBindings
from webhook.evaluation.validating import validate

LABEL = "object.metadata.?labels[?'a'].orValue('') == ''"
ONLY_GOLD = {"matchResources": {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}}
GPU = {"containers": [{"name": "a", "resources": {"limits": {"gpu": "1"}}}]}
HOSTS = [{"name": "hosts", "expression": "object.spec.hostNetwork == true"}]
NODE = {"key": "node", "valueExpression": "string(object.spec.nodeName)"}
CHANGE = "Object{metadata: Object.metadata{labels: {'changed': 'yes'}}}"


NOBODY = FilesCluster()


def labelled(value: str) -> JSON:
    made = pod()
    made["metadata"]["labels"] = {"a": value}
    return made


def denied(loaded, obj: JSON, view: Cluster | None = None, **changes: JSON) -> list[str]:
    """The policies that deny an object as an API server sends it."""
    sent = request(obj, is_decoded=True, **changes)
    made = validate(sent, loaded, view or NOBODY, Phase.VALIDATE)
    return [each.policy for each in made if each.action == "deny"]


def changed(loaded, obj: JSON, **changes: JSON) -> bool:
    return mutate(request(obj, is_decoded=True, **changes), loaded, NOBODY)[0] != obj


@pytest.fixture
def asked(monkeypatch):
    """The policies that were looked into when something was kept of them."""
    kept: list[tuple[str, int]] = []
    keep = kept_answers.KeptAnswers.keep

    def noted(self, key, said, context):
        kept.append((self.candidate.policy.name, len(said)))
        keep(self, key, said, context)

    monkeypatch.setattr(kept_answers.KeptAnswers, "keep", noted)
    return kept


def test_a_pod_with_the_same_to_read_is_not_asked_again(asked):
    loaded = policies(validating("!object.spec.hostNetwork"))
    for value in (False, True, False, True, False):
        assert denied(loaded, pod(hostNetwork=value)) == (["v"] if value else [])
    assert asked == [("v", 1)] * 3  # once about the Pod that is allowed, each time about the one that is denied


def test_bindings_of_other_namespaces_say_nothing():
    loaded = policies(validating(LABEL, binding=ONLY_GOLD))
    gold, plain = FilesCluster([namespace(tier="gold")]), FilesCluster([namespace()])
    for _ in range(2):
        assert denied(loaded, labelled("x"), gold) == ["v"]
        assert denied(loaded, labelled("x"), plain) == []
        assert denied(loaded, labelled(""), gold) == []


def test_a_namespace_that_nobody_knows_is_an_error_each_time():
    loaded = policies(validating(LABEL, binding=ONLY_GOLD))
    for view in (FilesCluster([namespace(tier="gold")]), FilesCluster(), FilesCluster([namespace()]), FilesCluster()):
        known = view.get(GroupVersionKind("", "v1", "Namespace"), "", "team") is not None
        assert denied(loaded, labelled(""), view) == ([] if known else ["v"])


def test_a_namespace_that_nobody_knows_has_its_name():
    by_name = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    loaded = policies(
        validating(LABEL, binding={"matchResources": {"namespaceSelector": {"matchExpressions": [by_name]}}})
    )
    for name in ("team", "kube-system", "team"):
        made = labelled("x")
        made["metadata"]["namespace"] = name
        assert denied(loaded, made) == (["v"] if name == "team" else [])


def test_a_namespace_has_its_name_also_when_nobody_can_look_it_up():
    by_name = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team"}}}
    loaded = policies(validating(LABEL, binding={"matchResources": by_name}))
    known, unknown = (ByKind({"Namespace": each}, NOBODY) for each in (FilesCluster([namespace()]), None))
    for view in (unknown, known, unknown):
        assert denied(loaded, labelled("x"), view) == ["v"]
        assert denied(loaded, labelled(""), view) == []


def test_conditions_about_who_asks_are_asked_of_everybody():
    who = [{"name": "not-alice", "expression": "request.userInfo.username != 'alice'"}]
    loaded = policies(validating("false", matchConditions=who), mutating(CHANGE, matchConditions=who))
    for name in ("alice", "bob", "alice", "bob"):
        user = UserInfo(username=name, groups=())
        assert denied(loaded, pod(), user_info=user) == (["v"] if name == "bob" else [])
        assert changed(loaded, pod(), user_info=user) is (name == "bob")


def test_a_policy_whose_conditions_hold_looks_at_each_pod():
    loaded = policies(validating("object.spec.nodeName == 'a'", matchConditions=HOSTS))
    for _ in range(2):
        assert denied(loaded, pod(hostNetwork=True, nodeName="a")) == []
        assert denied(loaded, pod(hostNetwork=True, nodeName="b")) == ["v"]
        assert denied(loaded, pod(hostNetwork=False, nodeName="b")) == []


def test_a_policy_without_rules_looks_at_each_pod_that_it_records():
    loaded = policies(validating(matchConditions=HOSTS, auditAnnotations=[NODE]))
    for name in ("", "a", "", None, "b"):
        sent = pod(hostNetwork=True, **({} if name is None else {"nodeName": name}))
        verdict = review(request(sent, is_decoded=True), loaded, NOBODY, phase=Phase.VALIDATE)
        assert verdict.audit_annotations == ({"v/node": name} if name else {})
        assert verdict.allowed is (name is not None)  # what cannot be recorded fails


def test_what_is_too_much_to_be_listed_is_not_taken_for_silence(monkeypatch):
    monkeypatch.setattr(decision_list, "MOST_ADMITTED", 1)
    rules = ["object.spec.nodeName == 'a'", "true"]
    loaded = policies(validating("true", "true", name="u"), validating(*rules, matchConditions=HOSTS))
    for name in ("a", "b"):
        assert denied(loaded, pod(hostNetwork=True, nodeName=name)) == (["v"] if name == "b" else [])


def test_conditions_about_the_operation_are_asked_of_each():
    made = [{"name": "made", "expression": "request.operation == 'CREATE'"}]
    loaded = policies(validating("false", matchConditions=made))
    for _ in range(2):
        assert denied(loaded, pod()) == ["v"]
        assert denied(loaded, pod(), operation="UPDATE", old=pod()) == []


def test_conditions_about_a_fact_see_each_pod():
    asks = [{"name": "asks", "expression": "portableGpu.paths.size() > 0"}]
    loaded = policies(validating("false", annotations={"facts": "portableGpu"}, matchConditions=asks))
    for _ in range(3):
        assert denied(loaded, pod(**GPU)) == ["v"]
        assert denied(loaded, pod()) == []


def test_conditions_about_an_object_and_a_fact_that_it_lacks_see_each_pod(asked):
    asks = [{"name": "asks", "expression": "portableGpu.paths.size() > 0 || object.spec.nodeName == 'a'"}]
    loaded = policies(validating("false", annotations={"facts": "portableGpu"}, matchConditions=asks))
    for _ in range(2):
        assert denied(loaded, pod(nodeName="a")) == ["v"]
        assert denied(loaded, pod(nodeName="b")) == []
        assert denied(loaded, pod(nodeName="b", **GPU)) == ["v"]
    assert asked == [("v", 1), ("v", 0), ("v", 1), ("v", 1), ("v", 1)]


def test_a_pod_is_changed_whatever_was_not_changed_before():
    named = [{"name": "named", "expression": "has(object.metadata.labels) && object.metadata.labels.a == 'x'"}]
    loaded = policies(mutating(CHANGE, matchConditions=named))
    for value in ("", "x", "", "x"):
        assert changed(loaded, labelled(value)) is (value == "x")
    assert not changed(loaded, pod())


def test_a_later_policy_sees_what_an_earlier_one_has_made():
    once = [{"name": "once", "expression": "!has(object.metadata.labels)"}]
    then = [{"name": "then", "expression": "has(object.metadata.labels)"}]
    loaded = policies(
        mutating(CHANGE, name="m1", matchConditions=once),
        mutating("Object{metadata: Object.metadata{labels: {'then': 'yes'}}}", name="m2", matchConditions=then),
    )
    for _ in range(2):
        made, _ = mutate(request(pod(), is_decoded=True), loaded, FilesCluster())
        assert made["metadata"]["labels"] == {"changed": "yes", "then": "yes"}


def test_what_there_was_no_time_for_is_not_kept():
    asks = [{"name": "asks", "expression": "has(object.metadata.labels)"}]
    loaded = policies(validating("false", matchConditions=asks, failurePolicy="Ignore"))
    sent = request(labelled("x"), is_decoded=True)
    validate(sent, loaded, FilesCluster(), Phase.VALIDATE, Deadline(at=0.0))
    assert denied(loaded, labelled("x")) == ["v"]


def test_a_policy_whose_fact_there_was_no_time_for_says_so():
    asks = [{"name": "asks", "expression": "portableGpu.paths.size() > 0"}]
    loaded = policies(validating("false", annotations={"facts": "portableGpu"}, matchConditions=asks))
    many = pod(containers=[{"name": f"c{number}"} for number in range(1000)])
    assert denied(loaded, many) == []
    late = validate(request(many, is_decoded=True), loaded, NOBODY, Phase.VALIDATE, Deadline(at=0.0))
    assert [(each.policy, each.evaluation) for each in late] == [("v", "error")]


def test_what_is_kept_is_bounded(asked, monkeypatch):
    monkeypatch.setattr(kept_answers, "MOST_KEPT", 3)
    loaded = policies(validating("object.spec.nodeName != 'z'"))
    for number in (0, 1, 2, 3, 3, 0):  # the fourth sends the first three away
        assert denied(loaded, pod(nodeName=str(number))) == []
    assert len(asked) == 5


def test_labels_that_are_not_texts_select_nothing_for_certain():
    loaded = policies(validating("true", binding=ONLY_GOLD))
    candidates = loaded.validating_for(request(pod()), Phase.VALIDATE)
    assert SelectedBindings(candidates)._by_labels({"tier": ["gold"]}, is_known=True) == (None,)  # type: ignore[dict-item]


def test_the_long_way_gives_the_same():
    """What an API server sends takes the short way, what a file holds the long one."""
    asks = [{"name": "asks", "expression": "portableGpu.paths.size() > 0"}]
    loaded = policies(
        validating(LABEL, name="a"),
        validating("false", name="b", annotations={"facts": "portableGpu"}, matchConditions=asks, binding=ONLY_GOLD),
        validating("request.userInfo.username == 'alice'", name="c"),
    )
    view = FilesCluster([namespace(tier="gold")])
    for obj in (pod(), pod(**GPU), labelled("x"), labelled("")) * 2:
        short, long = (
            [
                replace(each, elapsed_s=0.0)
                for each in validate(request(obj, is_decoded=is_decoded), loaded, view, Phase.VALIDATE)
            ]
            for is_decoded in (True, False)
        )
        assert short == long


def test_a_review_leaves_nothing_to_the_garbage_collector():
    loaded, view = shipped_policies(), AssumedNamespaces(FilesCluster())
    sent = request(pod(containers=[{"name": "a", "image": "x"}]), is_decoded=True)
    for _ in range(3):  # the first ones put together what is kept
        verdicts = [review(sent, loaded, view, phase=phase) for phase in Phase]
    gc.collect()
    gc.disable()
    try:
        verdicts = [review(sent, loaded, view, phase=phase) for phase in Phase]
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert all(verdict.allowed for verdict in verdicts)
