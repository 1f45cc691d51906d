"""PolicyExceptions and their policy on a real API server, for tests with an owner of a namespace."""

from __future__ import annotations

import datetime as dt
from typing import Any

import yaml

from tests.e2e.apiserver import ApiServer
from tests.e2e.test_rules import pod
from tests.live_policies.stored import policy

KIND = "policyexceptions.claimgate.dev"
EIGHT = policy("eight-gpus", "gpu.devices == null || gpu.devices <= 8", facts=["gpu"])
NINE = {"nvidia.com/gpu": "9"}
BOUNDS = 'policyExceptions: [{namespaces: [research], rules: ["*"], maxDays: 30}]\n'
TODAY = dt.datetime.now(dt.UTC).date()
NEXT_WEEK = TODAY + dt.timedelta(days=7)


def exception(name: str = "old", namespace: str = "research", **spec: Any) -> dict[str, Any]:
    about = {"rules": ["eight-gpus"], "names": ["train-*"], "kinds": ["Pod"]}
    signed = {"owner": "ada", "reason": "until the nodes are replaced", "expires": str(NEXT_WEEK)}
    return {
        "apiVersion": "claimgate.dev/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**about, **signed, **spec},
    }


def apply_as(server: ApiServer, user: str, value: dict[str, Any], *, dry_run: bool = False) -> str:
    """Return what kubectl says on stderr."""
    how = ("--dry-run=server",) if dry_run else ()
    done = server.kubectl("apply", f"--as={user}", *how, "-f", "-", given=yaml.safe_dump(value), code=None)
    return done.stderr


def refusal_of_nine_gpus(server: ApiServer, name: str, namespace: str = "research") -> str:
    made = pod(name, NINE)
    made["metadata"]["namespace"] = namespace
    done = server.kubectl("create", "--dry-run=server", "-f", "-", given=yaml.safe_dump(made), code=None)
    return done.stderr if done.returncode else ""


def without_namespace(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {"name": value["metadata"]["name"]}}
