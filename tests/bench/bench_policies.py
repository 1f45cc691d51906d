"""Measures the cost of policies: `python -m tests.bench.bench_policies`.

Evaluates 0, 1, 16, 64 and 256 policies on different Pods of 6 KB. Each policy has three validations, which hold, and a
Deny binding. Another row has 1,000 policies for other kinds, which match no request. Times are the median of rounds, in
one process.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

from tests.bench import traffic
from webhook.admission.decode import decode_review_bytes
from webhook.admission.review import answer_request
from webhook.apimachinery.attributes import Phase
from webhook.cluster.files import FilesCluster
from webhook.policy.load import Options, load_documents
from webhook.policy.policy_set import PolicySet
from webhook.workloads import table
from webhook.yamltext.yamlfile import Document

COUNTS = (0, 1, 16, 64, 256)
ROUNDS = 15
PODS = 2000
VALIDATIONS = (
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && 'cpu' in c.resources.limits)",
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "object.metadata.labels.all(k, k != 'forbidden-{0}') && object.spec.containers.all(c, !c.image.endsWith(':{0}'))",
)
"""Rules of a site. The number of the policy makes names unique."""


def manifests(count: int, resource: str = "pods") -> list[Document]:
    made: list[Document] = []
    for number in range(count):
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource]}
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": text.format(number), "message": "no"} for text in VALIDATIONS],
        }
        binding = {"policyName": f"p{number}", "validationActions": ["Deny"]}
        made += [
            _document("ValidatingAdmissionPolicy", f"p{number}", spec),
            _document("ValidatingAdmissionPolicyBinding", f"b{number}", binding),
        ]
    return made


def policies(count: int, resource: str = "pods") -> PolicySet:
    return load_documents(manifests(count, resource), Options(table=table.load_table()))


def _document(kind: str, name: str, spec: Any) -> Document:
    api_version = "admissionregistration.k8s.io/v1"
    return Document({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})


def measure(run: Callable[[], object], times: int) -> float:
    """Return the microseconds of one run: the median of several rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            run()
        found.append((time.perf_counter() - start) / times * 1e6)
    return statistics.median(found)


def main() -> None:
    sent = itertools.cycle(decode_review_bytes(body) for body in traffic.reviews("plain Pod", range(PODS)))
    cluster = FilesCluster(traffic.context())
    print(f"Pods of {traffic.POD_SIZE} bytes, 3 validations per policy, median of {ROUNDS} rounds")
    print(f"{'policies':>8} {'us a request':>14} {'us a policy':>12}")
    base = 0.0
    for count in COUNTS:
        loaded = policies(count)
        times = max(2, 400 // max(count, 1))
        took = measure(lambda: answer_request(next(sent), loaded, cluster, phase=Phase.VALIDATE), times)  # noqa: B023
        base = base or took
        print(f"{count:>8} {took:>14.1f} {(took - base) / count if count else 0:>12.1f}")
    start = time.perf_counter()
    others = policies(1000, "services")
    print(f"1,000 policies load in {time.perf_counter() - start:.2f} s")
    took = measure(lambda: answer_request(next(sent), others, cluster, phase=Phase.VALIDATE), 2000)
    print(f"1,000 policies, none matches: {took:.1f} us a request, {took - base:.1f} above none at all")


if __name__ == "__main__":
    main()
