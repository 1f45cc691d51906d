"""`claimgate why` and `simulate --live` about jobs that the real managers of Kueue, JobSet and Kubeflow Trainer hold,
stop and start. No scheduler and no kubelet run: the tests fail pods, and answer for the controller of an admission
check.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import PATIENCE_S, ApiServer
from tests.e2e.conftest import environment_as_installed, first_line
from tests.e2e.managers import JSON, define_kinds, running_managers, without_managers
from tests.e2e.recorded_clusters import Loader, filling_pods

pytestmark = pytest.mark.e2e

GPU = "nvidia.com/gpu"
LONG_AGO = "2026-01-01T00:00:00Z"
GROUPS = {
    "ClusterQueue": "kueue.x-k8s.io/v1beta2",
    "LocalQueue": "kueue.x-k8s.io/v1beta2",
    "ResourceFlavor": "kueue.x-k8s.io/v1beta2",
    "AdmissionCheck": "kueue.x-k8s.io/v1beta2",
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "ClusterTrainingRuntime": "trainer.kubeflow.org/v1alpha1",
}


def obj(kind: str, name: str, spec: JSON, queue: str = "") -> JSON:
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    metadata: JSON = {"name": name, "namespace": "team", "labels": labels}
    if kind not in ("Job", "JobSet", "TrainJob", "LocalQueue"):
        del metadata["namespace"]
    return {"apiVersion": GROUPS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def pods(gpus: int, device: str = GPU, **more: Any) -> JSON:
    resources = {"limits": {device: str(gpus)}, "requests": {device: str(gpus)}}
    container = {"name": "main", "image": "train:1", "resources": resources}
    return {"spec": {"restartPolicy": "Never", "containers": [container], **more}}


def job(name: str, queue: str, gpus: int, *, suspend: bool = False, **more: Any) -> JSON:
    return obj("Job", name, {"backoffLimit": 0, "suspend": suspend, "template": pods(gpus, **more)}, queue)


def job_set(name: str, queue: str, *gpus: int) -> JSON:
    replicated = [
        {"name": f"worker{number}", "replicas": 1, "template": {"spec": {"backoffLimit": 0, "template": pods(count)}}}
        for number, count in enumerate(gpus)
    ]
    return obj("JobSet", name, {"replicatedJobs": replicated, "failurePolicy": {"maxRestarts": 0}}, queue)


def train_job(name: str, queue: str, gpus: int, runtime: str = "torch") -> JSON:
    resources = {"limits": {GPU: str(gpus)}, "requests": {GPU: str(gpus)}}
    spec = {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 1, "resourcesPerNode": resources}}
    return obj("TrainJob", name, spec, queue)


def queues(name: str, gpus: int, flavor: str = "h100", limit: int | None = None, **more: Any) -> Iterator[JSON]:
    """Yield a ClusterQueue, and the LocalQueue with its name."""
    quota = {"name": GPU, "nominalQuota": gpus, "borrowingLimit": limit}
    group = {"coveredResources": [GPU], "flavors": [{"name": flavor, "resources": [quota]}]}
    yield obj("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group], **more})
    yield obj("LocalQueue", name, {"clusterQueue": name})


def runtime(name: str) -> JSON:
    template = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {
            "backoffLimit": 0,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "node", "image": "train:1"}]}},
        },
    }
    job_set = {"spec": {"replicatedJobs": [{"name": "node", "template": template}]}}
    return obj("ClusterTrainingRuntime", name, {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": job_set})


def priority(name: str, value: int) -> JSON:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


QUEUES = [
    obj("ResourceFlavor", "h100", {}),
    obj("ResourceFlavor", "a100", {"nodeLabels": {"gpu": "a100"}}),
    obj("ResourceFlavor", "spot", {"nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}]}),
    obj("AdmissionCheck", "inspect", {"controllerName": "example.com/inspect"}),
    obj("AdmissionCheck", "nobody", {"controllerName": "example.com/nobody"}),
    *(priority("high", 1000), priority("low", 1), runtime("torch")),
    *queues("main", 8),
    *queues("free", 8),
    *queues("broken", 8, "h200"),
    *queues("stopped", 8, stopPolicy="HoldAndDrain"),
    *queues("narrow", 4, limit=2, cohortName="all"),
    *queues("wide", 8, cohortName="all"),
    *queues("full", 4, preemption={"withinClusterQueue": "LowerPriority"}),
    *queues("tainted", 8, "spot"),
    *queues("labelled", 8, "a100"),
    *queues("strict", 4, queueingStrategy="StrictFIFO"),
    *queues("inspected", 8, admissionChecksStrategy={"admissionChecks": [{"name": "inspect"}]}),
    *queues("unchecked", 8, admissionChecksStrategy={"admissionChecks": [{"name": "nobody"}]}),
    *queues("elsewhere", 8, namespaceSelector={"matchLabels": {"team": "other"}}),
    obj("LocalQueue", "gone", {"clusterQueue": "gone"}),
    obj("LocalQueue", "held", {"clusterQueue": "main", "stopPolicy": "Hold"}),
]
NO_SCHEDULER = "waits: scheduler default-scheduler has not said anything about the pod"
TAKEN = (
    "waits: Kueue has no free quota for 4 of nvidia.com/gpu in flavor h100: 4 more needed, 8 in use by team/job-holder"
)
BROKEN = (
    "does not start: ClusterQueue broken admits nothing: a ResourceFlavor that it names does not exist (Can't admit "
    "new workloads: references missing ResourceFlavor(s): h200.)"
)
TOO_MUCH = "does not start: Kueue can never admit it, because it asks for too much"
NO_FLAVOR = "does not start: Kueue finds no flavor for it"
EARLY = (
    train_job("no-runtime", "", 1, runtime="nightly"),
    "does not start: ClusterTrainingRuntime nightly does not exist",
)
"""A TrainJob from before the webhook of Trainer, which refuses a TrainJob without a runtime"""
NO_COMPLETIONS = obj(
    "JobSet",
    "no-completions",
    {"replicatedJobs": [{"name": "worker", "template": {"spec": {"parallelism": 2, "template": pods(1)}}}]},
)
"""JobSet stores it, and then cannot create its Job."""
STORIES: list[list[tuple[JSON, str]]] = [
    [
        (job("holder", "main", 8), NO_SCHEDULER),
        (job("borrower", "narrow", 5), NO_SCHEDULER),
        (
            job("lowly", "full", 4, priorityClassName="low"),
            (
                "waits: Kueue preempted it for another job, and it waits again: Kueue has no free quota for 4 of "
                "nvidia.com/gpu in flavor h100: 4 more needed, 4 in use by team/job-lordly (4)"
            ),
        ),
        (job("first", "strict", 3), NO_SCHEDULER),
    ],
    [
        (job("lordly", "full", 4, priorityClassName="high"), NO_SCHEDULER),
        (job("greedy", "main", 4), f"{TAKEN} (8)"),
        (job_set("set", "main", 4), f"{TAKEN} (8)"),
        (train_job("train", "main", 4), f"{TAKEN} (8)"),
        (
            job("limit", "narrow", 4),
            (
                "waits: Kueue has no free quota for 4 of nvidia.com/gpu in flavor h100: 3 more needed, 5 in use by "
                "team/job-borrower (5)"
            ),
        ),
        (job("above-limit", "narrow", 7), f"{TOO_MUCH}: 7 of nvidia.com/gpu, but flavor h100 has at most 6"),
        (train_job("big-train", "main", 16), f"{TOO_MUCH}: 16 of nvidia.com/gpu, but flavor h100 has at most 8"),
        (
            job_set("big-set", "free", 1, 8),
            f"{TOO_MUCH}: 1 and 8 of nvidia.com/gpu in its pod sets, but flavor h100 has at most 8",
        ),
        (job("no-flavor", "broken", 1), BROKEN),
        (job_set("set-without-flavor", "broken", 1), BROKEN),
        (train_job("train-without-flavor", "broken", 1), BROKEN),
        (
            job("no-check", "unchecked", 1),
            (
                "does not start: ClusterQueue unchecked admits nothing: an AdmissionCheck that it names is inactive "
                "(Can't admit new workloads: references inactive AdmissionCheck(s): nobody.)"
            ),
        ),
        (
            job("stopped", "stopped", 1),
            (
                "does not start: ClusterQueue stopped admits nothing: it was stopped with spec.stopPolicy "
                "(Can't admit new workloads: is stopped.)"
            ),
        ),
        (job("held", "held", 1), "does not start: LocalQueue held admits nothing: it was stopped with stopPolicy Hold"),
        (job("misspelt", "mian", 1), "does not start: LocalQueue mian does not exist"),
        (train_job("train-misspelt", "mian", 1), "does not start: LocalQueue mian does not exist"),
        (job("queue-gone", "gone", 1), "does not start: ClusterQueue gone does not exist"),
        (job("stranger", "elsewhere", 1), "does not start: ClusterQueue elsewhere admits no jobs of namespace team"),
        (
            job("intolerant", "tainted", 1),
            f"{NO_FLAVOR}: the job does not tolerate taint spot=true:NoSchedule of flavor spot",
        ),
        (
            job("selective", "labelled", 1, nodeSelector={"gpu": "h100"}),
            f"{NO_FLAVOR}: the node selector or node affinity of the job excludes flavor a100",
        ),
        (job("amd", "free", 1, device="amd.com/gpu"), f"{NO_FLAVOR}: the ClusterQueue has no quota for amd.com/gpu"),
        (
            job("second", "strict", 2),
            (
                "waits: Kueue has no free quota for 2 of nvidia.com/gpu in flavor h100: 1 more needed, 3 in use by "
                "team/job-first (3)"
            ),
        ),
        (
            job("checked", "inspected", 1),
            "waits: Kueue has quota for it, but admission check inspect has not accepted it yet",
        ),
        (job("rejected", "inspected", 1), "failed: Kueue deactivated it because admission check inspect rejected it"),
        (job("deactivated", "main", 4), "does not start: spec.active of its Workload was set to false"),
        (job("suspended", "", 1, suspend=True), "does not start: it is suspended by spec.suspend"),
        (job_set("free-set", "", 1), NO_SCHEDULER),
        (NO_COMPLETIONS, "does not start: the API server refuses the objects that it creates"),
        (
            job_set("dead-set", "", 1),
            (
                "failed: the JobSet failed, because one of its jobs failed, and maxRestarts allows no restart; "
                "container main failed: exit code 1"
            ),
        ),
        (train_job("dead-train", "", 1), "failed: the TrainJob failed; container node failed: exit code 1"),
    ],
    [
        (
            job("third", "strict", 1),
            "waits: an earlier job goes first, because ClusterQueue strict admits jobs in strict order",
        ),
    ],
]
"""Jobs with their first lines. Each list is created when Kueue has settled the jobs of the list before."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    if reason := apiserver.without_controllers() or without_managers():
        pytest.skip(reason)
    with apiserver.running(tmp_path_factory.mktemp("c")) as server:
        define_kinds(server)
        server.kubectl("create", "namespace", "team")
        server.apply(EARLY[0])
        with running_managers(server):
            server.apply(*QUEUES)
            active = {
                "type": "Active",
                "status": "True",
                "reason": "Active",
                "message": "",
                "lastTransitionTime": LONG_AGO,
            }
            patch(server, "admissioncheck/inspect", {"status": {"conditions": [active]}})
            wait_for(lambda: "True" in server.kubectl("get", "clusterqueue", "inspected", "-o", "yaml").stdout)
            for stories in STORIES:
                server.apply(*(each for each, _ in stories))
                time.sleep(5)
            fail_pods(server, "dead-set-worker0-0")
            fail_pods(server, "dead-train-node-0")
            rejected = {"name": "inspect", "state": "Rejected", "message": "not signed", "lastTransitionTime": LONG_AGO}
            patch(server, workload_of(server, "rejected"), {"status": {"admissionChecks": [rejected]}})
            patch(server, workload_of(server, "deactivated"), {"spec": {"active": False}})
            yield server


