"""Reads the annotations `claimgate.dev/` of policies. These annotations configure features that Kubernetes does not
have.

The module says whether an API server can evaluate a policy without these annotations. Other modules apply the
annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

from msgspec import Struct

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.manifests.field_errors import FieldError, invalid_error
from webhook.manifests.models import MutatingPolicyManifest, PolicyManifest
from webhook.manifests.validation import OWN_REASONS
from webhook.rules.decisions import SEVERITIES

PREFIX = "claimgate.dev/"
PHASES = ("validate", "mutate", "both")
MISSING = ("admit", "deny", "warn")
STORED = ("deny", "warn")
CONCERNS = (
    "devices",
    "portable-gpu",
    "claims",
    "queues",
    "launchers",
    "gpu-images",
    "amounts",
    "pod-level",
    "custom-kinds",
)
"""The words of the annotation `concerns`. export/registrations.py has the expression of each word."""
RESOURCE_CONCERNS = frozenset(("devices", "portable-gpu", "claims", "pod-level"))
"""The words that depend only on resources and claims of a Pod (evaluation/invocations.py)."""
_NAMES = (
    "expand",
    "facts",
    "checks",
    "missing",
    "phase",
    "registered",
    "updates",
    "stored",
    "concerns",
    "any-pod",
    "severity",
    "category",
    "docs",
)

SPEC_CHANGES = {
    "name": f"{PREFIX}updates",
    "expression": "request.operation == 'CREATE' || object.?spec != oldObject.?spec",
}
"""The matchCondition for `updates: spec`. Labels and finalizers of an object that was stored with a mistake can still
change."""


class AnnotationSettings(Struct, frozen=True, kw_only=True):
    """The settings in a policy's annotations, with defaults for absent annotations.

    Attributes:
        missing: the result of a rule that cannot be evaluated because an object does not exist.
        is_registered: whether webhook configurations include the policy. audit, replay and test always evaluate it.
        warns_about_stored: whether a problem only warns if the stored object already has the problem.
        skips_bookkeeping: whether to allow updates of only bookkeeping fields, and of objects that are being deleted
            (docs/live-policies.md, `stored`).
        concerns: parts of a Pod, or of an object that creates Pods. The policy applies if the Pod has at least one of
            these parts.
        any_pod: the rules that are also about Pods without these parts.
    """

    expands: bool = False
    enters: bool = False
    reads_patches: bool = False
    reads_resources: bool = False
    facts: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    missing: Literal["admit", "deny", "warn"] = "admit"
    phase: Literal["validate", "mutate", "both"] = "validate"
    is_registered: bool = True
    concerns: tuple[str, ...] = ()
    any_pod: tuple[str, ...] = ()
    is_about_specs: bool = False
    warns_about_stored: bool = False
    skips_bookkeeping: bool = False
    severity: str = ""
    category: str = ""
    docs: str = ""


def read_annotations(
    annotations: Mapping[str, str], known_facts: tuple[str, ...], known_checks: tuple[str, ...] = ()
) -> tuple[AnnotationSettings, tuple[FieldError, ...]]:
    """Return the settings and errors of the annotations `claimgate.dev/`. Other annotations are ignored."""
    own = {key.removeprefix(PREFIX): text.strip() for key, text in annotations.items() if key.startswith(PREFIX)}
    facts, checks, words = (_comma_separated(own.get(name, "")) for name in ("facts", "checks", "expand"))
    concerns = _comma_separated(own.get("concerns", ""))
    errors = [_unknown_annotation_error(name) for name in own if name not in _NAMES]
    errors += [
        error
        for error in (
            *(
                _error_unless_one_of("expand", {"expand": word}, ("pods", "objects", "patches", "resources"))
                for word in words
            ),
            _error_unless_one_of("phase", own, PHASES),
            _error_unless_one_of("registered", own, ("true", "false")),
            _error_unless_one_of("updates", own, ("spec",)),
            _error_unless_one_of("stored", own, STORED),
            _error_unless_one_of("severity", own, SEVERITIES),
            _error_unless_one_of("missing", own, MISSING),
            *(_error_unless_one_of("concerns", {"concerns": word}, CONCERNS) for word in concerns),
            *(_error_unless_one_of("facts", {"facts": fact}, known_facts) for fact in facts),
            *(_error_unless_one_of("checks", {"checks": group}, known_checks) for group in checks),
        )
        if error
    ]
    phase, missing = own.get("phase", "validate"), own.get("missing", "admit")
    return (
        AnnotationSettings(
            expands="pods" in words,
            enters="objects" in words,
            reads_patches="patches" in words,
            reads_resources="resources" in words,
            facts=tuple(fact for fact in facts if fact in known_facts),
            checks=tuple(group for group in checks if group in known_checks),
            missing="deny" if missing == "deny" else "warn" if missing == "warn" else "admit",
            phase="mutate" if phase == "mutate" else "both" if phase == "both" else "validate",
            is_registered=own.get("registered") != "false",
            concerns=tuple(word for word in concerns if word in CONCERNS),
            any_pod=_comma_separated(own.get("any-pod", "")),
            is_about_specs=own.get("updates") == "spec",
            warns_about_stored=own.get("stored") == "warn",
            skips_bookkeeping=own.get("stored") in STORED,
            severity=own.get("severity", ""),
            category=own.get("category", ""),
            docs=own.get("docs", ""),
        ),
        tuple(errors),
    )


def expand_updates_annotation(manifest: JSON) -> JSON:
    """Return the manifest with a matchCondition in place of its annotation `updates`."""
    annotations = manifest["metadata"].get("annotations") or {}
    if f"{PREFIX}updates" not in annotations:
        return manifest
    others = {key: text for key, text in annotations.items() if key != f"{PREFIX}updates"}
    conditions = [SPEC_CHANGES, *(manifest["spec"].get("matchConditions") or ())]
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "annotations": others},
        "spec": {**manifest["spec"], "matchConditions": conditions},
    }


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _path_of_annotation(name: str) -> FieldPath:
    return ("metadata", "annotations", PREFIX + name)


def _error_unless_one_of(name: str, own: Mapping[str, str], values: tuple[str, ...]) -> FieldError | None:
    value = own.get(name)
    if value is None or value in values:
        return None
    return invalid_error(_path_of_annotation(name), value, f"expected one of: {', '.join(values)}")


def _unknown_annotation_error(name: str) -> FieldError:
    close = get_close_matches(name, _NAMES, n=1)
    hint = f"did you mean `{PREFIX}{close[0]}`?" if close else f"known ones: {', '.join(_NAMES)}"
    return invalid_error(_path_of_annotation(name), PREFIX + name, f"unknown annotation; {hint}")


EXPANDS = "expands to the pod templates of workloads"
LEAVES = "leaves out updates that do not change the spec"


def unexportable_obstacles(of_policy: Sequence[str], kind: str) -> tuple[str, ...]:
    """Return the obstacles that `claimgate policies export` cannot remove."""
    if kind == "validating":
        return tuple(each for each in of_policy if not each.startswith((EXPANDS, LEAVES)))
    return tuple(
        f"{each}, which is rewritten for validating policies only" if each.startswith(EXPANDS) else each
        for each in of_policy
        if not each.startswith(LEAVES)
    )


def export_obstacles(manifest: PolicyManifest, settings: AnnotationSettings) -> tuple[str, ...]:
    """Return why API servers would refuse the policy or evaluate it differently."""
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
        texts.append(f"is evaluated on objects inside other objects ({PREFIX}expand)")
    if not isinstance(manifest, MutatingPolicyManifest):
        if settings.phase != "validate":
            texts.append(f"is evaluated in the mutating phase ({PREFIX}phase: {settings.phase})")
        reasons = sorted({v.reason for v in manifest.spec.validations if v.reason in OWN_REASONS})
        texts += [f"denies with reason {reason}, which the API server does not know" for reason in reasons]
    return tuple(texts)


def matches_pods(manifest: PolicyManifest) -> bool:
    """Return whether a resource rule of the policy covers pods of the core group."""
    rules = manifest.spec.match_constraints.resource_rules if manifest.spec.match_constraints else []
    return any(
        {"", "*"} & set(rule.api_groups) and {"pods", "*", "*/*", "pods/*"} & set(rule.resources) for rule in rules
    )
