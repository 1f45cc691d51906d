"""A random cluster that changes between reviews: namespaces, parameters and named objects come, change and go."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from tests.bench import job_traffic
from webhook.apimachinery.attributes import JSON

NAMESPACES: Final = ("a", "b", "team-0")
"""Namespaces that exist some of the time. Reviews also come from others."""
_SITE: Final = "claimgate-system"
_SHIPPED_PARAMS: Final = (
    ("gpu-limits", ({"tolerations": "nvidia.com/gpu"}, {"tolerations": ""}, {})),
    ("gpu-portable", ({"default": "nvidia.com/gpu"}, {})),
    ("trainer", ({"trainer": "2.4"}, {"trainer": "2.2"}, {})),
)


class Clusters:
    """Draws the objects of a cluster, which change between reviews. An object that does not change stays the identical
    Python object.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._objects: dict[tuple[str, str, str], JSON] = {}
        self.is_complete = False
        for _ in range(12):
            self.change()

    def objects(self) -> tuple[JSON, ...]:
        return tuple(self._objects.values())

    def change(self) -> None:
        random = self._random
        obj = random.choice((self._namespace, self._namespace, self._param, self._param, self._shipped, self._other))()
        key = obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        if key in self._objects and random.random() < 0.35:
            del self._objects[key]
        else:
            self._objects[key] = obj
        self.is_complete = random.random() < 0.4

    def _namespace(self) -> JSON:
        random = self._random
        name = random.choice(NAMESPACES)
        labels = {"kubernetes.io/metadata.name": name}
        if random.random() < 0.6:
            labels["stage"] = random.choice(("production", "test"))
        made: JSON = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        if random.random() < 0.3:
            made["metadata"]["annotations"] = {"note-1": "x"}
        return made

    def _param(self) -> JSON:
        random = self._random
        data = random.choice(({"k": "v", "n": "3"}, {"k": "w", "n": "1"}, {"n": "x"}, None))
        metadata = {
            "name": random.choice(("p1", "p2")),
            "namespace": random.choice(("a", "b")),
            "labels": {"t": random.choice("ab")},
        }
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            **({} if data is None else {"data": data}),
        }

    def _shipped(self) -> JSON:
        name, variants = self._random.choice(_SHIPPED_PARAMS)
        metadata = {"name": name, "namespace": _SITE}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self._random.choice(variants)}

    def _other(self) -> JSON:
        return self._random.choice(tuple(self._others()))

    def _others(self) -> Iterator[JSON]:
        random = self._random
        namespace = random.choice(NAMESPACES)
        yield job_traffic.runtime()
        yield job_traffic.CLASS
        yield job_traffic.claim_template(namespace, random.choice(("one-gpu", "t")), random.choice((1, 2)))
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": random.choice((1000, 2000)),
            "preemptionPolicy": random.choice(("Never", "PreemptLowerPriority")),
        }
        yield {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "LocalQueue",
            "metadata": {"name": "user-queue", "namespace": namespace},
            "spec": {"clusterQueue": random.choice(("cluster-queue", "other"))},
        }
