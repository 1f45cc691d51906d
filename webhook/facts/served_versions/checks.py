"""The check of versions that no release serves any more."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.served_versions.removed_versions import check_version_is_still_served

CHECKS: Final = (Check(group="served-version", run=check_version_is_still_served),)
