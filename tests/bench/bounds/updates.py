"""A user changes a param of 100 KB hundreds of times. Its parsed values must not stay.

The server polls a folder of objects often, in place of a watch.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import yaml

from tests.bench.bounds.calls import Connection, Prepared, uid
from tests.bench.bounds.memory import MB, look
from tests.bench.bounds.report import MEMORY_MB, Report
from tests.bench.bounds.reviews import JSON
from tests.bench.bounds.server import Server
from tests.bench.bounds.victims import questions
from webhook.facts.subject import SHIPPED, rules_of_package

UPDATES, EVERY_S, RELOAD_S = 400, 0.15, "0.05"
SIZE, GROWN_MB = 100_000, 15
SETTLED = 40
IDS = sorted(rule.id for package in SHIPPED.packages for rule in rules_of_package(package))
PARAM = "dra-claims"
"""The param of a shipped binding with a policy about every Pod with a claim."""


def param(number: int) -> JSON:
    """Return a param of 100 KB with lists of rules and assumptions about the cluster. Each number has a different
    param.
    """
    chosen = random.Random(number)
    ids = chosen.choices(IDS, k=SIZE // 60)
    names = {f"resource.team-{chosen.randrange(10**9)}": "example.com/gpu" for _ in range(SIZE // 200)}
    data = {"warn": " ".join(ids), "audit": "\n".join(reversed(ids)), "note": "x" * (SIZE // 5), **names}
    metadata = {"name": PARAM, "namespace": "claimgate-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def write(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / ".new"
    new.write_text(yaml.dump(param(number), Dumper=yaml.CSafeDumper))
    os.replace(new, folder / "param.yaml")  # noqa: PTH105 - as everywhere here


def measure(server: Server, folder: Path, report: Report) -> None:
    to, bodies = Connection(server.address.port, server.address.trust(), 10), questions()
    settled, slowest = 0.0, 0.0
    for number in range(UPDATES):
        write(folder, number)
        time.sleep(EVERY_S)
        for one in bodies:
            slowest = max(slowest, to.ask(Prepared(one.path, one.body, "5s").with_uid(uid(number))).elapsed_s)
        if number == SETTLED:
            settled = look(server.pid).pss / MB
    to.close()
    most = look(server.pid).pss / MB
    missed = [f"{most - settled:.0f} MB more"] if most - settled > GROWN_MB or most >= MEMORY_MB else []
    text = (
        f"PSS {settled:.0f} MB after {SETTLED}, {most:.0f} MB after {UPDATES}; slowest answer {slowest * 1000:.0f} ms"
    )
    report.row(f"a param of 100 KB, {UPDATES} times", text, missed)