@pytest.fixture(scope="module")
def environment(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    environment = environment_as_installed(tmp_path_factory.mktemp("bytecode"))
    ask(server, EARLY[0], environment)  # this call compiles the modules, which an installation does once
    return environment


def test_the_first_line_about_each_job_is_true(server: ApiServer, environment: Mapping[str, str]) -> None:
    """`pytest -s` prints the times."""
    wrong: dict[str, str] = {}
    for each, expected in all_stories():
        name, end = f"{each['kind']} team/{each['metadata']['name']}", time.monotonic() + 30
        while (said := ask(server, each, environment)) != f"{name} {expected}" and time.monotonic() < end:
            time.sleep(1)  # a controller may not have written yet
        if said != f"{name} {expected}":
            wrong[name] = said
    assert not wrong


def test_simulate_finds_what_keeps_jobs_out_of_a_queue(server: ApiServer, tmp_path: Path) -> None:
    expected, jobs = set(), []
    for each, said in (story for stories in STORIES for story in stories):
        name = f"again-{each['metadata']['name']}"
        jobs.append({**each, "metadata": {**each["metadata"], "name": name}})
        if said.startswith("does not start") and (each is NO_COMPLETIONS or re.search("[KQ]ueue", said)):
            expected.add(f"{each['kind']} team/{name}")
    file = tmp_path / "jobs.yaml"
    file.write_text(yaml.safe_dump_all(jobs))
    command = [sys.executable, "-m", "webhook", "simulate", str(file), "--kubeconfig", str(server.kubeconfig)]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False)
    never = {told["object"] for told in json.loads(done.stdout) if told["answer"] == "never"}
    assert never == expected, done.stderr


