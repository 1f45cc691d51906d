"""Can a policy be installed in a cluster as it is: portable, or why not.

Knows manifests and annotations only.
"""

from __future__ import annotations

from webhook.manifests.annotations import PREFIX, Settings
from webhook.manifests.models import MutatingPolicyManifest, PolicyManifest
from webhook.manifests.validation import OWN_REASONS

EXPANDS = "expands to the pod templates of workloads"
LEAVES = "leaves out updates that do not change the spec"


def is_written_out(obstacle: str) -> bool:
    """Say whether `claimgate policies export` can say it in the API server's own terms."""
    return obstacle.startswith((EXPANDS, LEAVES))


def obstacles(manifest: PolicyManifest, settings: Settings) -> tuple[str, ...]:
    """Why the API server would refuse the policy or take it for something else; () for a portable one."""
    found = []
    if settings.facts:
        found.append(f"uses facts ({', '.join(settings.facts)}), which only claimgate computes")
    if settings.checks:
        found.append(f"uses checks ({', '.join(settings.checks)}), which only claimgate makes")
    if settings.expands:
        found.append(f"{EXPANDS} ({PREFIX}expand)")
    if settings.is_about_specs:
        found.append(f"{LEAVES} ({PREFIX}updates)")
    if settings.reads_resources:
        found.append(f"is asked about resources outside pod templates ({PREFIX}expand)")
    if settings.enters:
        found.append(f"is asked about objects inside others ({PREFIX}expand)")
    if not isinstance(manifest, MutatingPolicyManifest):
        if settings.phase != "validate":
            found.append(f"speaks in the mutating phase ({PREFIX}phase: {settings.phase})")
        reasons = sorted({v.reason for v in manifest.spec.validations if v.reason in OWN_REASONS})
        found += [f"denies with reason {reason}, which the API server does not know" for reason in reasons]
    return tuple(found)


def names_pods(manifest: PolicyManifest) -> bool:
    """Say whether a resource rule of the policy covers pods of the core group."""
    rules = manifest.spec.match_constraints.resource_rules if manifest.spec.match_constraints else []
    return any(
        {"", "*"} & set(rule.api_groups) and {"pods", "*", "*/*", "pods/*"} & set(rule.resources) for rule in rules
    )
