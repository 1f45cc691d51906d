"""Until the last day, API servers do not call the webhooks for exempt users, and claimgate also exempts them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from tests.export.asked import CLUSTER, REGISTERED
from tests.literals import pod, policies, request, validating
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase, UserInfo
from webhook.cel.cost import MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT
from webhook.export.condition_costs import most_cost_of_condition
from webhook.export.exemptions import exemption_conditions, expired_exemptions
from webhook.manifests import leave_alone
from webhook.manifests.configuration import Exemption, FileConfiguration
from webhook.manifests.webhook_configurations import parse_webhook_configuration

LAST = dt.date(2027, 1, 31)
ODD = 'robot "\\ó'


def exemption(**fields: Any) -> Exemption:
    return Exemption(owner="us", reason="r", expires=LAST, **fields)


EXEMPT = (exemption(users=("alice", ODD), groups=("break-glass",)), exemption(groups=("gitops", "admins")))
USERS = {
    "a user": (UserInfo("alice"), True),
    "a user with odd characters": (UserInfo(ODD), True),
    "a group": (UserInfo("bob", groups=("a", "break-glass")), True),
    "a group of another exemption": (UserInfo("bob", groups=("admins",)), True),
    "somebody": (UserInfo("bob", groups=("alice",)), False),
    "nobody": (UserInfo(), False),
    "too many groups for a condition": (UserInfo("bob", groups=(*map(str, range(1000)), "admins")), False),
}


@pytest.mark.parametrize(("user", "is_exempt"), USERS.values(), ids=USERS.keys())
def test_a_condition_and_the_server_exempt_the_same_users(user: UserInfo, is_exempt: bool, monkeypatch: Any) -> None:
    asked = [{"name": name, "expression": text} for name, text in exemption_conditions(EXEMPT, LAST)]
    created = replace(request(pod()), user_info=user)
    conditions = policies(validating("false", matchConditions=asked))
    assert answer_request(created, conditions, CLUSTER, phase=Phase.VALIDATE).allowed is is_exempt
    configured = replace(policies(validating("false")), configuration=FileConfiguration(exemptions=EXEMPT))
    for day, allowed in ((LAST, is_exempt), (LAST + dt.timedelta(1), False)):
        monkeypatch.setattr("webhook.admission.exceptions.current_day", lambda day=day: day)
        assert answer_request(created, configured, CLUSTER, phase=Phase.VALIDATE).allowed is allowed
    assert leave_alone.is_exempt(EXEMPT, user, LAST) is is_exempt


def test_an_exemption_that_has_expired_has_no_condition() -> None:
    names = [name for name, _ in exemption_conditions(EXEMPT, LAST)]
    assert names == ["not-exempt-0-until-2027-01-31", "not-exempt-1-until-2027-01-31"]
    assert exemption_conditions(EXEMPT, LAST + dt.timedelta(1)) == ()


def test_the_maximum_of_exemptions_costs_an_api_server_little() -> None:
    names = tuple("x" * 255 + chr(97 + number % 26) for number in range(50))
    every = [exemption(users=names, groups=names[:10])] * 16
    costs = [most_cost_of_condition(text, (1, 36)) for _, text in exemption_conditions(every, LAST)]
    assert max(costs) < PER_CALL_LIMIT
    dearest = max(
        sum(most_cost_of_condition(text, (1, 36)) for _, text in webhook.conditions)
        for found in REGISTERED.values()
        for webhook in found.webhooks
    )
    assert sum(costs) + dearest < MATCH_CONDITIONS_BUDGET


def test_a_condition_that_a_cluster_still_has_is_found() -> None:
    condition = [{"name": name, "expression": "true"} for name, _ in exemption_conditions(EXEMPT, LAST)]
    found = parse_webhook_configuration(
        {
            "kind": "ValidatingWebhookConfiguration",
            "webhooks": [{"name": "a", "clientConfig": {}, "matchConditions": condition}],
        }
    )
    assert list(expired_exemptions([found, found], LAST)) == []
    (told,) = expired_exemptions([found, found], LAST + dt.timedelta(1))
    assert told.startswith(
        "an exemption expired on 2027-01-31, but API servers still do not call claimgate for its users and groups: "
    )
