"""What policies cost: `python -m tests.bench.bench_policies` prints a table.

0, 1, 16, 64 and 256 policies of three validations each on a Pod of about 7.7 KB (5 containers with 20 variables each), one
Deny binding each, nothing fails; and 1,000 policies for other kinds beside a request that matches none of them. Times are
the median of rounds, in one process.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from webhook.admission.decode import decode_review
from webhook.admission.review import review
from webhook.attributes import Attributes, Phase
from webhook.cluster.files import FilesCluster
from webhook.policy.load import Options, load_documents
from webhook.policy.policy_set import PolicySet
from webhook.workloads import table
from webhook.yamlfile import Document

COUNTS = (0, 1, 16, 64, 256)
ROUNDS = 15
VALIDATIONS = (
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && 'cpu' in c.resources.limits)",
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "object.metadata.labels.all(k, k != 'forbidden') && object.spec.containers.all(c, !c.image.endsWith(':latest'))",
)


def pod() -> Any:
    """A Pod of about 7.7 KB."""
    env = [{"name": f"VARIABLE_{i}", "value": f"some value of {i * 7919}"} for i in range(20)]
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}
    container = {"image": "registry.example/team/image:1.2.3", "env": env, "resources": resources}
    containers = [{"name": f"container-{i}", **container} for i in range(5)]
    metadata = {"name": "p", "namespace": "team", "labels": {"app": "x", "tier": "y"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def attributes() -> Attributes:
    """The creation of that Pod."""
    kind, resource = {"group": "", "version": "v1", "kind": "Pod"}, {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": "u",
        "kind": kind,
        "resource": resource,
        "operation": "CREATE",
        "name": "p",
        "namespace": "team",
        "userInfo": {"username": "alice", "groups": ["developers"]},
        "object": pod(),
    }
    return decode_review({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def policies(count: int, resource: str = "pods") -> PolicySet:
    """That many policies with a binding each."""
    made: list[Document] = []
    for number in range(count):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": text, "message": "no"} for text in VALIDATIONS],
        }
        made += [
            _document("ValidatingAdmissionPolicy", f"p{number}", spec),
            _document(
                "ValidatingAdmissionPolicyBinding",
                f"b{number}",
                {"policyName": f"p{number}", "validationActions": ["Deny"]},
            ),
        ]
    return load_documents(made, Options(table=table.load()))


def _document(kind: str, name: str, spec: Any) -> Document:
    api_version = "admissionregistration.k8s.io/v1"
    return Document({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})


def measure(run: Callable[[], object], times: int) -> float:
    """Microseconds of one run: the median of rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            run()
        found.append((time.perf_counter() - start) / times * 1e6)
    return statistics.median(found)


def main() -> None:
    """Print the table."""
    sent, cluster = attributes(), FilesCluster()
    print(f"Pod of {len(json.dumps(sent.object))} bytes, 3 validations per policy, median of {ROUNDS} rounds")
    print(f"{'policies':>8} {'us a request':>14} {'us a policy':>12}")
    base = 0.0
    for count in COUNTS:
        loaded = policies(count)
        took = measure(lambda: review(sent, loaded, cluster, phase=Phase.VALIDATE), max(2, 400 // max(count, 1)))  # noqa: B023
        base = base or took
        print(f"{count:>8} {took:>14.1f} {(took - base) / count if count else 0:>12.1f}")
    start = time.perf_counter()
    others = policies(1000, "services")
    print(f"1,000 policies load in {time.perf_counter() - start:.2f} s")
    took = measure(lambda: review(sent, others, cluster, phase=Phase.VALIDATE), 2000)
    print(f"1,000 policies, none matches: {took:.1f} us a request, {took - base:.1f} above none at all")


if __name__ == "__main__":
    main()
