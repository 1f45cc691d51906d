"""Whether a policy can be installed in a cluster unchanged: portable, or the reasons.

Knows manifests and annotations only.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.manifests.annotations import PREFIX, AnnotationSettings
from webhook.manifests.models import MutatingPolicyManifest, PolicyManifest
from webhook.manifests.validation import OWN_REASONS

EXPANDS = "expands to the pod templates of workloads"
LEAVES = "leaves out updates that do not change the spec"


def unexportable_obstacles(of_policy: Sequence[str], kind: str) -> tuple[str, ...]:
    """Return the obstacles that `claimgate policies export` cannot express in the API server's own terms, either."""
    if kind == "validating":
        return tuple(each for each in of_policy if not each.startswith((EXPANDS, LEAVES)))
    return tuple(
        f"{each}, which is rewritten for validating policies only" if each.startswith(EXPANDS) else each
        for each in of_policy
        if not each.startswith(LEAVES)
    )


def export_obstacles(manifest: PolicyManifest, settings: AnnotationSettings) -> tuple[str, ...]:
    """Return why the API server would refuse the policy or read it differently; () for a portable one."""
    texts = []
    if settings.facts:
        texts.append(f"uses facts ({', '.join(settings.facts)}), which only claimgate computes")
    if settings.checks:
        texts.append(f"uses checks ({', '.join(settings.checks)}), which only claimgate makes")
    if settings.expands:
        texts.append(f"{EXPANDS} ({PREFIX}expand)")
    if settings.is_about_specs:
        texts.append(f"{LEAVES} ({PREFIX}updates)")
    if settings.reads_resources:
        texts.append(f"is evaluated on resources outside pod templates ({PREFIX}expand)")
    if settings.enters:
        texts.append(f"is evaluated on objects inside others ({PREFIX}expand)")
    if not isinstance(manifest, MutatingPolicyManifest):
        if settings.phase != "validate":
            texts.append(f"is evaluated in the mutating phase ({PREFIX}phase: {settings.phase})")
        reasons = sorted({v.reason for v in manifest.spec.validations if v.reason in OWN_REASONS})
        texts += [f"denies with reason {reason}, which the API server does not know" for reason in reasons]
    return tuple(texts)


def matches_pods(manifest: PolicyManifest) -> bool:
    """Say whether a resource rule of the policy covers pods of the core group."""
    rules = manifest.spec.match_constraints.resource_rules if manifest.spec.match_constraints else []
    return any(
        {"", "*"} & set(rule.api_groups) and {"pods", "*", "*/*", "pods/*"} & set(rule.resources) for rule in rules
    )
