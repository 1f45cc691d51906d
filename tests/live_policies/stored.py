"""Stored objects as in a view of the cluster, for tests without an API server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import yaml

from webhook.cluster.files import FilesCluster
from webhook.live_policies.compile import Compiler
from webhook.live_policies.objects import StoredPolicies, StoredPolicy
from webhook.policy.load import Options
from webhook.workloads import table
from webhook.yamltext.yamlfile import Document

OPTIONS = Options(table=table.load_table())


def policy(name: str, expression: str = "true", **spec: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    matched = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    return stored("ValidatingPolicy", name, {**matched, **spec})


def binding(name: str, policy_name: str, **spec: Any) -> dict[str, Any]:
    return stored("PolicyBinding", name, {"policyName": policy_name, "validationActions": ["Deny"], **spec})


def stored(kind: str, name: str, spec: dict[str, Any], day: int = 1, generation: int = 1) -> dict[str, Any]:
    metadata = {
        "name": name,
        "uid": f"{kind}-{name}",
        "generation": generation,
        "creationTimestamp": f"2026-01-{day:02}T00:00:00Z",
    }
    return {"apiVersion": "claimgate.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def compiler(clock: Callable[[], float] = time.thread_time) -> Compiler:
    """Return a compiler for policies that do not use `authorizer`."""
    return Compiler(OPTIONS, may_ask=False, clock=clock)


def view(*values: dict[str, Any]) -> StoredPolicies:
    return StoredPolicies(FilesCluster([Document(value, "") for value in values], is_whole=True))


def of(*values: dict[str, Any]) -> tuple[StoredPolicy, ...]:
    """Return the objects in the order in which claimgate uses them."""
    return view(*values).list_oldest_first()


def shown(value: Any) -> str:
    return yaml.safe_dump(value)
