"""Settings of what tells users about rules: reports, and the server."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.settings import values
from webhook.settings.setting import declare_setting
from webhook.settings.shared import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSettings(Settings):
    """What is said of the rules besides their ids."""

    docs_address: str = declare_setting(
        "",
        values.text_type("URL"),
        "Where the documentation is published: findings, denials and warnings then link to the pages of their rules.",
        unset="no link but to the sources of rules, in reports",
    )
