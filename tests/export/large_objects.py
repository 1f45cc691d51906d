"""Objects of 1.4 MB with a GPU. In each, one list, map or text of a user is as long as the size allows.

A function of `SHAPES` makes a PodSpec and metadata of a number of bytes, for every kind with pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

JSON: TypeAlias = Any
Shape: TypeAlias = Callable[[int], tuple[JSON, JSON]]

GPU = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
BYTES = 1_400_000
"""etcd stores at most 1.5 MiB."""
_WALKED = 8
"""Conditions walk at most this number of containers."""


def _spec(containers: list[JSON], **others: JSON) -> JSON:
    return {"containers": containers, "restartPolicy": "Never", **others}


def _container(number: int = 0, **others: JSON) -> JSON:
    return {"name": f"c{number}", "image": "app:1", **others}


def _with_gpu_last(fields: list[JSON]) -> JSON:
    """Return containers with these fields. Only the last container has a GPU, so a search visits all others first."""
    few = len(fields) < _WALKED
    listed = [_container(number, **each) for number, each in enumerate([*fields, {}] if few else fields)]
    listed[-1] |= {"resources": GPU}
    return _spec(listed)


def _spread(size: int, containers: int, field: Callable[[int], JSON]) -> tuple[JSON, JSON]:
    return _with_gpu_last([field(size // containers) for _ in range(containers)]), {}


def _variables(number: int, letter: str = "N") -> Callable[[int], JSON]:
    return lambda size: {
        "env": [{"name": f"{letter * (size // number - 24)}_{each:06}", "value": "v"} for each in range(number)]
    }


def _words(field: str, number: int, letter: str = "x") -> Callable[[int], JSON]:
    return lambda size: {field: [letter * (size // number) for _ in range(number)]}


def _keys(size: int, length: int) -> JSON:
    """Return a map of this size in bytes. Its keys have this length."""
    return {f"{'k' * (length - 8)}{number:08}": "v" for number in range(size // (length + 6))}


SHAPES: Mapping[str, Shape] = {
    "64 variables with long names": lambda size: _spread(size, 1, _variables(64)),
    "64 variables of a third each": lambda size: _spread(size, 3, _variables(64)),
    "8 containers with 64 variables": lambda size: _spread(size, 8, _variables(64)),
    "8 containers with 64 names of 64 characters": lambda size: (
        _with_gpu_last([{"env": [{"name": f"{'N' * 60}_{n:03}", "value": "v"} for n in range(64)]}] * 8),
        {},
    ),
    "one variable with a long name": lambda size: _spread(size, 1, _variables(1)),
    "variables of one character": lambda size: _spread(size, 1, _variables(size // 34)),
    "a long image": lambda size: (_with_gpu_last([{"image": "i" * size}]), {}),
    "8 long images": lambda size: _spread(size, 8, lambda part: {"image": "i" * part}),
    "one long word": lambda size: _spread(size, 1, _words("command", 1)),
    "16 long words": lambda size: _spread(size, 1, _words("args", 16)),
    "8 containers with 16 long words": lambda size: _spread(size, 8, _words("args", 16)),
    "8 containers with 32 words that are read": lambda size: (
        _with_gpu_last([{"command": ["x" * 256] * 16, "args": ["y" * 256] * 16}] * 8),
        {},
    ),
    "words of one character": lambda size: _spread(size, 1, _words("args", size // 4)),
    "as many containers as fit": lambda size: (_with_gpu_last([{} for _ in range(size // 40)]), {}),
    "a long scheduler name": lambda size: (_spec([_container(resources=GPU)], schedulerName="s" * size), {}),
    "64 long labels": lambda size: (_spec([_container(resources=GPU)]), {"labels": _keys(size, size // 64)}),
    "64 labels of a third each": lambda size: (
        _spec([_container(resources=GPU)]),
        {"labels": _keys(size // 3, size // 192), "annotations": _keys(size // 3, size // 192)},
    ),
    "as many labels as fit": lambda size: (_spec([_container(resources=GPU)]), {"labels": _keys(size, 10)}),
    "as many annotations as fit": lambda size: (
        _spec([_container(resources=GPU)]),
        {"annotations": _keys(size, 10)},
    ),
    "one long annotation": lambda size: (
        _spec([_container(resources=GPU)]),
        {"annotations": {"a": "v" * (size // 6)}},
    ),
    "resources with long names": lambda size: (
        _spec([_container(resources={"limits": {f"a.b/{'r' * (size // 64)}{n}": "1" for n in range(32)}})]),
        {},
    ),
    "as many resources as fit": lambda size: (
        _spec([_container(resources={"limits": {f"a.b/{n}": "1" for n in range(size // 40)}})]),
        {},
    ),
    "as many claims as fit": lambda size: (
        _spec([_container(resources=GPU)], resourceClaims=[{"name": f"c{n}"} for n in range(size // 30)]),
        {},
    ),
    "as many volumes as fit": lambda size: (
        _spec([_container(resources=GPU)], volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(size // 40)]),
        {},
    ),
    "long init and ephemeral containers": lambda size: (
        _spec(
            [_container(n, **_variables(64)(size // 16)) for n in range(7)] + [_container(7, resources=GPU)],
            initContainers=[_container(n + 10, **_variables(64)(size // 16)) for n in range(8)],
        ),
        {},
    ),
    "every part that conditions walk": lambda size: (
        _spec(
            [_everything(n) for n in range(7)] + [{**_everything(7), "resources": GPU}],
            initContainers=[_everything(n + 10) for n in range(8)],
        ),
        {"labels": _keys(64 * 323, 317), "annotations": _keys(64 * 323, 317)},
    ),
}


def _everything(number: int) -> JSON:
    amounts = {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "1024Mi"}
    return _container(
        number,
        image="i" * 256,
        command=["x" * 256] * 16,
        args=["y" * 256] * 16,
        env=[{"name": f"{'N' * 60}_{n:03}", "value": "v"} for n in range(64)],
        resources={"limits": amounts, "requests": amounts},
    )


def kinds_with(spec: JSON, metadata: JSON) -> Iterator[JSON]:
    named = {"name": "o", "namespace": "default", **metadata}
    labels = {"labels": {"app": "x", **metadata.get("labels", {})}}
    template = {"metadata": {**metadata, **labels}, "spec": spec}
    selected = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    running = {"selector": {"matchLabels": {"app": "x"}}, "template": _always(template)}
    yield {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": spec}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": named, "spec": running}
    yield {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": named, "spec": running}
    yield {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": named, "spec": running}
    yield {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": named, "spec": {**running, "serviceName": "s"}}
    yield {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": named,
        "spec": {"selector": {"app": "x"}, "template": selected["template"] and _always(template)},
    }
    yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": named, "spec": {"template": template}}
    yield {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": named,
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}},
    }
    yield {"apiVersion": "v1", "kind": "PodTemplate", "metadata": named, "template": _always(template)}


def _always(template: JSON) -> JSON:
    return {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}
