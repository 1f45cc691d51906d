"""Makes matchConditions for exempt users. API servers do not call claimgate for these users.

So exempt users can work while claimgate is down.

A matchCondition cannot compare dates, so its name contains the last day of the exemption. `webhook-config` leaves out
expired exemptions, and `webhook-config --check --live` reports expired conditions in a cluster.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Final

from webhook.cel.syntax.text import string_literal
from webhook.manifests.configuration import Exemption
from webhook.manifests.leave_alone import MOST_GROUPS
from webhook.manifests.webhook_configurations import WebhookConfiguration

_NAME: Final = re.compile(r"not-exempt-\d+-until-(\d{4}-\d\d-\d\d)")
_USER: Final = 'request.userInfo.?username.orValue("")'
_GROUPS: Final = "request.userInfo.?groups.orValue([])"


def exemption_conditions(exemptions: Iterable[Exemption], day: dt.date) -> tuple[tuple[str, str], ...]:
    """Return name and expression of a matchCondition for each exemption that has not expired."""
    return tuple(
        (f"not-exempt-{number}-until-{each.expires}", _condition(each))
        for number, each in enumerate(exemptions)
        if each.days_left(day) >= 0
    )


def _condition(exemption: Exemption) -> str:
    users = [f"{_USER} != {string_literal(name)}" for name in exemption.users]
    groups = " || ".join(f"{string_literal(name)} in {_GROUPS}" for name in exemption.groups)
    return " && ".join([*users, *([f"({_GROUPS}.size() > {MOST_GROUPS} || !({groups}))"] if groups else [])])


def expired_exemptions(configurations: Iterable[WebhookConfiguration], day: dt.date) -> Iterator[str]:
    """Yield a sentence for each expired exemption that is still in the configurations of a cluster."""
    today = day.isoformat()
    expired = {
        match[1]
        for configuration in configurations
        for webhook in configuration.webhooks
        for condition in webhook.match_conditions
        if (match := _NAME.fullmatch(condition.name)) and match[1] < today
    }
    for ends in sorted(expired):
        still = f"an exemption expired on {ends}, but API servers still do not call claimgate for its users and groups"
        yield f"{still}: run helm upgrade, or apply what `claimgate webhook-config` prints"
