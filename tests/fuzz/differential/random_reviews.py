"""Random reviews: objects of API servers, users and suites, with small changes, in some operation. A stream has few
objects and few changes, so objects are often equal in the fields that a policy reads.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import yaml

from tests import quick_yaml
from webhook.apimachinery.attributes import JSON
from webhook.workloads import table

_ROOT: Final = Path(__file__).parents[3]
_LARGEST: Final = 20_000
"""The most characters of an object: larger recorded objects add nothing."""


@cache
def recorded() -> Mapping[bool, tuple[JSON, ...]]:
    """Return every object of the recorded reviews, the manifests and the suites: Pods under True, others under
    False.
    """
    found: dict[str, JSON] = {}
    for obj in (*_reviewed(), *_manifests(), *_of_suites()):
        if _is_object(obj) and len(text := json.dumps(obj, sort_keys=True, default=str)) <= _LARGEST:
            found[text] = json.loads(text)
    ordered = [found[text] for text in sorted(found)]
    return {is_pod: tuple(obj for obj in ordered if (obj["kind"] == "Pod") is is_pod) for is_pod in (True, False)}


def _is_object(obj: Any) -> bool:
    return (
        isinstance(obj, dict)
        and isinstance(obj.get("kind"), str)
        and isinstance(obj.get("apiVersion"), str)
        and isinstance(obj.get("metadata"), dict)
        and isinstance(obj.get("spec", {}), dict)
    )


def _reviewed() -> Iterator[JSON]:
    for file in sorted((_ROOT / "tests/data/reviews").glob("*.json")):
        request = json.loads(file.read_text()).get("request") or {}
        yield request.get("object")


def _manifests() -> Iterator[JSON]:
    for file in sorted((_ROOT / "tests/data/manifests").rglob("*.yaml")):
        try:
            yield from quick_yaml.load_all(file.read_text())
        except yaml.YAMLError:  # a template of Helm, which is not YAML
            continue


def _of_suites() -> Iterator[JSON]:
    for file in sorted((_ROOT / "policies").glob("*/suite.yaml")):
        for case in quick_yaml.load(file.read_text())["cases"]:
            yield case.get("input")


class Reviews:
    """Draws reviews about a few objects and their variants."""

    def __init__(self, random: Random, objects: int = 5) -> None:
        self._random = random
        self._table = table.load_table()
        self._drawn = [self._plain_pod()]
        for _ in range(objects):
            self._drawn.append(random.choice(recorded()[random.random() < 0.5]))

    def _plain_pod(self) -> JSON:
        container = {"name": "main", "image": "registry.example/x:1"}
        metadata = {"name": "a", "namespace": "a"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}

    def draw(self) -> bytes:
        """Return the AdmissionReview of one random request."""
        random = self._random
        base = self._drawn[0] if random.random() < 0.5 else random.choice(self._drawn)
        operation = random.choices(("CREATE", "UPDATE", "DELETE"), (80, 16, 4))[0]
        namespace = random.choice(("a", "a", "b", "b", "team-0", "unknown", "gone"))
        name = random.choice(("a", "a", "b", "c"))
        obj, old = (self._changed(base, namespace, name) for _ in range(2))
        return self._review(obj, old, operation)

    def _review(self, obj: JSON, old: JSON, operation: str) -> bytes:
        random = self._random
        group, _, version = obj["apiVersion"].rpartition("/")
        row = self._table.row(group, obj["kind"])
        resource = {
            "group": group,
            "version": version,
            "resource": row.resource if row else f"{obj['kind'].lower()}s",
        }
        kind = {"group": group, "version": version, "kind": obj["kind"]}
        user = {"username": random.choice(("alice", "alice", "bob")), "groups": ["developers"]}
        request = {
            "uid": f"{random.getrandbits(32):08x}",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": obj["metadata"]["name"],
            "namespace": obj["metadata"]["namespace"],
            "operation": operation,
            "userInfo": user,
            "dryRun": random.random() < 0.1,
            "object": None if operation == "DELETE" else obj,
            "oldObject": None if operation == "CREATE" else old,
        }
        sent = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        return json.dumps(sent, separators=(",", ":")).encode()

    def _changed(self, base: JSON, namespace: str, name: str) -> JSON:
        random = self._random
        obj = copy.deepcopy(base)
        obj["metadata"] |= {"name": name, "namespace": namespace}
        for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
            random.choice(_OF_METADATA)(obj["metadata"], random)
        for spec in _pod_specs(obj):
            for _ in range(random.choice((0, 0, 1, 2))):
                random.choice(_OF_PODS)(spec, random)
        return obj


def _pod_specs(value: JSON) -> Iterator[JSON]:
    """Yield every PodSpec inside an object."""
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list):
            yield value
        for inner in value.values():
            yield from _pod_specs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pod_specs(inner)


def _labels(metadata: JSON, random: Random) -> None:
    metadata["labels"] = random.choice(({}, {"team": "a"}, {"team": "b"}, {"team": "b", "stage": "production"}))


def _queue(metadata: JSON, random: Random) -> None:
    metadata["labels"] = {"kueue.x-k8s.io/queue-name": random.choice(("user-queue", "absent"))}


def _annotations(metadata: JSON, random: Random) -> None:
    count = random.choice((0, 1, 3, 45, 45))
    metadata["annotations"] = {f"note-{number}": "x" for number in range(count)}


def _no_labels(metadata: JSON, random: Random) -> None:
    del random
    metadata.pop("labels", None)


def _host(spec: JSON, random: Random) -> None:
    spec[random.choice(("hostPID", "hostNetwork", "hostIPC"))] = random.random() < 0.7


def _priority(spec: JSON, random: Random) -> None:
    spec["priorityClassName"] = random.choice(("high", "absent"))


def _tolerations(spec: JSON, random: Random) -> None:
    spec["tolerations"] = [{"key": random.choice(("gpu", "nvidia.com/gpu")), "operator": "Exists"}]


def _claims(spec: JSON, random: Random) -> None:
    spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": random.choice(("one-gpu", "t", "absent"))}]
    _first(spec)["resources"] = {"claims": [{"name": "gpus"}]}


def _devices(spec: JSON, random: Random) -> None:
    count = random.choice(("1", "2", "1.5", 1))
    name = random.choice(("nvidia.com/gpu", "nvidia.com/gpu", "amd.com/gpu", "gpu"))
    _first(spec)["resources"] = {"limits": {name: count, "cpu": "1"}}


def _image(spec: JSON, random: Random) -> None:
    _first(spec)["image"] = random.choice(("x:latest", "registry.example/x:1"))


def _command(spec: JSON, random: Random) -> None:
    _first(spec)["command"] = random.choice((["torchrun", "--nproc-per-node=2", "train.py"], ["sleep", "1"]))


def _containers(spec: JSON, random: Random) -> None:
    spec["containers"] = [
        *spec["containers"],
        *({"name": f"c{n}", "image": "x:2"} for n in range(random.choice((1, 3)))),
    ]


def _first(spec: JSON) -> JSON:
    """Return the first container of a pod, or add one if there is none."""
    if not (spec["containers"] and isinstance(spec["containers"][0], dict)):
        spec["containers"] = [{"name": "main", "image": "x:1"}]
    found: JSON = spec["containers"][0]
    return found


_Change = Callable[[JSON, Random], None]
_OF_METADATA: Final[tuple[_Change, ...]] = (_labels, _labels, _annotations, _annotations, _no_labels, _queue)
_OF_PODS: Final[tuple[_Change, ...]] = (
    _host, _host, _priority, _tolerations, _claims, _devices, _devices, _image, _command, _containers,
)  # fmt: skip
