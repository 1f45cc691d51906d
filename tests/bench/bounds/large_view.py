"""Live views that one user fills: very many Namespaces, objects of one namespace, and objects nested very deeply.

The API server has the objects before the server starts, and keeps changing some. The victims are ordinary Pods, a Pod of
another namespace that names a claim of the filled kinds, and a small Deployment of the filled namespace. Each review
must be answered in time, and without "not evaluated".
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.bench.bounds.calls import Connection
from tests.bench.bounds.reviews import JSON, NAMESPACE, container, gpus, pod, review, template
from tests.bench.bounds.server import Server
from tests.bench.bounds.victims import Question, allowed, questions
from tests.cluster.server import ApiServer, AsText, event

HONEST = "honest"
MOST_MB = 256
NAMESPACES, BUDGETS, DEEP = 5_000, 40_000, 200
DEPTHS = 600, 800, 950, 1_000
ANNOTATED, ANNOTATION_BYTES = 1_600, 250_000
POLICIES, POLICY_BYTES = 250, 1_300_000
CHANGES_PER_S, READY_S = 10, 60.0
NAMESPACES_PATH = "/api/v1/namespaces"
BUDGETS_PATH = "/apis/policy/v1/poddisruptionbudgets"
POOLS_PATH = "/apis/sandbox.opensandbox.io/v1alpha1/pools"
POLICIES_PATH = "/apis/claimgate.dev/v1alpha1/validatingpolicies"
CLAIMS_PATH = "/apis/resource.k8s.io/v1/resourceclaims"
_UNKNOWN = re.compile("not evaluated|not looked up|not in the view|cannot be read|do not know")


def metadata(name: str, namespace: str = "", version: int = 1, **rest: JSON) -> JSON:
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "resourceVersion": str(version), **rest}


def budget(number: int, version: int = 1) -> JSON:
    """Return a PodDisruptionBudget that selects its own application."""
    selector = {"matchLabels": {"app": f"app-{number}", "tier": f"{number % 7}"}}
    made = metadata(f"budget-{number}", NAMESPACE, version)
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": made, "spec": {"selector": selector}}


def claim(name: str, namespace: str, version: int = 1, config: JSON = None) -> JSON:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
    devices = {"requests": requests, **({"config": config} if config else {})}
    made = metadata(name, namespace, version)
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": made, "spec": {"devices": devices}}


def deep_claim(number: int, version: int = 1) -> AsText:
    """Return a claim with deeply nested parameters. It is text, because Python can hardly write such JSON."""
    config = [{"opaque": {"driver": "gpu.nvidia.com", "parameters": "@"}}]
    made, depth = claim(f"deep-{number}", NAMESPACE, version, config), DEPTHS[number % len(DEPTHS)]
    return AsText(made, json.dumps(made).replace('"@"', '{"a":' * depth + "1" + "}" * depth).encode())


def deep_pool(number: int, version: int = 1) -> AsText:
    """Return a Pool with lists in lists as `containers`, a field that policies read."""
    made = {
        "apiVersion": "sandbox.opensandbox.io/v1alpha1",
        "kind": "Pool",
        "metadata": metadata(f"deep-{number}", NAMESPACE, version),
        "spec": {"template": {"spec": {"containers": "@"}}},
    }
    depth = DEPTHS[number % len(DEPTHS)]
    return AsText(made, json.dumps(made).replace('"@"', "[" * depth + "]" * depth).encode())


def add_namespaces(server: ApiServer) -> None:
    server.objects[NAMESPACES_PATH] += [
        {"metadata": metadata(f"team-of-many-{number}")} for number in range(NAMESPACES)
    ]


def add_annotated_namespaces(server: ApiServer) -> None:
    text = {"example.org/notes": "x" * ANNOTATION_BYTES}
    made = [{"metadata": metadata(f"annotated-{number}", annotations=text)} for number in range(ANNOTATED)]
    server.objects[NAMESPACES_PATH] += made


def add_budgets(server: ApiServer) -> None:
    server.objects[BUDGETS_PATH] += [budget(number) for number in range(BUDGETS)]


def add_deep_objects(server: ApiServer) -> None:
    server.objects[CLAIMS_PATH] += [deep_claim(number) for number in range(DEEP // 2)]
    server.objects[POOLS_PATH] += [deep_pool(number) for number in range(DEEP // 2)]


def change_budgets(server: ApiServer, chance: random.Random, version: int) -> None:
    server.send(BUDGETS_PATH, event("MODIFIED", budget(chance.randrange(BUDGETS), version)))


def change_deep_objects(server: ApiServer, chance: random.Random, version: int) -> None:
    number = chance.randrange(DEEP // 2)
    for path, make in ((CLAIMS_PATH, deep_claim), (POOLS_PATH, deep_pool)):
        server.send(path, b'{"type": "MODIFIED", "object": ' + make(number, version).text + b"}\n")


def stored_policy(number: int, version: int = 1) -> JSON:
    """Return a policy of the largest size that an API server stores. claimgate never compiles it."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    expression = f"object.metadata.name != '{'x' * POLICY_BYTES}{version}'"
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]}
    made = metadata(f"large-{number}", version=version, uid=f"{number}", generation=version)
    return {"apiVersion": "claimgate.dev/v1alpha1", "kind": "ValidatingPolicy", "metadata": made, "spec": spec}


