"""If a condition keeps an API server from calling a webhook, no policy of the webhook has a result. No condition fails."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from tests.export.asked import COMMON, CONDITIONS, REGISTERED, SHIPPED, asked, is_common
from tests.literals import PODS, pod, policies, request, validating
from webhook.admission import phases
from webhook.apimachinery.attributes import Phase
from webhook.cli import run_command_line
from webhook.export.registrations import MEANINGS, bookkeeping_condition, webhook_registrations
from webhook.manifests.annotations import CONCERNS

ROOT = Path(__file__).parents[2]
SOURCES = (("test", "policies"), ("replay", "tests/data/reviews"), ("replay", "tests/data/manifests"))
ANY_POD = {rule for found in REGISTERED.values() for rules in found.left_out.values() for rule in rules}
NATIVE = {
    policy.name for policy in SHIPPED.policies if policy.concerns == ("custom-kinds",) or not policy.is_registered
}


@pytest.fixture(scope="module")
def answered():
    found = []
    ask = phases.LocalAnswerer.answer

    def answer(door, attributes, phase):
        verdict = ask(door, attributes, phase)
        found.append((attributes, phase, verdict))
        return verdict

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(phases.LocalAnswerer, "answer", answer)
        with contextlib.chdir(ROOT), contextlib.redirect_stderr(io.StringIO()):
            for source in SOURCES:
                run_command_line([*source, "-o", "json"])
    return [(attributes, phase, verdict) for attributes, phase, verdict in found if is_common(attributes)]


def told_by_others(verdict):
    """Return policy and rule of each decision, without rules about all Pods and mistakes that API servers refuse."""
    told = [each for each in verdict.decisions if each.action == "deny" or each.warns_user or each.audit_annotations]
    return [
        (each.policy, each.rule or each.message)
        for each in told
        if not each.is_advice
        and each.policy not in NATIVE
        and not (each.problems and ANY_POD.issuperset(problem.code for problem in each.problems))
    ]


def test_no_object_is_skipped_for_which_a_policy_has_a_result(answered):
    assert len(answered) > 900
    skipped = [
        (phase, told_by_others(verdict), verdict.patch)
        for attributes, phase, verdict in answered
        if not asked(attributes, phase)
    ]
    assert len(skipped) > 100
    assert [each for each in skipped if each[1] or each[2]] == []


def test_rules_about_any_pod_are_few_and_exist():
    assert len(ANY_POD) <= 5
    known = {rule for policy in SHIPPED.policies for rule in policy.catalogue}
    assert known >= ANY_POD


@pytest.mark.parametrize("phase", Phase)
def test_each_resource_is_registered_in_one_webhook(phase):
    named = [
        (group, resource)
        for webhook in REGISTERED[phase].webhooks
        for rule in webhook.rules
        for group in rule.groups
        for resource in rule.resources
    ]
    common = [each for each in named if each in COMMON]
    assert len(common) == len(set(common))


@pytest.mark.parametrize("phase", Phase)
def test_conditions_stay_far_below_the_limits_of_an_api_server(phase):
    for webhook in REGISTERED[phase].webhooks:
        assert len(webhook.conditions) <= 64
        assert webhook.conditions
    assert all(not policy.match_conditions().conditions or policy.body() for policy in CONDITIONS[phase].validating)


def test_a_policy_without_concerns_is_evaluated_on_every_object():
    found = webhook_registrations(policies(validating("true", rule=PODS)), Phase.VALIDATE)
    assert [(webhook.name, webhook.conditions) for webhook in found.webhooks] == [("every-update", ())]
    concerned = policies(validating("true", rule=PODS, annotations={"concerns": "claims"}))
    assert [webhook.name for webhook in webhook_registrations(concerned, Phase.VALIDATE).webhooks] == ["pods"]
    wide = policies(
        validating("true", rule=PODS, annotations={"concerns": "claims"}),
        validating("true", name="all", rule={**PODS, "apiGroups": ["*"], "resources": ["*"]}),
    )
    assert [webhook.name for webhook in webhook_registrations(wide, Phase.VALIDATE).webhooks] == ["every-update"]


GPU = pod(containers=[{"name": "c", "image": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}])
WORKFLOW = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Workflow",
    "metadata": {"name": "w", "namespace": "default"},
    "spec": {"entrypoint": "a", "templates": [{"name": "a", "container": {"image": "a"}}]},
}
CLONES = {**WORKFLOW, "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "spec": {"template": {"spec": {}}}}
JOB = {**WORKFLOW, "apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": GPU["spec"]}}}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
CHANGES = {  # changes of the metadata and of the object, and whether the webhook is called
    "nothing": ({}, {}, False),
    "the status": ({}, {"status": {"phase": "Succeeded"}}, False),
    "finalizers": ({"finalizers": ["a.b/c"]}, {}, False),
    "managed fields and the version": ({"managedFields": [{"manager": "a"}], "resourceVersion": "7"}, {}, False),
    "a label": ({"labels": {"kueue.x-k8s.io/queue-name": "q"}}, {}, True),
    "an annotation": ({"annotations": {"a": "b"}}, {"status": {}}, True),
    "the owner": ({"ownerReferences": []}, {}, True),
    "the spec": ({}, {"spec": {**GPU["spec"], "x": 1}}, True),
    "a field beside the spec": ({}, {"data": {}}, True),
    "the beginning of a deletion": (DELETED, {}, True),
}


@pytest.mark.parametrize("obj", [GPU, JOB, WORKFLOW, CLONES], ids=lambda obj: obj["kind"])
def test_a_bookkeeping_update_is_not_sent_to_the_webhook(obj):
    for name, (metadata, fields, is_asked) in CHANGES.items():
        changed = {**obj, **fields, "metadata": {**obj["metadata"], **metadata}}
        for new, old in ((changed, obj), (obj, changed)):
            assert asked(request(new, "UPDATE", old), Phase.VALIDATE) is is_asked, name
        new, old = ({**each, "metadata": {**each["metadata"], **DELETED}} for each in (changed, obj))
        assert not asked(request(new, "UPDATE", old), Phase.VALIDATE), name


def test_a_native_policy_is_evaluated_on_every_update():
    """With `stored: warn`, a policy sees only updates of the bookkeeping fields that it names. Policies about one kind
    share a webhook, which gets the updates for all of them.
    """
    native = validating("true", rule={**PODS, "resources": ["pods/ephemeralcontainers"]}, name="native")
    maps = {**PODS, "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
    rules = {"a": "true", "b": "object.?status.?x.orValue(1) == 1"}
    stored = [validating(text, rule=maps, name=name, annotations={"stored": "warn"}) for name, text in rules.items()]
    found = webhook_registrations(policies(native, *stored), Phase.VALIDATE).webhooks
    conditions = {webhook.name: webhook.conditions for webhook in found}
    assert conditions["every-update"] == ()
    assert conditions[""] == (("not-bookkeeping", bookkeeping_condition(("finalizers", "managedFields"))),)


VARIABLES = {  # the arguments and variables of a container that has no device, and whether it may start a launcher
    "the namespace of the Pod": (["--namespace=$(POD_NAMESPACE)"], [{"name": "POD_NAMESPACE", "valueFrom": {}}], False),
    "an ordinary variable": (["$(LEVEL)"], [{"name": "LEVEL", "value": "info"}], False),
    "a variable with a launcher": (["$(RUN) train.py"], [{"name": "RUN", "value": "torchrun"}], True),
    "a variable that is too long to be read": (["$RUN"], [{"name": "RUN", "value": "x" * 65}], True),
    "a variable with a launcher that no command reads": (["--x"], [{"name": "RUN", "value": "torchrun"}], False),
}


def test_a_variable_in_a_command_is_not_a_launcher():
    for name, (words, env, is_asked) in VARIABLES.items():
        started = pod(containers=[{"name": "c", "image": "a", "args": words, "env": env}])
        assert asked(request(started), Phase.VALIDATE) is is_asked, name


def test_rules_about_any_pod_can_be_evaluated():
    found = webhook_registrations(SHIPPED, Phase.VALIDATE, any_pod=True)
    (general,) = [webhook for webhook in found.webhooks if not webhook.name]
    named = {(group, resource) for rule in general.rules for group in rule.groups for resource in rule.resources}
    assert {("", "pods"), ("batch", "jobs"), ("apps", "replicasets")} <= named
    assert found.left_out == {}


def test_every_concern_has_a_meaning():
    assert tuple(MEANINGS) == CONCERNS
