"""Measures the cost of Kueue's verdict on a TrainJob in a view of many queues.

The TrainJob has 60 KB, and is merged with its runtime before the clock starts. The tree of queues has 10 or 1,000
ClusterQueues. The first verdict reads the queues, and later verdicts reuse them. The ratio of the two trees shows
whether queues of others make a verdict slower.

    python -m tests.bench.bench_kueue --check    exits 1 when a verdict takes a millisecond or more
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.kueue.fact import predict_admission
from webhook.facts.pods.pod_sets import pod_sets
from webhook.facts.subject import Subject
from webhook.facts.view import ClusterView
from webhook.schema import decode_object
from webhook.workloads import table

SIZES = (10, 1000)
GOAL_S = 0.001
_TIMES = 200
_TABLE = table.load_table()
_KUEUE = "kueue.x-k8s.io/v1beta2"


def world(count: int) -> list[JSON]:
    """Return a runtime and ClusterQueues with a LocalQueue each. The ClusterQueues are in cohorts of ten below one
    root.
    """
    resources = [
        {"name": name, "nominalQuota": 64, "borrowingLimit": 64} for name in ("cpu", "memory", "nvidia.com/gpu")
    ]
    groups = [
        {
            "coveredResources": [each["name"] for each in resources],
            "flavors": [{"name": f"f{at}", "resources": resources} for at in range(4)],
        }
    ]
    made: list[JSON] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
        *(
            {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": f"f{at}"}, "spec": {}}
            for at in range(4)
        ),
    ]
    for at in range(count):
        spec = {"cohortName": f"c{at // 10}", "namespaceSelector": {}, "resourceGroups": groups}
        queue, local = {"name": f"q{at}"}, {"name": f"l{at}", "namespace": "team"}
        made.append({"apiVersion": _KUEUE, "kind": "ClusterQueue", "metadata": queue, "spec": spec})
        made.append({"apiVersion": _KUEUE, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": f"q{at}"}})
        if at % 10 == 0:
            cohort = {"name": f"c{at // 10}"}
            made.append({"apiVersion": _KUEUE, "kind": "Cohort", "metadata": cohort, "spec": {"parentName": "root"}})
    container = {"name": "node", "image": "train", "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": 8}}}
    pods = {"spec": {"template": {"spec": {"containers": [container]}}}}
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    job = {"name": "node", "template": {"metadata": step, **pods}}
    spec = {"mlPolicy": {"numNodes": 4, "torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}}
    made.append(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "torch"},
            "spec": spec,
        }
    )
    return made


def train_job() -> JSON:
    """Return a TrainJob of 60 KB, mostly environment variables."""
    env = [{"name": f"VARIABLE_{at}", "value": "x" * 40} for at in range(700)]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "train", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "l7"}},
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 8, "env": env}},
    }


def subject(cluster: FilesCluster) -> Subject:
    attributes = attributes_of_object(train_job(), _TABLE.row)
    view = ClusterView(cluster, attributes.namespace, Deadline())
    made = Subject(
        object=decode_object(attributes.object, attributes.kind).value,
        old_object=None,
        attributes=attributes,
        cluster=view,
        table=_TABLE,
        assumptions=ClusterAssumptions(),
    )
    made.once(pod_sets)
    return made


def verdict_s(made: Subject) -> float:
    """Return the processor time of the verdict in seconds."""
    began = time.process_time()
    verdict = made.once(predict_admission).verdict
    elapsed_s = time.process_time() - began
    assert verdict == "possible"
    return elapsed_s


def measured(count: int) -> tuple[float, float]:
    """Return the seconds of the first verdict in a view, and the median of later verdicts."""
    cluster = FilesCluster(world(count), is_whole=True)
    first, *others = (verdict_s(subject(cluster)) for _ in range(_TIMES))
    return first, median(others)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    chosen = parser.parse_args()
    print(f"{'ClusterQueues':>13} {'first verdict':>15} {'each other':>12}")
    found = {count: measured(count) for count in SIZES}
    for count, (first, other) in found.items():
        print(f"{count:>13} {first * 1e3:>12.2f} ms {other * 1e3:>9.3f} ms")
    small, large = (found[count][1] for count in SIZES)
    print(f"a job among {SIZES[1]} queues takes {large / small:.2f} times as long as one among {SIZES[0]}")
    return 1 if chosen.check and large >= GOAL_S else 0


if __name__ == "__main__":
    sys.exit(main())
