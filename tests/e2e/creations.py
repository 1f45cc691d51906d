"""Creates objects without a pause while the cluster changes, and counts the outcomes."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
import yaml

from tests.e2e.apiserver import ApiServer, trust
from tests.e2e.test_rules import pod

PAUSE_S = 0.02
PODS = "/api/v1/namespaces/default/pods"
SANDBOXES = "/apis/sandbox.opensandbox.io/v1alpha1/namespaces/default/batchsandboxes"


def _sandbox(name: str) -> dict[str, Any]:
    template = {"spec": pod("x", {"gpu": "all"})["spec"]}
    kind = {"apiVersion": "sandbox.opensandbox.io/v1alpha1", "kind": "BatchSandbox"}
    return {**kind, "metadata": {"name": name}, "spec": {"replicas": 1, "template": template}}


Sorts: TypeAlias = dict[str, tuple[str, Callable[[str], dict[str, Any]]]]

SORTS: Sorts = {
    "plain": (PODS, lambda name: pod(name, {"cpu": "1"})),
    "own": (PODS, lambda name: pod(name, {"nvidia.com/gpu": "1"})),
    "portable": (PODS, lambda name: pod(name, {"gpu": "1"})),  # the API server refuses `gpu` itself
    "wrong": (SANDBOXES, _sandbox),  # the API server accepts this object, and claimgate refuses it
}


TEMPLATES = "/api/v1/namespaces/default/podtemplates"


def _pod_template(name: str) -> dict[str, Any]:
    """Return a PodTemplate, because this kind has separate webhooks, and no controller changes its objects."""
    template = {"spec": pod("x", {"nvidia.com/gpu": "1"})["spec"]}
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name}, "template": template}


WITH_TEMPLATES = {**SORTS, "template": (TEMPLATES, _pod_template)}


@dataclass(slots=True)
class Creations:
    """Counts of outcomes, by sort of object, and by the phases in which the request was sent and answered.

    Outcomes are `created`, `created as nvidia.com/gpu`, or the message of the refusal. At the end of a phase, requests
    in flight are not counted, because their phase is not known.
    """

    phase: str = "start"
    seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def outcomes(self, sort: str, *phases: str) -> set[str]:
        """Return the outcomes of one sort, in some phases or in all."""
        return {outcome for phase, each, outcome in self.seen if each == sort and (not phases or phase in phases)}

    def count(self, *phases: str) -> int:
        return sum(count for (phase, _, _), count in self.seen.items() if not phases or phase in phases)


@contextmanager
def creating(server: ApiServer, sorts: Sorts = SORTS) -> Iterator[Creations]:
    """Create one object of each sort again and again until the block ends."""
    creations, stopped = Creations(), threading.Event()
    thread = threading.Thread(target=_create, args=(server, sorts, creations, stopped))
    thread.start()
    try:
        yield creations
    finally:
        stopped.set()
        thread.join(30)


def _create(server: ApiServer, sorts: Sorts, creations: Creations, stopped: threading.Event) -> None:
    token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(verify=trust(server), base_url=server.url, headers=headers, timeout=30) as client:
        number, run = 0, secrets.token_hex(3)  # a cluster may have the objects of another test
        while not stopped.is_set():
            number += 1
            for sort, (path, made) in sorts.items():
                before = creations.phase
                answer = client.post(path, json=made(f"{sort}-{run}-{number}"))
                phase = before if creations.phase == before else "between"
                creations.seen[phase, sort, _outcome(answer, f"{sort}-{run}-{number}")] += 1
            time.sleep(PAUSE_S)


def _outcome(answer: httpx.Response, name: str) -> str:
    if not answer.is_success:
        return f"{answer.status_code}: {answer.json()['message'].replace(name, 'NAME')}"
    return "created as nvidia.com/gpu" if "nvidia.com/gpu" in answer.text else "created"
