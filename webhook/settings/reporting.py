"""Settings of the verbs that report findings."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.settings import values
from webhook.settings.setting import declare_setting
from webhook.settings.shared import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings(Settings):
    """What a report says of the rules besides their ids."""

    docs_address: str = declare_setting(
        "",
        values.text("URL"),
        "Where the documentation is published: a finding then links to the page of its rule.",
        unset="the sources of rules",
    )
