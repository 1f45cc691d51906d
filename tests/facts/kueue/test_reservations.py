"""The usage of Workloads, and the Workloads that wait before an object, by conditions, ended pods and owners."""

from __future__ import annotations

from tests.facts.subjects import subject
from tests.rows import all_rows
from webhook.apimachinery.attributes import JSON
from webhook.cluster.files import FilesCluster
from webhook.facts.kueue.fact import predict_admission
from webhook.facts.kueue.quota import count_other_waiting_workloads, is_admitted, read_reservations
from webhook.facts.view import ClusterView

QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "main", "namespace": "team"},
    "spec": {"clusterQueue": "gpus"},
}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "team"}, "spec": {}}
ASSIGNMENT = {"name": "main", "count": 4, "flavors": {"cpu": "old", "gpu": "a100"}, "resourceUsage": {"cpu": "2"}}
ASSIGNED: JSON = {
    "clusterQueue": "gpus",
    "podSetAssignments": [{**ASSIGNMENT, "resourceUsage": {"cpu": "2", "gpu": 8}}],
}


def work(name: str, *conditions: str, owner: str = "", spec: JSON = None, **status: JSON) -> JSON:
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner}] if owner else []
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "team", "ownerReferences": owners},
        "spec": {"queueName": "main", "podSets": [{"name": "main", "count": 4}], **(spec or {})},
        "status": {"conditions": [{"type": each, "status": "True"} for each in conditions], **status},
    }


HOLDS = work("a", "QuotaReserved", admission=ASSIGNED)
USED = {("old", "cpu"): 2000, ("a100", "gpu"): 8}
HALF = {("old", "cpu"): 1000, ("a100", "gpu"): 4}
ROWS = {
    "a Workload with quota, all of its pods": ([HOLDS], {"gpus": USED}),
    "a Workload with quota, without pods that have ended": (
        [work("a", "QuotaReserved", admission=ASSIGNED, reclaimablePods=[{"name": "main", "count": 2}])],
        {"gpus": HALF},
    ),
    "a job that was admitted with fewer pods than it has": (
        [work("a", "QuotaReserved", spec={"podSets": [{"name": "main", "count": 9}]}, admission=ASSIGNED)],
        {"gpus": USED},
    ),
    "nothing for a finished Workload": ([work("a", "QuotaReserved", "Finished", admission=ASSIGNED)], {}),
    "nothing for a waiting Workload": ([work("a")], {}),
    "several Workloads": (
        [HOLDS, work("b", "QuotaReserved", admission=ASSIGNED)],
        {"gpus": {each: 2 * USED[each] for each in USED}},
    ),
}


@all_rows("workloads, used", ROWS.values(), ids=list(ROWS))
def test_workloads_use_this_quota(workloads: list[JSON], used: JSON) -> None:
    known = read_reservations(ClusterView(FilesCluster(workloads), "team"))
    assert known is not None
    assert known.usage == used


def test_without_workloads_the_quota_in_use_is_unknown() -> None:
    view = ClusterView(FilesCluster([QUEUE]), "team")
    assert read_reservations(view) is None
    assert count_other_waiting_workloads(subject(JOB, QUEUE), "gpus", view) == 0


def test_workloads_wait_before_others_and_not_before_their_own_object() -> None:
    listed = [work("a"), work("b", owner="train"), work("c", spec={"active": False}), HOLDS, work("d", "Finished")]
    view = ClusterView(FilesCluster([QUEUE, *listed]), "team")
    assert count_other_waiting_workloads(subject(JOB), "gpus", view) == 1
    other = {**JOB, "metadata": {"name": "other", "namespace": "team"}}
    assert count_other_waiting_workloads(subject(other), "gpus", view) == 2
    assert count_other_waiting_workloads(subject(other), "cpus", view) == 0


def test_the_object_of_a_workload_with_quota_is_admitted() -> None:
    view = ClusterView(FilesCluster([work("a", "QuotaReserved", owner="train", admission=ASSIGNED)]), "team")
    assert is_admitted(subject(JOB), view)
    assert not is_admitted(subject({**JOB, "metadata": {"name": "other", "namespace": "team"}}), view)


TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
FLAVOR = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "a100"}, "spec": {}}
CLUSTER_QUEUE: JSON = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "gpus"},
    "spec": {
        "namespaceSelector": {},
        "resourceGroups": [
            {
                "coveredResources": ["gpu"],
                "flavors": [{"name": "a100", "resources": [{"name": "gpu", "nominalQuota": 8}]}],
            }
        ],
    },
    "status": {"flavorsReservation": [{"name": "a100", "resources": [{"name": "gpu", "total": 5}]}]},
}
ASKS: JSON = {
    **JOB,
    "metadata": {"name": "train", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "main"}},
    "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "a", "resources": {"limits": {"gpu": 4}}}]}}},
}
VERDICTS = {
    "the status of the queue, if there are no Workloads": (
        [],
        None,
        "not-now",
        "according to the status of the ClusterQueues",
    ),
    "the status, if it counts more Workloads": (
        [HOLDS],
        2,
        "not-now",
        "according to the status of the ClusterQueues",
    ),
    "Workloads, if the status counts as many": ([HOLDS], 1, "not-now", "while 1 Workload has reserved quota"),
    "Workloads, if the status has no count": ([HOLDS], None, "not-now", "while 1 Workload has reserved quota"),
    "Workloads that have ended use nothing, even if the status says so": (
        [work("a", "QuotaReserved", "Finished")],
        0,
        "possible",
        "",
    ),
    "a job with quota does not wait": (
        [HOLDS, work("b", "QuotaReserved", owner="train", admission=ASSIGNED)],
        2,
        "possible",
        "",
    ),
}


@all_rows("workloads, counted, verdict, told", VERDICTS.values(), ids=list(VERDICTS))
def test_free_quota_is_read_from_these_sources(
    workloads: list[JSON], counted: int | None, verdict: str, told: str
) -> None:
    status = CLUSTER_QUEUE["status"] | ({} if counted is None else {"reservingWorkloads": counted})
    found = predict_admission(subject(ASKS, TEAM, FLAVOR, {**CLUSTER_QUEUE, "status": status}, QUEUE, *workloads))
    assert found.verdict == verdict
    assert [told in each.message for each in found.problems] == [True] * bool(told)


PENDING = {
    "no status": ([], None, 0),
    "the count of the status": ([], 3, 3),
    "without the Workload of the object itself": ([work("b", owner="train")], 3, 2),
}


@all_rows("workloads, pending, before", PENDING.values(), ids=list(PENDING))
def test_a_strict_queue_counts_waiting_jobs(workloads: list[JSON], pending: int | None, before: int) -> None:
    """If Workloads with quota are missing, the status also counts the waiting Workloads."""
    status = {"reservingWorkloads": 1} | ({} if pending is None else {"pendingWorkloads": pending})
    spec = CLUSTER_QUEUE["spec"] | {"queueingStrategy": "StrictFIFO"}
    found = predict_admission(
        subject(ASKS, TEAM, FLAVOR, {**CLUSTER_QUEUE, "spec": spec, "status": status}, QUEUE, *workloads)
    )
    wanted = f"behind {before} workloads" if before else ""
    assert [wanted in each.message for each in found.problems] == [True] * bool(before)
