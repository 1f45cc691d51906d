"""The reviews of a cluster: created Pods and jobs, all different.

Like the Pods of many teams, objects differ in name, image, labels, environment and namespace. The templates of one site
give them the same shape and size. `context` is the cluster that sends them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.bench import job_traffic
from webhook.apimachinery.attributes import JSON

RECORDED: Final = Path(__file__).parents[1] / "data" / "reviews" / "controller-replicaset-controller-create-pods.json"
POD_SIZE: Final = 6_000
NAMESPACES: Final = 20
_VALUE_SIZE: Final = 64


def namespace(number: int) -> str:
    return f"team-{number % NAMESPACES}"


@cache
def _recorded() -> JSON:
    return json.loads(RECORDED.read_text())["request"]


def pod(number: int) -> JSON:
    """Return a Pod as a controller creates it. Its environment variables make the review 6 KB long."""
    recorded = _recorded()["object"]
    application, hash_of_template = f"app-{number % 97}", f"{number * 2_654_435_761 % 16**10:010x}"
    labels = {"app": application, "pod-template-hash": hash_of_template, "team": namespace(number)}
    metadata = {
        **recorded["metadata"],
        "name": f"{application}-{hash_of_template}-{number:05d}",
        "generateName": f"{application}-{hash_of_template}-",
        "namespace": namespace(number),
        "labels": labels,
        "annotations": {"example.org/commit": hash_of_template},
    }
    metadata["ownerReferences"] = [{**recorded["metadata"]["ownerReferences"][0], "name": metadata["name"][:-6]}]
    container = {
        **recorded["spec"]["containers"][0],
        "image": f"registry.example/{application}:1.{number % 13}.{number % 7}",
        "env": _environment(number),
        "resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": f"{100 + number % 900}m"}},
    }
    return {**recorded, "metadata": metadata, "spec": {**recorded["spec"], "containers": [container]}}


def _environment(number: int) -> list[JSON]:
    return [
        {"name": f"OPTION_{place}", "value": f"{number * 7919 + place:x}".ljust(_VALUE_SIZE, "x")}
        for place in range(_variables())
    ]


@cache
def _variables() -> int:
    bare = len(json.dumps(_recorded(), separators=(",", ":")))
    return (POD_SIZE - bare) // (_VALUE_SIZE + len('{"name":"OPTION_10","value":""},'))


def gpu_pod(number: int) -> JSON:
    """Return a Pod with GPUs of a device plugin."""
    made = pod(number)
    devices = {"nvidia.com/gpu": str(1 + number % 8)}
    made["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "8", **devices}, "requests": devices}
    return made


def claim_pod(number: int) -> JSON:
    """Return a Pod with GPUs from a claim."""
    made = pod(number)
    made["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "one-gpu"}]
    made["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "8"}, "claims": [{"name": "gpus"}]}
    return made


OBJECTS: Final[Mapping[str, Callable[[int], JSON]]] = {
    "plain Pod": pod,
    "GPU Pod": gpu_pod,
    "claim Pod": claim_pod,
    "TrainJob 60 KB": lambda number: job_traffic.trainjob(number, namespace(number)),
    "JobSet 50 KB": lambda number: job_traffic.jobset(number, namespace(number)),
    "Volcano Job": lambda number: job_traffic.volcano_job(number, namespace(number)),
}
"""The requests, by their names in tables."""
_RESOURCES: Final = {"Pod": "pods", "TrainJob": "trainjobs", "JobSet": "jobsets", "Job": "jobs"}


def review(kind: str, number: int) -> bytes:
    """Return the review of a creation, as from an API server: compact, and with a newline at the end."""
    obj = OBJECTS[kind](number)
    group, _, version = obj["apiVersion"].rpartition("/")
    names: dict[str, Any] = {
        "uid": f"{number:08x}-0000-4000-8000-000000000000",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": _RESOURCES[obj["kind"]]},
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"]["namespace"],
    }
    request = {**copy.copy(_recorded()), **names, "object": obj}
    request |= {"requestKind": request["kind"], "requestResource": request["resource"]}
    sent = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(sent, separators=(",", ":")).encode() + b"\n"


def reviews(kind: str, numbers: range) -> list[bytes]:
    return [review(kind, number) for number in numbers]


def context() -> Iterator[JSON]:
    """Return a cluster: namespaces with the objects to which claims and TrainJobs refer."""
    yield job_traffic.CLASS
    yield job_traffic.runtime()
    for number in range(NAMESPACES):
        name = namespace(number)
        labels = {"kubernetes.io/metadata.name": name, "stage": ("test", "production")[number % 2]}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        yield job_traffic.claim_template(name, "one-gpu", 1)
        yield job_traffic.claim_template(name, "eight-gpus", 8)
