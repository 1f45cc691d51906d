"""What the shipped policies cost: `python -m tests.bench.bench_shipped` prints tables.

The whole set on Pods of 6 KB, and every policy alone on a TrainJob of 60 KB whose runtime, claim template and device class
the cluster holds. Both phases are asked, as an API server does. Beside the microseconds stands the ratio to the standard
library's decoding of the same review, which is measured between them: ratios can be compared between machines.

    python -m tests.bench.bench_shipped --check    exits 1 when a goal is missed
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.bench import bench_server
from webhook import shipped
from webhook.admission import decode as admission
from webhook.admission.review import review
from webhook.attributes import JSON, Attributes, Phase
from webhook.cluster.assumed_namespaces import AssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.policy.load import Options, load
from webhook.policy.policy_set import PolicySet
from webhook.workloads import table

ROUNDS = 15
TRAINJOB_SIZE = 60_000
POD_GOAL_US, POLICY_GOAL_US = 300.0, 1000.0
"""The whole set on a Pod of 6 KB, and the worst policy on a TrainJob of 60 KB."""

CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": {}}


def claim_template(namespace: str, name: str, count: int) -> JSON:
    """A template of claims for so many GPUs."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": count}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def runtime() -> JSON:
    """A torch runtime of three steps whose node takes eight GPUs by a claim."""
    label = "trainer.kubeflow.org/trainjob-ancestor-step"
    steps = (
        ("dataset-initializer", "dataset-initializer"),
        ("model-initializer", "model-initializer"),
        ("node", "trainer"),
    )
    jobs = []
    for name, step in steps:
        env = [{"name": f"RUNTIME_{i}", "value": f"value {i * 7919}"} for i in range(20)]
        spec: dict[str, Any] = {"containers": [{"name": name, "image": f"registry.example/{name}:1", "env": env}]}
        if name == "node":
            spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}], "limits": {"cpu": "32"}}
            spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "eight-gpus"}]
        template = {"metadata": {"labels": {label: step}}, "spec": {"template": {"spec": spec}}}
        jobs.append({"name": name, "template": template})
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch-dra", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": jobs}}},
    }


def trainjob() -> JSON:
    """A TrainJob of 60 KB that breaks no rule, as Kubeflow's SDK writes one: its program is part of the command.

    It has as many variables as a trainer may have, and a patch of the node by two managers.
    """
    env = [{"name": f"VARIABLE_{i}", "value": f"some value of {i * 7919}"} for i in range(128)]
    patches = []
    for manager in ("kueue.x-k8s.io/manager", "example.org/site"):
        pod = {
            "nodeSelector": {f"example.org/{manager[:5]}": "gpu"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        }
        job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
        patches.append({"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}})
    obj: JSON = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "llm", "namespace": "team"},
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch-dra"},
            "trainer": {"numNodes": 4, "numProcPerNode": 8, "env": env},
            "runtimePatches": patches,
        },
    }
    line = "    layers.append(build(size=1024, heads=16, dropout=0.1))\n"
    program = f"def train():\n{line * ((TRAINJOB_SIZE - len(json.dumps(obj))) // (len(json.dumps(line)) - 2))}"
    obj["spec"]["trainer"]["command"] = ["bash", "-c", f"cat > train.py <<'EOF'\n{program}EOF\ntorchrun train.py\n"]
    return obj