def add_stored_policies(server: ApiServer) -> None:
    server.refuses_writes = True  # refuses writes of `status`, which this API server does not have
    server.objects[POLICIES_PATH] += [stored_policy(number) for number in range(POLICIES)]


def change_stored_policies(server: ApiServer, chance: random.Random, version: int) -> None:
    server.send(POLICIES_PATH, event("MODIFIED", stored_policy(chance.randrange(POLICIES), version)))


def change_annotated_namespaces(server: ApiServer, chance: random.Random, version: int) -> None:
    text = {"example.org/notes": "y" * ANNOTATION_BYTES}
    made = {"metadata": metadata(f"annotated-{chance.randrange(ANNOTATED)}", version=version, annotations=text)}
    server.send(NAMESPACES_PATH, event("MODIFIED", made))


Add = Callable[[ApiServer], None]
Change = Callable[[ApiServer, random.Random, int], None]


@dataclass(frozen=True)
class View:
    """One row: the objects that fill a live view, what changes ten times a second, and flags of the server."""

    adds: tuple[Add, ...]
    changes: tuple[Change, ...]
    flags: tuple[str, ...] = ()

    def prepare(self, server: ApiServer) -> None:
        server.objects[CLAIMS_PATH].append(claim("shared", HONEST))
        for add in self.adds:
            add(server)

    def change(self, server: ApiServer, chance: random.Random, stop: threading.Event) -> None:
        version = 1_000
        while not stop.wait(1 / CHANGES_PER_S):
            version += 1
            for change in self.changes:
                change(server, chance, version)


VIEWS = {
    "live: 1,600 Namespaces, 250 KB of annotations": View((add_annotated_namespaces,), (change_annotated_namespaces,)),
    "live: 40,000 budgets, one changes 10 times a s": View((add_budgets,), (change_budgets,)),
    "live: 200 objects nested 1,000 deep, changing": View((add_deep_objects,), (change_deep_objects,)),
    "live: 250 stored policies of 1.3 MB, changing": View(
        (add_stored_policies,), (change_stored_policies,), ("--live-policies",)
    ),
    "live: 5,000 Namespaces, 40,000 budgets, 200 deep": View(
        (add_namespaces, add_budgets, add_deep_objects), (change_budgets, change_deep_objects)
    ),
}


def known(response: dict) -> str:
    """Return the error in an answer, or "". The answer needs none of the unreadable objects."""
    text = json.dumps(response)
    found = _UNKNOWN.search(text)
    return allowed(response) or (f"{found[0]!r} in {text[:300]}" if found else "")


def pod_with_claim(name: str) -> bytes:
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
    used = pod({**claims, "containers": [container("main", resources={"claims": [{"name": "gpu"}]})]})
    return review(used, namespace=HONEST)


def asked_by_victims() -> list[Question]:
    ports, probe = [{"containerPort": 8000}], {"httpGet": {"port": 8000}}
    vllm = {
        **container("vllm", ports=ports, readinessProbe=probe, resources=gpus(1)),
        "image": "vllm/vllm-openai:v0.9.1",
    }
    labels = {"app": "llm", "tier": "1"}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {**template({"containers": [vllm]}), "metadata": {"labels": labels}},
    }
    small = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "llm", "namespace": NAMESPACE},
        "spec": spec,
    }
    return [
        *questions(),
        Question("a claim of another namespace", "/validate", pod_with_claim("shared"), known),
        Question("a Deployment of the same namespace", "/validate", review(small), known),
    ]


def wait_until_ready(server: Server) -> list[str]:
    """Return an error if the lists do not arrive."""
    end, body = time.monotonic() + READY_S, b""
    while time.monotonic() < end:
        to = Connection(server.address.health_port, server.address.health_trust(), 10)
        try:
            answer = to.ask(b"GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n\r\n")
            body = answer.body
            if answer.code == 200 and b"not synced yet" not in body:
                return []
        except OSError:
            pass
        finally:
            to.close()
        time.sleep(0.2)
    return [f"not ready {READY_S:g} s after the start: {body.decode()[:200]}"]


def names(only: str) -> Iterator[str]:
    return (name for name in VIEWS if re.search(only, name))
