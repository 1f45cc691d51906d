"""Victims: small reviews of other users, at a bounded rate over four connections, and the probes of a kubelet.

Each victim is a separate process, because threads would also wait for Python's lock. Each answer has the time that
client and server waited for a processor. A victim that waits sends fewer reviews. The reviews that it would have sent
also count, each with the rest of the wait. Otherwise a stall of seconds would be one sample among thousands.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess

from tests.bench import traffic
from tests.bench.bounds.calls import GET_HEALTH, UID, Connection, Prepared, come_from, uid
from tests.bench.bounds.server import Address
from tests.bench.bounds.waiting import Stopwatch, Took

CONNECTIONS, PER_SECOND = 4, 200
TIMEOUT_S = 5.0
ADDRESS = "127.0.0.2"
"""Attackers have another address, because handshakes are counted by address."""
HEALTH_EVERY_S, FRESH_EVERY_S = 0.1, 1.0
GENERATION = re.compile(r"([a-z]+)-generation (\d+)")
Stop = Callable[[float], bool]
"""Waits at most this number of seconds. Returns whether a victim must stop."""
FORK = multiprocessing.get_context("fork")


@dataclass
class Seen:
    times: list[Took] = field(default_factory=list)
    answered: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    health: list[Took] = field(default_factory=list)
    fresh: list[Took] = field(default_factory=list)
    generations: dict[str, list[tuple[float, int]]] = field(default_factory=dict)

    def add(self, other: Seen) -> None:
        self.times += other.times
        self.answered += other.answered
        self.lost += other.lost
        self.health += other.health
        self.fresh += other.fresh
        for of, steps in other.generations.items():
            self.generations[of] = sorted([*self.generations.get(of, []), *steps])


@dataclass(frozen=True)
class Question:
    """One small review, and a check that returns the error in its answer or ""."""

    name: str
    path: str
    body: bytes
    fault: Callable[[dict], str]

    def prepared(self) -> Prepared:
        return Prepared(self.path, self.body, "10s")


def allowed(response: dict) -> str:
    return "" if response["allowed"] else f"denied: {response['status']['message'][:80]}"


def mixed_generations(text: str) -> str:
    """Return an error if one answer has different generations."""
    found: dict[str, set[str]] = {}
    for of, number in GENERATION.findall(text):
        found.setdefault(of, set()).add(number)
    return "".join(f"{of} of generations {sorted(numbers)}" for of, numbers in found.items() if len(numbers) > 1)


def questions() -> list[Question]:
    """Return reviews of a plain Pod, a Pod with a GPU and a Pod with a claim, each of 6 KB. Each Pod is validated and
    mutated.
    """
    bodies = {kind: traffic.review(f"{kind} Pod", 0) for kind in ("plain", "GPU", "claim")}
    return [
        Question(name, path, body.replace(json.loads(body)["request"]["uid"].encode(), UID), allowed)
        for path in ("/validate", "/mutate")
        for name, body in bodies.items()
    ]


class Victims:
    """Runs the processes of the victims."""

    def __init__(self, address: Address, asked: list[Question], per_second: int = PER_SECOND) -> None:
        period_s = CONNECTIONS / per_second
        asking = [partial(_ask, address, asked, number, period_s) for number in range(CONNECTIONS)]
        self._running = [_started(work) for work in (*asking, partial(_probe, address), partial(_probe_anew, address))]
        for _, pipe in self._running:
            pipe.poll(TIMEOUT_S)

    def seen(self) -> Seen:
        """Stop the victims, and return all their answers."""
        for _, pipe in self._running:
            pipe.send("stop")
        whole = Seen()
        for process, pipe in self._running:
            while not isinstance(found := pipe.recv(), Seen):
                pass
            whole.add(found)
            process.join()
        return whole


def _started(work: Callable[[Seen, Stop], None]) -> tuple[BaseProcess, Pipe]:
    pipe, theirs = FORK.Pipe()
    process = FORK.Process(target=_run, args=(work, theirs), daemon=True)
    process.start()
    return process, pipe


def _run(work: Callable[[Seen, Stop], None], pipe: Pipe) -> None:
    gc.disable()
    come_from(ADDRESS)
    seen = Seen()
    pipe.send("started")
    work(seen, pipe.poll)
    pipe.recv()
    pipe.send(seen)


def _ask(address: Address, asked: list[Question], first: int, period_s: float, seen: Seen, stop: Stop) -> None:
    prepared, number, due = [one.prepared() for one in asked], first, time.perf_counter() + first * period_s / 4
    to, watch = Connection(address.port, address.trust(), TIMEOUT_S), Stopwatch(address.pid)
    while not stop(max(0.0, due - time.perf_counter())):
        with watch.timing() as took:
            _ask_one(to, asked[number % len(asked)], prepared[number % len(asked)], uid(number), seen)
        seen.times.append(took)
        seen.times += [took.less(passed * period_s) for passed in range(1, ceil(took.seconds / period_s))]
        number += CONNECTIONS
        due = max(due + period_s, time.perf_counter())


def _ask_one(to: Connection, one: Question, prepared: Prepared, sent: bytes, seen: Seen) -> None:
    try:
        answer = to.ask(prepared.with_uid(sent))
    except OSError as error:
        seen.lost[f"{one.name}: no answer ({type(error).__name__})"] += 1
        return
    response = answer.review(sent)
    fault = f"HTTP {answer.code} or no review" if response is None else one.fault(response)
    if fault:
        seen.lost[f"{one.name}: {fault}"] += 1
    else:
        seen.answered += 1
        _generations(seen, answer.body)


def _generations(seen: Seen, body: bytes) -> None:
    if b"-generation " in body:
        for of, number in GENERATION.findall(body.decode()):
            steps = seen.generations.setdefault(of, [])
            if not steps or steps[-1][1] != int(number):
                steps.append((time.monotonic(), int(number)))


def _probe(address: Address, seen: Seen, stop: Stop) -> None:
    to, watch = Connection(address.health_port, address.health_trust(), TIMEOUT_S), Stopwatch(address.pid)
    while not stop(HEALTH_EVERY_S):
        seen.health.append(_health(to, watch))


def _probe_anew(address: Address, seen: Seen, stop: Stop) -> None:
    """Send probes. A kubelet opens a new connection for each probe."""
    watch = Stopwatch(address.pid)
    while not stop(FRESH_EVERY_S):
        to = Connection(address.health_port, address.health_trust(), TIMEOUT_S)
        seen.fresh.append(_health(to, watch))
        to.close()


def _health(to: Connection, watch: Stopwatch) -> Took:
    """Return the time of a probe, or TIMEOUT_S if there is no valid answer."""
    answer = None
    with watch.timing() as took, suppress(OSError):
        answer = to.ask(GET_HEALTH)
    return took if answer is not None and answer.code == 200 else Took(TIMEOUT_S)