def admission_review(obj: JSON, group: str, version: str, resource: str) -> JSON:
    """The review of an object's creation."""
    request = {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": "CREATE",
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"]["namespace"],
        "userInfo": {"username": "alice", "groups": ["developers"]},
        "object": obj,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def median_us(*runs: Callable[[], object]) -> list[float]:
    """Microseconds of each: medians of rounds in which they take turns."""
    found: list[list[float]] = [[] for _ in runs]
    times = [max(1, int(0.01 / _once(run))) for run in runs]
    for _ in range(ROUNDS):
        for number, run in enumerate(runs):
            start = perf_counter()
            for _ in range(times[number]):
                run()
            found[number].append((perf_counter() - start) / times[number] * 1e6)
    return [statistics.median(each) for each in found]


def _once(run: Callable[[], object]) -> float:
    run()  # expressions become functions when they are first used
    start = perf_counter()
    run()
    return perf_counter() - start


def alone(policies: PolicySet) -> Iterator[tuple[str, PolicySet]]:
    """Every policy in a set of its own."""
    for policy in policies.validating:
        yield policy.name, replace(policies, validating=(policy,), mutating=())
    for policy in policies.mutating:
        yield policy.name, replace(policies, validating=(), mutating=(policy,))


def both(sent: Attributes, policies: PolicySet, cluster: AssumedNamespaces) -> Callable[[], object]:
    """Both phases of one request, each with facts of its own."""

    def run() -> None:
        for phase in Phase:
            review(replace(sent), policies, cluster, phase=phase)

    return run


def pod(kind: str) -> bytes:
    """The review of a Pod of 6 KB: plain, with a GPU, with a claim, or with both for the same device, which is warned of."""
    sent = json.loads(bench_server.review("plain" if kind == "plain" else "claims"))
    spec = sent["request"]["object"]["spec"]
    if kind == "gpu":
        del spec["resourceClaims"], spec["containers"][0]["resources"]["claims"]
    if kind == "claim":
        spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    return json.dumps(sent, separators=(",", ":")).encode()


def pods(policies: PolicySet) -> float:
    """Print the whole set on Pods, in each phase; the most that a Pod costs that breaks no rule."""
    print(f"{'Pod of 6 KB, the whole set':34} {'us':>9} {'x decode':>9}")
    worst = 0.0
    for kind in ("plain", "gpu", "claim", "both"):
        body = pod(kind)
        sent = admission.decode(body)
        cluster = AssumedNamespaces(FilesCluster([claim_template(sent.namespace, "one-gpu", 1), CLASS]))
        asked = [lambda phase=phase: review(replace(sent), policies, cluster, phase=phase) for phase in Phase]  # noqa: B023
        decode, *took = median_us(lambda: json.loads(body), *asked)  # noqa: B023
        for phase, us in zip(Phase, took, strict=True):
            print(f"{f'{kind} {phase}':34} {us:>9.1f} {us / decode:>9.2f}")
        worst = worst if kind == "both" else max(worst, *took)
    return worst


def jobs(policies: PolicySet) -> float:
    """Print every policy alone on the TrainJob; the dearest one."""
    body = json.dumps(admission_review(trainjob(), "trainer.kubeflow.org", "v1alpha1", "trainjobs"))
    sent = admission.decode(body.encode())
    cluster = AssumedNamespaces(FilesCluster([runtime(), claim_template("team", "eight-gpus", 8), CLASS]))
    said = review(replace(sent), policies, cluster, phase=Phase.VALIDATE)
    if not said.allowed or said.warnings:
        raise SystemExit(f"the TrainJob breaks a rule: {said.status} {said.warnings}")
    none = replace(policies, validating=(), mutating=())
    named = [(name, one) for name, one in alone(policies) if any(_asked(one, sent))]
    sets = [none, policies, *(one for _, one in named)]
    decode, base, whole, *each = median_us(lambda: json.loads(body), *(both(sent, one, cluster) for one in sets))
    print(f"\n{f'TrainJob of {len(body) // 1000} KB, both phases':34} {'us':>9} {'x decode':>9}")
    rows = sorted(zip(each, (name for name, _ in named), strict=True), reverse=True)
    for us, name in ((whole, "the whole set"), *rows, (base, "no policy"), (decode, "decoding the review")):
        print(f"{name:34} {us:>9.1f} {us / decode:>9.2f}")
    return max(each) - base


def _asked(policies: PolicySet, sent: Attributes) -> Iterator[bool]:
    yield from (bool(policies.validating_for(sent, phase)) for phase in Phase)
    yield bool(policies.mutating_for(sent))


def main() -> int:
    """Print the tables and the goals."""
    flags = argparse.ArgumentParser()
    flags.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    check = flags.parse_args().check
    policies = load([Path(shipped.policies())], Options(table=table.load()))
    pod, policy = pods(policies), jobs(policies)
    print(f"\nthe whole set on a Pod: {pod:.0f} us, goal {POD_GOAL_US:.0f}")
    print(f"the worst policy on a TrainJob: {policy:.0f} us, goal {POLICY_GOAL_US:.0f}")
    return int(check and (pod > POD_GOAL_US or policy > POLICY_GOAL_US))


if __name__ == "__main__":
    sys.exit(main())