def test_other_pods_of_the_namespace_do_not_change_the_answers(
    server: ApiServer, environment: Mapping[str, str]
) -> None:
    with Loader(server) as loader:
        loader.load_pods(filling_pods("team", 5_000))
    expected = {f"{each['kind']} team/{each['metadata']['name']} {said}": each for each, said in all_stories()}
    assert {ask(server, each, environment) for each in expected.values()} == set(expected)


def all_stories() -> Iterator[tuple[JSON, str]]:
    yield EARLY
    for stories in STORIES:
        yield from stories


def ask(server: ApiServer, about: JSON, environment: Any) -> str:
    """Return the first line, without the endings of the names that Kueue makes."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    name = f"{about['kind'].lower()}/{about['metadata']['name']}"
    said, code = first_line(environment, "why", name, "--kubeconfig", str(server.kubeconfig), "-n", "team")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{time.perf_counter() - started:.2f} s ({processor_s:.2f} of processor)  {code}  {said}")
    return re.sub(r"(team/job-\w+)-[0-9a-f]{5}\b", r"\1", said)


def patch(server: ApiServer, name: str, change: JSON) -> None:
    status = ["--subresource=status"] if "status" in change else []
    server.kubectl("patch", name, "-n", "team", *status, "--type=merge", "-p", json.dumps(change))


def fail_pods(server: ApiServer, job_name: str) -> None:
    """Fail the pods of a Job, as the kubelet does."""
    selector = ("-l", f"batch.kubernetes.io/job-name={job_name}")
    for pod in wait_for(lambda: listed(server, "pods", *selector)):
        ended = {"exitCode": 1, "reason": "Error", "startedAt": LONG_AGO, "finishedAt": LONG_AGO}
        container: JSON = {"name": pod["spec"]["containers"][0]["name"], "image": "", "imageID": "", "restartCount": 0}
        container |= {"ready": False, "state": {"terminated": ended}}
        patch(
            server, f"pod/{pod['metadata']['name']}", {"status": {"phase": "Failed", "containerStatuses": [container]}}
        )


def workload_of(server: ApiServer, owner: str) -> str:
    """Return the name of the Workload of a job, for kubectl."""
    owned = wait_for(
        lambda: [
            each["metadata"]["name"]
            for each in listed(server, "workloads")
            if each["metadata"]["ownerReferences"][0]["name"] == owner
        ]
    )
    return f"workload/{owned[0]}"


def listed(server: ApiServer, kind: str, *flags: str) -> list[JSON]:
    items: list[JSON] = json.loads(server.kubectl("get", kind, "-n", "team", *flags, "-o", "json").stdout)["items"]
    return items


def wait_for(ask: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (answer := ask()):
        assert time.monotonic() < end, "the managers did not make what the test waits for: see their logs in its folder"
        time.sleep(0.3)
    return answer
