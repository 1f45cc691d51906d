"""A user who fills the live view with their objects, and reviews that look them up.

A test API server in a separate process sends what the user creates: runtimes of TrainJobs of 0.1 MB, and one of 1 MB
that is changed again and again. Each run draws new sizes, names and fields.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from tests.bench.bounds import large_view, rows
from tests.bench.bounds.calls import GET_METRICS, Connection, Prepared, uid
from tests.bench.bounds.connections import Behaviour, Running
from tests.bench.bounds.counting import counted
from tests.bench.bounds.memory import MB, Sampler
from tests.bench.bounds.report import Report
from tests.bench.bounds.report import counted as told
from tests.bench.bounds.reviews import JSON, container, gpus, pod, review
from tests.bench.bounds.server import Address, Server
from tests.bench.bounds.victims import FORK, Victims, questions
from tests.cluster.server import ApiServer, event, resources

NAMESPACE = "attackers"
RUNTIME = "trainer.kubeflow.org/v1alpha1", "TrainingRuntime"
CLAIM = "resource.k8s.io/v1", "ResourceClaim"
SECONDS, FILLED, SIZE, CHANGED_SIZE = 15.0, 300, 100_000, 1_000_000
FILL_PER_S, CHANGES_PER_S = 40, 5
KINDS = {
    "/api/v1": (("namespaces", "Namespace", False), ("configmaps", "ConfigMap", True)),
    "/apis/resource.k8s.io/v1": (
        ("resourceclaims", "ResourceClaim", True),
        ("resourceclaimtemplates", "ResourceClaimTemplate", True),
        ("deviceclasses", "DeviceClass", False),
    ),
    "/apis/claimgate.dev/v1alpha1": (
        ("validatingpolicies", "ValidatingPolicy", False),
        ("mutatingpolicies", "MutatingPolicy", False),
        ("policybindings", "PolicyBinding", False),
    ),
    "/apis/policy/v1": (("poddisruptionbudgets", "PodDisruptionBudget", True),),
    "/apis/sandbox.opensandbox.io/v1alpha1": (("pools", "Pool", True),),
    "/apis/trainer.kubeflow.org/v1alpha1": (
        ("trainingruntimes", "TrainingRuntime", True),
        ("clustertrainingruntimes", "ClusterTrainingRuntime", False),
    ),
}
NAMESPACES = "/api/v1/namespaces"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/trainingruntimes"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"


def runtime(chance: random.Random, name: str, size: int, version: int) -> JSON:
    count = size // 70
    env = [{"name": f"V{chance.randrange(10**9)}", "value": f"{chance.randrange(10**12)}"} for _ in range(count)]
    pods = {"spec": {"containers": [container("node", env=env, resources=gpus(8))]}}
    job = {"name": "node", "template": {"spec": {"template": pods}}}
    metadata = {"name": name, "namespace": NAMESPACE, "resourceVersion": str(version)}
    metadata["labels"] = {"trainer.kubeflow.org/framework": "torch"}
    spec = {"mlPolicy": {"numNodes": 1, "torch": {}}, "template": {"spec": {"replicatedJobs": [job]}}}
    return {"apiVersion": RUNTIME[0], "kind": RUNTIME[1], "metadata": metadata, "spec": spec}


def claim(chance: random.Random, name: str, version: int) -> JSON:
    """Return a claim with many requests. Each request has a unique selector."""
    requests = [
        {
            "name": f"r{i}",
            "exactly": {
                "deviceClassName": "gpu.nvidia.com",
                "selectors": [{"cel": {"expression": f"device.driver == 'd{chance.randrange(10**6)}'"}}] * 8,
            },
        }
        for i in range(32)
    ]
    metadata = {"name": name, "namespace": NAMESPACE, "resourceVersion": str(version)}
    return {
        "apiVersion": CLAIM[0],
        "kind": CLAIM[1],
        "metadata": metadata,
        "spec": {"devices": {"requests": requests}},
    }


def fill_with_runtimes(server: ApiServer, chance: random.Random, stop: threading.Event) -> None:
    """Create and then change runtimes, as often as an API server would accept."""
    for number in range(FILLED * 4):
        if stop.wait(1 / FILL_PER_S):
            return
        made = runtime(chance, f"runtime-{number % FILLED}", int(SIZE * chance.uniform(0.8, 1.2)), 100 + number)
        server.send(RUNTIMES, event("ADDED" if number < FILLED else "MODIFIED", made))


def change_a_large_one(server: ApiServer, chance: random.Random, stop: threading.Event) -> None:
    """Change one runtime of 1 MB again and again."""
    number = 10_000
    while not stop.wait(1 / CHANGES_PER_S):
        number += 1
        server.send(RUNTIMES, event("MODIFIED", runtime(chance, "runtime-0", CHANGED_SIZE, number)))


def fill_with_claims(server: ApiServer, chance: random.Random, stop: threading.Event) -> None:
    for number in range(FILLED * 4):
        if stop.wait(1 / FILL_PER_S):
            return
        server.send(CLAIMS, event("ADDED", claim(chance, f"claim-{number}", 20_000 + number)))


Fill = Callable[[ApiServer, random.Random, threading.Event], None]
FILLS: dict[str, Fill] = {
    "live: a user makes 300 runtimes of 0.1 MB": fill_with_runtimes,
    "live: a runtime of 1 MB changes 5 times a second": change_a_large_one,
    "live: a user makes 1,000 claims of 32 requests": fill_with_claims,
    **{name: view.change for name, view in large_view.VIEWS.items()},
}


def _serve(pipe: Pipe, folder: Path, row: str) -> None:
    """Run an API server with the objects of a row. Start and stop filling the view as messages of the pipe say."""
    server, stop, filling = ApiServer(), threading.Event(), None
    for root, kinds in KINDS.items():
        server.answers[root] = resources(*kinds)
        for plural, _, _ in kinds:
            server.objects[f"{root}/{plural}"] = []
    names = (NAMESPACE, "honest", *(f"team-{number}" for number in range(20)))
    server.objects[NAMESPACES] = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in names]
    if row in large_view.VIEWS:
        large_view.VIEWS[row].prepare(server)
    pipe.send(server.kubeconfig(folder))
    while (asked := pipe.recv()) != "end":
        stop.set()
        if filling is not None:
            filling.join()
        stop, filling = threading.Event(), None
        if asked:
            filling = threading.Thread(target=FILLS[asked], args=(server, random.Random(time.time_ns()), stop))
            filling.start()


@dataclass
class Cluster:
    pipe: Pipe
    kubeconfig: Path

    def fill(self, name: str) -> None:
        """Start to fill the view in this way. "" stops the filling."""
        self.pipe.send(name)


@contextmanager
def cluster(folder: Path, row: str) -> Iterator[Cluster]:
    folder.mkdir(parents=True, exist_ok=True)
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=_serve, args=(theirs, folder, row), daemon=True)
    process.start()
    try:
        yield Cluster(ours, ours.recv())
    finally:
        ours.send("end")
        process.join(5)
        process.kill()


def flags_of_row(name: str) -> tuple[str, ...]:
    return large_view.VIEWS[name].flags if name in large_view.VIEWS else ()


def looks_up(chance: random.Random) -> bytes:
    """Return the review of a TrainJob that names one of the runtimes, or of a Pod that names one of the claims."""
    number = chance.randrange(FILLED)
    if chance.random() < 0.5:
        reference = {
            "name": f"runtime-{number % (1 + number % 9)}",
            "kind": RUNTIME[1],
            "apiGroup": "trainer.kubeflow.org",
        }
        spec = {"runtimeRef": reference, "trainer": {"numNodes": 2}}
        metadata = {"name": f"t-{number}", "namespace": NAMESPACE}
        return review({"apiVersion": RUNTIME[0], "kind": "TrainJob", "metadata": metadata, "spec": spec})
    names = [f"claim-{chance.randrange(FILLED)}" for _ in range(16)]
    claims = [{"name": f"c{i}", "resourceClaimName": name} for i, name in enumerate(names)]
    used = [{"name": f"c{i}"} for i in range(len(names))]
    return review(pod({"resourceClaims": claims, "containers": [container("main", resources={"claims": used})]}))


def ask(address: Address, index: int, end: float) -> Counter[str]:
    """Send reviews that look the objects up, without end, over three connections."""
    counts: Counter[str] = Counter()

    def one(number: int) -> None:
        chance, to = random.Random(f"{time.time_ns()} {index} {number}"), Connection(address.port, address.trust(), 5)
        while time.monotonic() < end:
            with counted(counts, "sent"):
                heard = to.ask(Prepared("/validate", looks_up(chance), "2s").with_uid(uid(number))).review(uid(number))
                counts["not held"] += "not in the view" in json.dumps(heard)
        to.close()

    working = [threading.Thread(target=one, args=(number,)) for number in range(3)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    return counts


def begin(only: str, report: Report) -> list[str]:
    report.section("live", "as above, on a live view that a user fills; the view is bounded", rows.HEADER)
    return [name for name in FILLS if re.search(only, name)]


def measure(server: Server, held: Cluster, name: str, sampler: Sampler, report: Report) -> None:
    is_large = name in large_view.VIEWS
    missed = large_view.wait_until_ready(server) if is_large else []
    asked = large_view.asked_by_victims() if is_large else questions()
    rows.warm(server, asked)
    sampler.doing = name
    server.mark(name)
    victims = Victims(server.address, asked)
    held.fill(name)
    counts = Counter[str]() if is_large else Running(server.address, Behaviour(name, ask, SECONDS)).counts()
    time.sleep(SECONDS if is_large else 0)
    seen = victims.seen()
    held.fill("")
    view = _view_bytes(server)
    missed += rows.victims_missed(seen)
    missed += [f"{counts['cut or refused']} reviews without an answer"] if counts["cut or refused"] else []
    missed += rows.settle(server, asked, sampler)
    memory = sampler.peak()[1].pss / MB if is_large else sampler.peak(name)[1].pss / MB
    if is_large and memory > large_view.MOST_MB:
        missed.append(f"{memory:.0f} MB")
    text = f"{told(counts, 4)}; the view counts {view / MB:.0f} MB"
    report.row(name, f"{'':>6} {rows.victims_text(seen)}  {memory:>4.0f} | {text}", missed)


def _view_bytes(server: Server) -> float:
    to = Connection(server.address.health_port, server.address.health_trust(), 10)
    try:
        found = re.search(r"^claimgate_cluster_view_bytes (\S+)", to.ask(GET_METRICS).body.decode(), re.MULTILINE)
    finally:
        to.close()
    return float(found[1]) if found else 0.0
