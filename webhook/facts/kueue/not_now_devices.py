"""The problem of devices that a job's claims select and that drivers have not published yet.

Source: kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go, counters.go and capacity.go.
"""

from __future__ import annotations

from typing import Final

from webhook.facts.kueue.groups import KUEUE_NOT_NOW
from webhook.paths import FieldPath
from webhook.problem import Problem

DEVICES_MISSING: Final = KUEUE_NOT_NOW.rule(
    "kueue-not-now/devices-missing",
    title="The devices that the claims of a job select are there.",
    why=(
        "Kueue looks for devices where a claim has selectors, and where quota counts counters or capacities, and "
        "tries again until drivers have published enough of them."
    ),
    source="kubernetes-sigs/kueue@ff69552e pkg/dra/claims.go, pkg/dra/counters.go, pkg/dra/capacity.go",
    function="validateCELSelectorsAgainstDevices",
)


def devices_missing_problem(path: FieldPath, message: str) -> Problem:
    """Return the problem of a claim for more devices than there are."""
    fix = "in the template, ask for fewer or other devices, or wait until the driver publishes more devices"
    return DEVICES_MISSING.problem(path, message, fix)
