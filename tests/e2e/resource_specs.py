"""Pod specs with unusual resources: names, amounts, limits and requests, huge pages, the whole pod, overhead.

tests/data/policies/resources.jsonl has the answers of kube-apiserver 1.36.1 to each spec, as a Pod, in a Deployment and
in a PodTemplate. tests/policies/test_resources.py compares gpu-limits with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, product
from typing import Any

KINDS = ("Pod", "Deployment", "PodTemplate")
RUNTIME_CLASSES = (
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "plain"}, "handler": "runc"},
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "heavy"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "100Mi"}},
    },
)
"""The objects for specs that name a runtime class."""

NAMES = (
    *("cpu", "memory", "ephemeral-storage", "storage", "pods", "services", "secrets", "CPU", "Memory", "cpu.com"),
    *("requests.cpu", "limits.memory", "requests.storage", "requests.hugepages-2Mi", "requests.nvidia.com/gpu"),
    *("gpu", "GPU", "gpu ", " gpu", "", "nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.5gb", "rdma/hca"),
    *("nvidia.com/", "/gpu", "/", "nvidia.com//gpu", "nvidia.com/gpu/x", "NVIDIA.com/gpu", "nvidia_com/gpu"),
    *("nvidia.com/-gpu", "nvidia.com/gpu-", "nvidia.com/gpu_A.b-1", "nvidia.com/GPU", "nvidia..com/gpu", "-a/gpu"),
    *(f"nvidia.com/{'g' * 63}", f"nvidia.com/{'g' * 64}", f"{'a.' * 120}com1/gpu", f"{'a.' * 120}com11/gpu"),
    *(f"{'a.' * 126}b/gpu", f"{'a.' * 127}b/gpu", f"{'a' * 63}.com/gpu", f"{'a' * 70}.com/gpu"),
    *("kubernetes.io/gpu", "a.kubernetes.io/gpu", "akubernetes.io/gpu", "kubernetes.io", "example.com/kubernetes.io"),
    *("requests.kubernetes.io/gpu", "kubernetes.io/-gpu", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"),
    *("example.com/gpü", "beispiel.d\u0435/gpu", "a/b", "1/2", "example.com/gpu\n"),
)
PAGES = (
    *("hugepages-", "hugepages-2Mi", "hugepages-1Gi", "hugepages-64Ki", "hugepages-0", "hugepages-x", "hugepages--1"),
    *("hugepages-1", "hugepages-1.5", "hugepages-500m", "hugepages-1000m", "hugepages-2Mi.", "hugepages-2mi"),
    *("hugepages-2Mi/x", "hugepages-a.com/x", "Hugepages-2Mi", "hugepages-2M", "hugepages-1e3", "hugepages_2Mi"),
)
AMOUNTS: tuple[Any, ...] = (
    *("0", 0, "1", 1, "+1", "-1", -1, "-0", "01", "1.0", "1.5", 1.5, "2000m", "500m", "1k", "1K", "1Ki", "1e1", "1E1"),
    *("1e-1", "10e-1", "0.0001", "1.0001", "-0.0001", "1n", "1u", "1000000n", "1000000000n", "all", "", " ", " 1"),
    *("1 ", "0x10", "1_000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e19", "1E"),
    *("1Ei", "7Ei", "8Ei", "16Ei", "1e15", "1e16", "123456789012345678", "9007199254740993", "999999999999999999999"),
    *("4503599627370497.5", "92233720368547758070m", "9223372036854775.5", "9223372036854775807.5"),
    *(True, False, [], [1], {}, {"a": 1}, None, 1e3, "Inf", "NaN", "1mi", "1 Gi", "1gi", ".5", "5.", ".", "+", "--1"),
    *("\u0663", "one", "1e", "1e+3", "1E3m", "1.2.3", "1,5"),
)
SOME = ("-1", "1.5", "500m", "0.0001", "-0.0001", " 1", "all", None, "8Ei", "1e16", "4503599627370497.5", ".", True)
PAIRS: tuple[tuple[Any, Any], ...] = (
    *((None, "1"), ("1", None), ("1", "1"), ("1", "2"), ("2", "1"), (1, "1"), ("1", "1000m"), ("0", "0"), ("0", "1")),
    *(("1", "0"), ("1.0001", "1.0005"), ("1.0005", "1.0001"), ("1.0005", "1.0015"), ("1Ki", "1024"), ("1k", "1Ki")),
    *(("-1", "-1"), ("-1", "1"), ("1", "-1"), ("500m", "500m"), ("500m", "0.5"), ("9e15", "9000000000000001")),
    *(("null", "1"), ("1", "null"), ("null", "null"), ("0", "null"), ("2Mi", "2Mi"), ("2Mi", "4Mi"), ("4Mi", "2Mi")),
)
"""Limit and request of one resource. None means unset, and "null" means null."""
SIDED = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "kubernetes.io/gpu", "hugepages-2Mi")
PAGED: tuple[Any, ...] = (
    *("0", "1", "1Mi", "2Mi", "3Mi", "4Mi", "1Gi", "2097152", "2097151.5", "2097153", "-2Mi", "2M", "2Mib", None, "1m"),
    *("4398046511104", "16Ei"),
)


def container(resources: Any = None, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "x", **({} if resources is None else {"resources": resources}), **more}


def asking(**resources: Any) -> dict[str, Any]:
    return {"containers": [container(resources)]}


def sides(name: str, limit: Any, request: Any) -> dict[str, Any]:
    found = (("limits", limit), ("requests", request))
    return {side: {name: None if amount == "null" else amount} for side, amount in found if amount is not None}


def names() -> Iterator[dict[str, Any]]:
    for name in (*NAMES, *PAGES):
        yield asking(limits={name: "1"}, requests={"cpu": "1"})
    for name in ("gpu", "nvidia.com/gpu/x", "requests.a.b/c", "kubernetes.io/gpu", "hugepages-x", "hugepages-2Mi"):
        yield asking(requests={name: "0", "cpu": "1"})
        yield {"containers": [container()], "initContainers": [container({"limits": {name: "0", "cpu": 1}}, "init")]}
    yield asking(limits={"gpu": "all"})
    yield asking(limits={"gpu": "1", "nvidia.com/gpu": "1"})


def amounts() -> Iterator[dict[str, Any]]:
    for name, amount in (
        *product(("nvidia.com/gpu", "cpu"), AMOUNTS),
        *product(("kubernetes.io/gpu", "hugepages-1"), SOME),
    ):
        yield asking(limits={name: amount}, requests={"memory": "1"})
    for amount in ("-1", "1.5", "all", None, True, [1]):
        yield asking(requests={"cpu": amount})
    for wrong in ("text", 1, True, [], ["cpu"], None):
        yield {"containers": [container(wrong)]}
        yield asking(limits=wrong)
        yield asking(limits={"cpu": 1}, requests=wrong)


def pairs() -> Iterator[dict[str, Any]]:
    for name, (limit, request) in product(SIDED, PAIRS):
        yield {"containers": [container(sides(name, limit, request)), container({"limits": {"cpu": 1}}, "other")]}
        if name.startswith("hugepages"):
            spec = sides(name, limit, request)
            yield asking(**{**spec, "limits": {**spec.get("limits", {}), "cpu": "1"}})


def pages() -> Iterator[dict[str, Any]]:
    for amount in PAGED:
        yield asking(limits={"hugepages-2Mi": amount, "memory": "1Gi"})
    page = {"hugepages-2Mi": "2Mi"}
    yield asking(limits=page)
    yield asking(limits={**page, "nvidia.com/gpu": 1})
    yield asking(limits={**page, "ephemeral-storage": "1Gi"})
    yield asking(limits=page, requests={"cpu": "1"})
    yield asking(limits=page, requests={**page, "memory": "1"})
    yield asking(limits={**page, "memory": None})
    yield asking(limits={**page, "memory": "0"})
    yield asking(limits={**page, "hugepages-1Gi": "1Gi", "cpu": "0"})
    yield {"containers": [container({"limits": page}), container({"limits": {"cpu": 1}}, "other")]}
    yield {"containers": [container()], "initContainers": [container({"limits": page}, "init")]}


def pod_level() -> Iterator[dict[str, Any]]:
    plain = [container()]
    for name in ("cpu", "memory", "hugepages-2Mi", *NAMES[2:12], "gpu", "nvidia.com/gpu", "kubernetes.io/gpu", *PAGES):
        yield {"containers": plain, "resources": {"limits": {name: "2Mi", "memory": "1Gi"}}}
    for name, (limit, request) in product(("cpu", "memory", "hugepages-2Mi"), PAIRS):
        yield {"containers": plain, "resources": sides(name, limit, request)}
        if name.startswith("hugepages"):
            spec = sides(name, limit, request)
            yield {"containers": plain, "resources": {**spec, "requests": {**spec.get("requests", {}), "cpu": "1"}}}
    for amount in PAGED:
        yield {"containers": plain, "resources": {"limits": {"hugepages-2Mi": amount, "memory": "1Gi"}}}
    for wrong in ("text", 1, [], None, {}, {"limits": "x"}, {"limits": {}}, {"requests": [1]}, {"limits": {"cpu": []}}):
        yield {"containers": plain, "resources": wrong}
    for os in ("windows", "linux"):
        yield {"containers": plain, "os": {"name": os}, "resources": {"limits": {"cpu": "1"}}}
        yield {"containers": plain, "os": {"name": os}, "resources": {}}
        yield {"containers": plain, "os": {"name": os}}


def shares() -> Iterator[dict[str, Any]]:
    for name, side, whole in product(("cpu", "memory", "hugepages-2Mi"), ("limits", "requests"), ("2Mi", "4Mi", "6Mi")):
        pod = {side: {name: whole, **({"cpu": "1"} if name.startswith("huge") else {})}}
        for inner in ("limits", "requests"):
            ask = {inner: {name: "4Mi", **({"memory": "1Mi"} if name.startswith("huge") else {})}}
            if inner == "requests" and name.startswith("huge"):
                ask["limits"] = {name: "4Mi"}
            yield {"containers": [container(ask)], "resources": pod}
            yield {"containers": [container(ask), container(ask, "other")], "resources": pod}
            yield {"containers": [container()], "initContainers": [container(ask, "init")], "resources": pod}
            sidecar = container(ask, "side", restartPolicy="Always")
            yield {"containers": [container(ask)], "initContainers": [sidecar], "resources": pod}
            init = [container(ask, "first"), sidecar, container(ask, "last")]
            yield {"containers": [container()], "initContainers": init, "resources": pod}
    both = {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    yield {"containers": [container(both)], "resources": both}
    yield {"containers": [container(both), container(both, "other")], "resources": both}
    yield {"containers": [container(both), container(both, "other")], "resources": {"requests": {"cpu": "2"}}}
    yield {"containers": [container({"limits": {"cpu": "3"}})], "resources": {"limits": {"cpu": "2"}}}
    yield {"containers": [container({"requests": {"cpu": "3"}})], "resources": {"limits": {"cpu": "2"}}}
    yield {"containers": [container({"requests": {"cpu": "3"}})], "resources": {"limits": {"memory": "2"}}}
    thirds = [container({"requests": {"cpu": "333m"}}, f"c{i}") for i in range(3)]
    yield {"containers": thirds, "resources": {"requests": {"cpu": "999m"}}}
    yield {"containers": thirds, "resources": {"requests": {"cpu": "998m"}}}
    tenths = [container({"requests": {"cpu": "0.1"}}, f"c{i}") for i in range(10)]
    yield {"containers": tenths, "resources": {"requests": {"cpu": "1"}}}


def overhead() -> Iterator[dict[str, Any]]:
    """Yield specs with an overhead, which must equal the overhead of a runtime class of the cluster."""
    plain = [container()]
    for runtime, found in product(
        (None, "plain", "heavy"),
        (None, {}, {"cpu": "250m", "memory": "100Mi"}, {"cpu": "1"}, {"gpu": "1"}, {"nvidia.com/gpu": "500m"}),
    ):
        spec: dict[str, Any] = {"containers": plain}
        spec |= {} if runtime is None else {"runtimeClassName": runtime}
        spec |= {} if found is None else {"overhead": found}
        yield spec
    for found in (
        {"hugepages-2Mi": "2Mi"},
        {"hugepages-2Mi": "2Mi", "cpu": "1"},
        {"nvidia.com/gpu": "1"},
        {"cpu": "-1"},
    ):
        yield {"containers": plain, "overhead": found, "runtimeClassName": "heavy"}
    for wrong in ("text", [1], {"cpu": [1]}, {"cpu": "all"}, None, {"cpu": None}):
        yield {"containers": plain, "overhead": wrong}


def shapes() -> Iterator[dict[str, Any]]:
    for wrong in ("text", 1, {}, [1], ["a"], [None], [[]]):
        yield {"containers": wrong}
        yield {"containers": [container()], "initContainers": wrong}


def all_specs() -> Iterator[dict[str, Any]]:
    yield from chain(names(), amounts(), pairs(), pages(), pod_level(), shares(), overhead(), shapes())


def embedded(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "default"}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    if kind == "PodTemplate":
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "template": template}
    selector = {"matchLabels": {"app": "x"}}
    deployment = {"replicas": 1, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": deployment}
