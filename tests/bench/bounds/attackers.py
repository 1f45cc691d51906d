"""Attackers: processes that send hostile bodies as fast as they are answered, and check the answers.

They have a lower priority than the victims and than the server's workers (`nice`). A busy client must not look like a
slow server: an attacker runs on another machine.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe

from tests.bench.bounds.attacks import Attack
from tests.bench.bounds.calls import Answer, Connection, Prepared, uid
from tests.bench.bounds.report import Missed, counted
from tests.bench.bounds.server import Address
from tests.bench.bounds.slow_expressions import EVALUATED
from tests.bench.bounds.victims import FORK, mixed_generations
from tests.bench.bounds.waiting import Stopwatch, Took

ATTACKERS, NICE = 4, 12
GRACE_S = 2.0
"""How long the client waits beyond the deadline of an answer, to measure the delay"""


@dataclass
class Heard:
    """Counts of the answers to attackers, and of errors in these answers.

    Attributes:
        faults: what was wrong, counted.
        waited: answers that were late only because the server waited for a processor.
    """

    answers: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    closest: float = 0.0
    longest: int = 0

    def add(self, other: Heard) -> None:
        self.answers += other.answers
        self.faults += other.faults
        self.waited += other.waited
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.closest = max(self.closest, other.closest)
        self.longest = max(self.longest, other.longest)

    def missed(self) -> list[str]:
        """Return the missed targets. Answers that were late only because the machine was busy are a separate target."""
        shown = [f"attackers: {counted(self.faults, 6)}"] if self.faults else []
        return [*shown, *([Missed(f"attackers: {counted(self.waited, 6)}", is_waiting=True)] if self.waited else [])]

    def note(self, attack: Attack, sent: bytes, answer: Answer, took: Took, timeout_s: float) -> None:
        """Count an answer, and its error if it is late, incomplete, or not allowed in this row. The client's own wait
        for a processor is not counted as time.
        """
        self.slowest_s = max(self.slowest_s, took.seconds)
        self.closest = max(self.closest, took.answer_s / timeout_s)
        self.longest = max(self.longest, len(answer.body))
        kind, fault = judge(attack, sent, answer)
        self.answers[kind] += 1
        if took.answer_s > timeout_s:
            (self.faults if took.work_s > timeout_s else self.waited)[f"late to {attack.name}"] += 1
        if fault:
            self.faults[fault] += 1


def judge(attack: Attack, sent: bytes, answer: Answer) -> tuple[str, str]:
    """Return the kind of this answer, and the error in it or ""."""
    response = answer.review(sent)
    if not attack.is_review and (response is None or response["allowed"]):
        return str(answer.code), "" if answer.is_refusal() else f"HTTP {answer.code} is no refusal with a Status"
    if attack.may_refuse and answer.is_refusal():
        return str(answer.code), ""
    if response is None:
        return str(answer.code), f"HTTP {answer.code} is no AdmissionReview"
    if mixed := mixed_generations(answer.body.decode()):
        return "mixed", mixed
    if response["allowed"]:
        return "allowed", "" if attack.may_allow else "allowed by a policy that fails closed"
    message = response.get("status", {}).get("message", "")
    is_wrong = attack.is_ignored and f"(policy {attack.policy})" in message and EVALUATED not in message
    return "denied", "denied by the error of a policy that is ignored" if is_wrong else ""


class Attackers:
    """Runs several processes. Each process sends one of these attacks again and again."""

    def __init__(self, address: Address, attacks: list[Attack], seconds: float, timeouts_s: tuple[float, ...]) -> None:
        bodies = [attack.make() for attack in attacks]
        self.size = max(map(len, bodies))
        gc.freeze()
        self._running = []
        for i in range(ATTACKERS):
            ours, theirs = FORK.Pipe(duplex=False)
            which = i % len(attacks)
            args = (address, attacks[which], bodies[which], seconds, timeouts_s[i % len(timeouts_s)], i, theirs)
            process = FORK.Process(target=_run, args=args, daemon=True)
            process.start()
            self._running.append((process, ours))

    def heard(self) -> Heard:
        heard = Heard()
        for process, pipe in self._running:
            heard.add(pipe.recv())
            process.join()
        return heard


def _run(
    address: Address, attack: Attack, body: bytes, seconds: float, timeout_s: float, first: int, pipe: Pipe
) -> None:
    os.nice(NICE)
    heard, end = Heard(), time.perf_counter() + seconds
    to, watch = Connection(address.port, address.trust(), timeout_s + GRACE_S), Stopwatch(address.pid)
    body = body.replace(b'"mallory"', b'"mallory-%d"' % first)  # separate users, so none waits for another
    prepared = [Prepared(path, body, f"{timeout_s:g}s") for path in attack.paths]
    number = 0xA0000000 + (first << 24)
    while time.perf_counter() < end:
        if attack.vary is not None:
            prepared = [Prepared(attack.paths[number % len(attack.paths)], attack.vary(number), f"{timeout_s:g}s")]
        send_one(to, watch, attack, prepared[number % len(prepared)], number, timeout_s, heard)
        number += 1
    to.close()
    pipe.send(heard)


def send_one(
    to: Connection, watch: Stopwatch, attack: Attack, prepared: Prepared, number: int, timeout_s: float, heard: Heard
) -> None:
    sent = uid(number)
    try:
        with watch.timing() as took:
            answer = to.ask(prepared.with_uid(sent))
    except OSError as error:
        heard.answers["none"] += 1
        heard.faults[f"no answer to {attack.name} ({type(error).__name__})"] += 1
        time.sleep(0.05)
    else:
        heard.note(attack, sent, answer, took, timeout_s)
