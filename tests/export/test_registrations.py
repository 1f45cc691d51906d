"""What an API server does not ask about, no policy would have answered; and what it asks cannot fail."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from tests.export.asked import COMMON, CONDITIONS, REGISTERED, SHIPPED, asked, is_common
from tests.literals import PODS, policies, validating
from webhook.admission import phases
from webhook.apimachinery.attributes import Phase
from webhook.cli import run_command_line
from webhook.export.concerns import MEANINGS
from webhook.export.registrations import webhook_registrations
from webhook.manifests.annotations import CONCERNS

ROOT = Path(__file__).parents[2]
SOURCES = (("test", "policies"), ("replay", "tests/data/reviews"), ("replay", "tests/data/manifests"))
ANY_POD = {rule for found in REGISTERED.values() for rules in found.left_out.values() for rule in rules}
NATIVE = {policy.name for policy in SHIPPED.policies if policy.concerns == ("custom-kinds",)}


@pytest.fixture(scope="module")
def answered():
    """Every review of suites and of recorded and public objects, with what the shipped policies answered."""
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
    """What a user sees of a verdict, but for the rules about any Pod and for what API servers refuse themselves."""
    told = [each for each in verdict.decisions if each.action == "deny" or each.is_told or each.audit_annotations]
    return [
        (each.policy, each.rule or each.message)
        for each in told
        if not each.is_advice
        and each.policy not in NATIVE
        and not (each.problems and ANY_POD.issuperset(problem.code for problem in each.problems))
    ]


def test_nothing_is_skipped_that_a_policy_would_have_answered(answered):
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
def test_a_resource_is_asked_about_by_one_webhook(phase):
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
        assert (webhook.name == "") == (not webhook.conditions)
    assert all(not policy.gate().conditions or policy.body() for policy in CONDITIONS[phase].validating)


def test_a_policy_that_does_not_say_what_concerns_it_is_asked_about_everything():
    found = webhook_registrations(policies(validating("true", rule=PODS)), Phase.VALIDATE)
    assert [(webhook.name, webhook.conditions) for webhook in found.webhooks] == [("", ())]
    concerned = policies(validating("true", rule=PODS, annotations={"concerns": "claims"}))
    assert [webhook.name for webhook in webhook_registrations(concerned, Phase.VALIDATE).webhooks] == ["pods"]
    wide = policies(
        validating("true", rule=PODS, annotations={"concerns": "claims"}),
        validating("true", name="all", rule={**PODS, "apiGroups": ["*"], "resources": ["*"]}),
    )
    assert [webhook.name for webhook in webhook_registrations(wide, Phase.VALIDATE).webhooks] == [""]


def test_rules_about_any_pod_can_be_asked():
    found = webhook_registrations(SHIPPED, Phase.VALIDATE, any_pod=True)
    (general,) = [webhook for webhook in found.webhooks if not webhook.name]
    named = {(group, resource) for rule in general.rules for group in rule.groups for resource in rule.resources}
    assert {("", "pods"), ("batch", "jobs"), ("apps", "replicasets")} <= named
    assert found.left_out == {}


def test_every_word_has_a_meaning():
    assert tuple(MEANINGS) == CONCERNS
