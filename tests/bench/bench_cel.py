"""Measures eight expressions on an AdmissionReview of 8 KB: time, compile time, memory, and the ratio to Python.

    python -m tests.bench.bench_cel            prints a table
    python -m tests.bench.bench_cel --max 4    exits 1 when all eight together take more than 4 times the plain Python

Times are medians over interleaved rounds. "plain" is the same expression as a Python function, without checks, costs
and CEL's errors. No CEL engine in Python can be faster. Only ratios can be compared between machines.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from webhook.apimachinery.quantity import parse_quantity
from webhook.cel import CostMeter, Environment, compiled_engine
from webhook.cel.types import BOOL, DYN, STRING, Structure, list_of, map_of, object_type

EXPRESSIONS: dict[str, str] = {
    "a claims, one of two names": (
        "object.spec.resourceClaims.all(c, has(c.resourceClaimName) != has(c.resourceClaimTemplateName))"
    ),
    "b exactly one not empty": (
        "object.spec.resourceClaims.all(c, (has(c.resourceClaimName) && c.resourceClaimName != '')"
        " != (has(c.resourceClaimTemplateName) && c.resourceClaimTemplateName != ''))"
    ),
    "c container claims exist": (
        "object.spec.containers.all(c, !has(c.resources.claims) || c.resources.claims.all(r,"
        " object.spec.resourceClaims.exists(p, p.name == r.name)))"
    ),
    "d message": (
        "'pod ' + object.metadata.name + ' in ' + object.metadata.namespace + ' has '"
        " + string(size(object.spec.containers)) + ' containers'"
    ),
    "e six patterns": (
        "object.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')"
        " && object.spec.containers.all(c, c.image.matches('^registry[.]example[.]com/.+:[0-9.]+$'))"
    ),
    "f five quantities": (
        "object.spec.containers.all(c, quantity(c.resources.limits.memory).isLessThan(quantity('512Gi')))"
    ),
    "g nested loops, 5 x 20": (
        "object.spec.containers.all(c, c.env.exists(e, e.name == 'RANK') && c.env.filter(e, e.value != '').size() > 0"
        " && c.env.map(e, e.name).all(n, n != 'FORBIDDEN'))"
    ),
    "h groups": "!('system:masters' in request.userInfo.groups) && request.operation in ['CREATE', 'UPDATE']",
}

CONSTANT_BUDGET = 100_000


def review() -> dict[str, Any]:
    """Return the review of a Pod with five containers of 20 variables each, about 8 KB."""
    containers = [
        {
            "name": f"worker-{number}",
            "image": f"registry.example.com/team/train:{number}.4.2",
            "env": [
                {"name": f"VARIABLE_{index}", "value": f"value-{index}-of-a-long-configuration"} for index in range(18)
            ]
            + [{"name": "WORLD_SIZE", "value": "5"}, {"name": "RANK", "value": str(number)}],
            "resources": {"limits": {"memory": f"{64 + number}Gi", "cpu": "8"}, "claims": [{"name": "gpu"}]},
        }
        for number in range(5)
    ]
    claims = [
        {"name": "gpu", "resourceClaimTemplateName": "one-gpu"},
        {"name": "net", "resourceClaimName": "shared-nic"},
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-0", "namespace": "research", "labels": {"team": "a"}},
        "spec": {"containers": containers, "resourceClaims": claims},
    }
    request = {
        "uid": "0f4c",
        "operation": "CREATE",
        "userInfo": {"username": "ann", "groups": ["system:authenticated", "research"]},
        "object": pod,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def plain() -> dict[str, Callable[[dict[str, Any]], Any]]:
    name = re.compile("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    image = re.compile("^registry[.]example[.]com/.+:[0-9.]+$")
    limit = parse_quantity("512Gi")

    def exactly_one(claim: dict[str, Any]) -> bool:
        return (claim.get("resourceClaimName", "") != "") != (claim.get("resourceClaimTemplateName", "") != "")

    def claims_exist(pod: dict[str, Any]) -> bool:
        known = pod["spec"]["resourceClaims"]
        return all(
            any(claim["name"] == wanted["name"] for claim in known)
            for container in pod["spec"]["containers"]
            for wanted in container["resources"].get("claims", ())
        )

    def loops(container: dict[str, Any]) -> bool:
        env = container["env"]
        ranked = any(each["name"] == "RANK" for each in env)
        return ranked and len([e for e in env if e["value"] != ""]) > 0 and all(e["name"] != "FORBIDDEN" for e in env)

    functions: list[Callable[[dict[str, Any]], Any]] = [
        lambda a: all(
            ("resourceClaimName" in c) != ("resourceClaimTemplateName" in c)
            for c in a["object"]["spec"]["resourceClaims"]
        ),
        lambda a: all(exactly_one(c) for c in a["object"]["spec"]["resourceClaims"]),
        lambda a: claims_exist(a["object"]),
        lambda a: (
            f"pod {a['object']['metadata']['name']} in {a['object']['metadata']['namespace']}"
            f" has {len(a['object']['spec']['containers'])} containers"
        ),
        lambda a: (
            name.search(a["object"]["metadata"]["name"]) is not None
            and all(image.search(c["image"]) is not None for c in a["object"]["spec"]["containers"])
        ),
        lambda a: all(
            parse_quantity(c["resources"]["limits"]["memory"]) < limit for c in a["object"]["spec"]["containers"]
        ),
        lambda a: all(loops(c) for c in a["object"]["spec"]["containers"]),
        lambda a: (
            "system:masters" not in a["request"]["userInfo"]["groups"]
            and a["request"]["operation"] in ("CREATE", "UPDATE")
        ),
    ]
    return dict(zip(EXPRESSIONS, functions, strict=True))


def environment() -> Environment:
    user = Structure("UserInfo", {"username": STRING, "groups": list_of(STRING), "extra": map_of(STRING, DYN)})
    request = Structure("Request", {"operation": STRING, "userInfo": object_type("UserInfo"), "dryRun": BOOL})
    return Environment(
        variables={"object": DYN, "oldObject": DYN, "request": object_type("Request")},
        structures={"UserInfo": user, "Request": request},
    )


def microseconds(run: Callable[[], object], seconds: float) -> float:
    """Return the time of one run: the median of several batches."""
    run()
    start = time.perf_counter()
    run()
    once = max(time.perf_counter() - start, 1e-7)
    count = max(int(seconds / 7 / once), 1)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            run()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times) * 1e6


def measure(seconds: float, rounds: int) -> list[tuple[str, float, float, float, float]]:
    """Return a row for each expression: name, µs, µs of plain Python, µs to compile, and bytes of memory."""
    body = review()
    activation = {"object": body["request"]["object"], "oldObject": None, "request": body["request"]}
    by_hand, engine, world = plain(), compiled_engine(), environment()
    rows = []
    for label, source in EXPRESSIONS.items():
        program = engine.compile(source, world)
        function = by_hand[label]
        assert program.evaluate(activation, CostMeter()) == function(activation), label
        ours, theirs = [], []
        for _ in range(rounds):
            meter = CostMeter(budget=10**18)
            ours.append(microseconds(lambda p=program, m=meter: p.evaluate(activation, m), seconds))
            theirs.append(microseconds(lambda f=function: f(activation), seconds))
        compiling = microseconds(lambda s=source: engine.compile(s, world), seconds)
        rows.append((label, statistics.median(ours), statistics.median(theirs), compiling, held(source, world)))
    return rows


def held(source: str, world: Environment) -> float:
    """Return how many bytes of memory one compiled expression uses."""
    engine = compiled_engine()
    engine.compile(source, world)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    programs = [engine.compile(source, world) for _ in range(20)]
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(programs)


def main() -> int:
    parser = argparse.ArgumentParser(description="time the eight expressions of the CEL issue")
    parser.add_argument("--seconds", type=float, default=0.15, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max", type=float, help="fail above this ratio to plain Python")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.seconds, options.rounds)
    ours, theirs = sum(row[1] for row in rows), sum(row[2] for row in rows)
    if options.json:
        print(json.dumps({"rows": rows, "sum": ours, "plain": theirs, "ratio": ours / theirs}))
    else:
        print(f"object: {len(json.dumps(review()))} bytes")
        print(f"{'':26}{'µs':>9}{'plain':>9}{'ratio':>7}{'compile µs':>12}{'bytes':>8}")
        for label, mine, other, compiling, size in rows:
            print(f"{label:26}{mine:9.2f}{other:9.2f}{mine / other:7.2f}{compiling:12.0f}{size:8.0f}")
        print(f"{'sum':26}{ours:9.2f}{theirs:9.2f}{ours / theirs:7.2f}")
    return 1 if options.max is not None and ours / theirs > options.max else 0


if __name__ == "__main__":
    sys.exit(main())
