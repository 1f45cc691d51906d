"""The same sixteen policies of `make bench` for three engines, with three CEL validations each.

The expressions are those of tests/bench/bench_policies.py, in the form of each engine: ValidatingAdmissionPolicy,
ConstraintTemplate with Gatekeeper's CEL engine, Kyverno's ValidatingPolicy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench import bench_policies, traffic

COUNT = 16
NAMESPACES = ("attackers", *(f"attackers-{i}" for i in range(5)), *map(traffic.namespace, range(traffic.NAMESPACES)))
"""The namespaces of the reviews. Gatekeeper looks them up, and denies an object in an unknown one."""
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}


def _validations(number: int) -> list[dict[str, str]]:
    return [{"expression": text.format(number), "message": "no"} for text in bench_policies.VALIDATIONS]


def claimgate() -> list[Any]:
    return [document.value for document in bench_policies.manifests(COUNT)]


def constraint_templates() -> Iterator[Any]:
    """Return Gatekeeper's templates. Each template defines a kind of constraints."""
    for number in range(COUNT):
        kind = f"Site{number}"
        source = {"failurePolicy": "Fail", "validations": _validations(number)}
        target = {
            "target": "admission.k8s.gatekeeper.sh",
            "code": [{"engine": "K8sNativeValidation", "source": source}],
        }
        yield {
            "apiVersion": "templates.gatekeeper.sh/v1",
            "kind": "ConstraintTemplate",
            "metadata": {"name": kind.lower()},
            "spec": {"crd": {"spec": {"names": {"kind": kind}}}, "targets": [target]},
        }


def constraints() -> Iterator[Any]:
    """Return one denying constraint of each kind, for Pods."""
    for number in range(COUNT):
        match = {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}
        yield {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": f"Site{number}",
            "metadata": {"name": f"site-{number}"},
            "spec": {"enforcementAction": "deny", "match": match},
        }


def validating_policies() -> Iterator[Any]:
    """Return Kyverno's policies, only for Pods and only at admission."""
    for number in range(COUNT):
        yield {
            "apiVersion": "policies.kyverno.io/v1",
            "kind": "ValidatingPolicy",
            "metadata": {"name": f"site-{number}"},
            "spec": {
                "validationActions": ["Deny"],
                "evaluation": {"background": {"enabled": False}, "admission": {"enabled": True}},
                "autogen": {"podControllers": {"controllers": []}},
                "matchConstraints": {"resourceRules": [_RULE]},
                "validations": _validations(number),
            },
        }
