"""No object makes an API server stop a matchCondition. All are estimated, and the most expensive ones evaluated."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.export.asked import REGISTERED, asked
from tests.export.large_objects import BYTES, SHAPES, kinds_with
from tests.literals import request
from tests.rows import some_quickly
from webhook.apimachinery.attributes import Phase
from webhook.cel.cost import MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT
from webhook.cli import run_command_line
from webhook.export.condition_costs import most_cost_of_condition
from webhook.export.registrations import MEANINGS, NOT_A_MIRROR, PLACES, concerns_condition
from webhook.yamltext.yamlfile import dump

VERSION = (1, 36)
CONCERNS = [*((word,) for word in MEANINGS), *combinations(MEANINGS, 2), tuple(MEANINGS)]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_no_object_exhausts_a_condition_about_concerns(place):
    mirror = most_cost_of_condition(NOT_A_MIRROR[1], VERSION)
    costs = {
        words: most_cost_of_condition(concerns_condition(words, place.spec, place.metadata), VERSION)
        for words in CONCERNS
    }
    assert {words: cost for words, cost in costs.items() if cost > PER_CALL_LIMIT} == {}
    assert max(costs.values()) + mirror <= MATCH_CONDITIONS_BUDGET


@pytest.mark.parametrize("make", some_quickly(SHAPES.values(), 3), ids=SHAPES.keys())
def test_a_large_object_with_a_gpu_is_evaluated(make):
    for obj in kinds_with(*make(BYTES)):
        created = request(obj)
        assert asked(created, Phase.VALIDATE), obj["kind"]
        unlabelled = {**obj, "metadata": {**obj["metadata"], "labels": {}}}
        changed = request({**obj, "metadata": {**obj["metadata"], "generateName": "o"}}, "UPDATE", unlabelled)
        assert asked(changed, Phase.VALIDATE), obj["kind"]
        for each in (created, changed):
            asked(each, Phase.MUTATE)  # the condition does not fail


def test_registered_conditions_are_the_estimated_ones():
    written = {text for found in REGISTERED.values() for webhook in found.webhooks for _, text in webhook.conditions}
    assert len(written) == 10
    assert all(most_cost_of_condition(text, VERSION) <= PER_CALL_LIMIT for text in written)


def configuration(*conditions, failure_policy="Ignore"):
    webhook = {
        "name": "pods.site.example.com",
        "clientConfig": {"url": "https://127.0.0.1:9"},
        "rules": [],
        "failurePolicy": failure_policy,
        "matchConditions": [{"name": f"c{n}", "expression": text} for n, text in enumerate(conditions)],
    }
    kind = "ValidatingWebhookConfiguration"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "site"},
        "webhooks": [webhook],
    }


NAMES = "object.spec.containers.exists(c, c.env.exists(e, e.name.matches('RANK|MASTER')))"
BOUNDED = (
    "object.spec.containers.size() > 8 || object.spec.containers.exists(c, c.env.size() > 64 || "
    "c.env.exists(e, e.name.size() > 64 || e.name.matches('RANK|MASTER')))"
)


@pytest.mark.parametrize(
    ("conditions", "failure_policy", "expected"),
    [
        ((NAMES,), "Ignore", "`c0` may cost more on a large object than the 1,000,000"),
        (("true", NAMES), "Fail", "and then the API server refuses the object"),
        ((NAMES,), "Ignore", "and then the API server does not call the webhook"),
        ((BOUNDED,), "Ignore", ""),
        (('!("system:nodes" in request.userInfo.groups)',), "Ignore", ""),
        (('request.resource.group != "coordination.k8s.io"',), "Fail", ""),
        (("object.spec.x > ",), "Fail", "is not known, because it does not compile"),
        (
            tuple(f"authorizer.group('').resource('pods').check('verb{n}').allowed()" for n in range(9)),
            "Fail",
            "together cost more on a large object than the 2,500,000",
        ),
    ],
)
def test_a_check_reports_conditions_that_a_large_object_exhausts(
    conditions, failure_policy, expected, tmp_path, capsys
):
    file = tmp_path / "site.yaml"
    file.write_text(dump(configuration(*conditions, failure_policy=failure_policy)))
    code = run_command_line(["webhook-config", "--check", str(file)])
    out = " ".join(capsys.readouterr().out.split())
    assert code == bool(expected)
    assert expected in out
