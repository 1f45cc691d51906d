"""The policies in service as /debug/policies lists them: their kinds, resources and bindings.

Only names, kinds and settings: no expression, no parameter, nothing of any object.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webhook.policy.compiled import Binding, Policy
from webhook.policy.policy_set import PolicySet


def policy_rows(policies: PolicySet) -> Iterator[dict[str, Any]]:
    """Yield a row of JSON for each policy, in the order of evaluation."""
    for policy in policies.policies:
        yield {
            "name": policy.name,
            "kind": policy.kind,
            "file": Path(policy.file).name,
            "failurePolicy": "Fail" if policy.is_fail else "Ignore",
            "phase": policy.phase if policy.kind == "validating" else "mutate",
            "checks": policy.checks,
            "facts": policy.facts,
            "concerns": policy.concerns,
            "anyPod": policy.any_pod,
            "registered": policy.is_registered and bool(policy.bindings),
            "resources": sorted(set(_resources_of_policy(policy))),
            "bindings": [_binding(each) for each in policy.bindings],
        }


def _resources_of_policy(policy: Policy) -> Iterator[str]:
    for rule in policy.criteria.rules:
        groups = ("*",) if rule.groups is None else sorted(rule.groups)
        for resource, sub in rule.resources:
            name = f"{resource}/{sub}" if sub else resource
            yield from (f"{name}.{group}" if group else name for group in groups)


def _binding(binding: Binding) -> dict[str, Any]:
    source = binding.param_source
    param = f"{source.namespace}/{source.name}".strip("/") if source and source.name else ""
    return {"name": binding.name, "validationActions": binding.actions, "param": param}
