"""The rules of namespace-quota refuse Pods by ResourceQuotas and LimitRanges, as the plugins of a real API server
do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import httpx
import pytest
import yaml

from tests.e2e import apiserver
from tests.e2e.apiserver import trust
from tests.fault_cases import findings_among
from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.quantity import parse_quantity

pytestmark = pytest.mark.e2e
PODS: Final = 600
NAMESPACES: Final = 60
AMOUNTS: Final = {
    "cpu": ("500m", "1", "2", "4"),
    "memory": ("1Gi", "2Gi", "4Gi", "8Gi"),
    "ephemeral-storage": ("1Gi", "10Gi"),
    "nvidia.com/gpu": ("1", "2", "4"),
}
HARD: Final = {
    "pods": ("0", "1"),
    "requests.nvidia.com/gpu": ("1", "2", "4"),
    **dict.fromkeys(("cpu", "requests.cpu", "limits.cpu"), AMOUNTS["cpu"]),
    **dict.fromkeys(("memory", "requests.memory", "limits.memory"), AMOUNTS["memory"]),
    **dict.fromkeys(("requests.ephemeral-storage", "limits.ephemeral-storage"), AMOUNTS["ephemeral-storage"]),
}
ABOVE_LIMIT: Final = "must be less than or equal to"
REFUSALS: Final = ("exceeded quota", "must specify", "usage per Container", "usage per Pod")


def random_amounts(random: Random, table: dict[str, tuple[str, ...]], most: int) -> JSON:
    names = random.sample(sorted(table), random.randint(0, most))
    return {name: random.choice(table[name]) for name in names}


def random_pod(random: Random) -> JSON:
    containers = [{"name": f"c{index}", "image": "i"} for index in range(random.randint(1, 2))]
    init = [{"name": "before", "image": "i"}] if random.random() < 0.3 else []
    if init and random.random() < 0.5:
        init[0]["restartPolicy"] = "Always"
    for each in (*containers, *init):
        without_gpus = {name: values for name, values in AMOUNTS.items() if "/" not in name}
        sides = {side: random_amounts(random, without_gpus, 3) for side in ("requests", "limits")}
        each["resources"] = {side: amounts for side, amounts in sides.items() if amounts}
    limits = containers[0]["resources"].setdefault("limits", {})
    limits["nvidia.com/gpu"] = random.choice(AMOUNTS["nvidia.com/gpu"])
    spec = {"containers": containers, "initContainers": init}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


def random_limits(random: Random) -> Sequence[JSON]:
    kinds = random.choice((("ResourceQuota",), ("LimitRange",), ("ResourceQuota", "LimitRange")))
    limit = {"type": random.choice(("Container", "Pod"))}
    fields = ("max", "min", "default", "defaultRequest") if limit["type"] == "Container" else ("max", "min")
    for field in random.sample(fields, random.randint(1, 2)):
        limit[field] = random_amounts(random, AMOUNTS, 2) or {"cpu": "2"}
    specs = {
        "ResourceQuota": {"hard": random_amounts(random, HARD, 3) or {"pods": "1"}},
        "LimitRange": {"limits": [limit]},
    }
    return [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": specs[kind]} for kind in kinds]


def requests_more_than_own_limits(pod: JSON) -> bool:
    """Return whether a container of the pod itself requests more than its limit."""
    containers = (*pod["spec"]["containers"], *pod["spec"]["initContainers"])
    pairs = [(each["resources"].get("requests", {}), each["resources"].get("limits", {})) for each in containers]
    return any(
        name in limits and parse_quantity(value).milli_value() > parse_quantity(limits[name]).milli_value()
        for requests, limits in pairs
        for name, value in requests.items()
    )


def create_limits(client: httpx.Client, namespace: str, random: Random) -> Sequence[JSON]:
    """Return the objects that the API server accepts, as it stores them but without its defaults."""
    client.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}).raise_for_status()
    kept = []
    for limits in random_limits(random):
        path = f"/api/v1/namespaces/{namespace}/{limits['kind'].lower()}s"
        answer = client.post(path, json=limits)
        if answer.status_code != 201:
            continue  # for example, a minimum above the maximum
        kept.append({**limits, "metadata": {"name": "a", "namespace": namespace}})
        if limits["kind"] == "ResourceQuota":  # no quota controller runs here, so the test sets the status
            hard = limits["spec"]["hard"]
            stored = {**answer.json(), "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
            client.put(f"{path}/a/status", json=stored).raise_for_status()
    return kept


def test_pods_are_refused_as_quotas_and_limit_ranges_refuse_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := apiserver.missing():
        pytest.skip(reason)
    folder: Path = tmp_path_factory.mktemp("limits")
    said: Counter[bool] = Counter()
    said_of_defaults = 0
    with apiserver.running(folder, "--disable-admission-plugins=ServiceAccount,Priority") as server:
        token = yaml.safe_load(server.kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"authorization": f"Bearer {token}"}
        with httpx.Client(verify=trust(server), headers=headers, base_url=server.url, timeout=60) as client:
            limits = {f"n{index}": create_limits(client, f"n{index}", Random(index)) for index in range(NAMESPACES)}
            seed = 0
            while said.total() < PODS:
                seed += 1
                random = Random(seed)
                namespace = random.choice(sorted(limits))
                pod = random_pod(random)
                path = f"/api/v1/namespaces/{namespace}/pods"
                answer = client.post(path, params={"dryRun": "All"}, json=pod)
                is_refused = answer.status_code == 403 and any(text in answer.text for text in REFUSALS)
                if answer.status_code == 422 and ABOVE_LIMIT in answer.text and not requests_more_than_own_limits(pod):
                    is_refused = True  # more than the limit that a LimitRange sets
                    said_of_defaults += 1
                if answer.status_code != 201 and not is_refused:
                    assert answer.status_code == 422, answer.text  # the Pod is not valid
                    continue
                pod["metadata"]["namespace"] = namespace
                told = [each for each in findings_among(pod, limits[namespace]) if each.startswith("namespace-quota/")]
                assert bool(told) == is_refused, (seed, told, answer.text, pod, limits[namespace])
                said[is_refused] += 1
    assert min(said[True], said[False]) > PODS / 10, said
    assert said_of_defaults > PODS / 100
