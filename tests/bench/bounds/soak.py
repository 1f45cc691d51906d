"""Ten minutes of everything at once: `python -m tests.bench.bounds.soak --minutes 10`.

The server gets ordinary reviews, hostile reviews in a random order, and hostile connections. New policies and objects
come every 5 s, and a worker process is killed every 10 s. No request of the victims may be lost. No answer may mix two
generations. The memory at the end must equal the memory at the beginning.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from tests.bench.bounds import context, generations, own_policies, plateau, rows
from tests.bench.bounds.attackers import GRACE_S, NICE, Heard, send_one
from tests.bench.bounds.attacks import Attack, attacks
from tests.bench.bounds.calls import Connection, Prepared
from tests.bench.bounds.connections import BEHAVIOURS
from tests.bench.bounds.memory import MB, Sample, Sampler, family
from tests.bench.bounds.report import MEMORY_MB, Report, counted
from tests.bench.bounds.server import ROOT, Address, Server, serving
from tests.bench.bounds.victims import FORK, Seen, Victims, questions
from tests.bench.bounds.waiting import Stopwatch

RELOAD_S, KILL_S, PART_S, HOLD_S = 5.0, 10.0, 30.0, 5.0
HOSTILE, TIMES, TIMEOUT_S, PER_SECOND = 2, 3, 2.0, 100
LAG_S, GROWN, GROWN_MB = 15.0, 1.1, 15


def _hostile(address: Address, seconds: float, index: int, pipe: Pipe) -> None:
    """Send attacks in a random order. Each attack is repeated a few times."""
    os.nice(NICE)
    heard, end, chosen = Heard(), time.monotonic() + seconds, random.Random(index)
    mixed = Attack("generation, 3 MB", generations.heavy, may_allow=False, paths=("/validate",))
    to, watch = Connection(address.port, address.trust(), TIMEOUT_S + GRACE_S), Stopwatch(address.pid)
    number = index << 24
    while time.monotonic() < end:
        for attack in (chosen.choice(attacks()), mixed):
            body = attack.make()  # making the body takes so long that the server ends the idle connection
            to.close_if_ended()
            for path in attack.paths * TIMES:
                if time.monotonic() < end:
                    number += 1
                    prepared = Prepared(path, body, f"{TIMEOUT_S:g}s")
                    send_one(to, watch, attack, prepared, number, TIMEOUT_S, heard)
    pipe.send(heard)


def _holding(address: Address, seconds: float, index: int, pipe: Pipe) -> None:
    """Run every attack on connections, one after the other."""
    os.nice(NICE)
    counts, end, turn = Counter(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        counts += BEHAVIOURS[turn % len(BEHAVIOURS)].run(address, index + turn, time.monotonic() + HOLD_S)
        turn += 1
    pipe.send(counts)


@dataclass
class Disturbance:
    """A thread that writes new generations of files and kills workers."""

    server: Server
    written: generations.Generations
    kills: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        started, kills_due = time.monotonic(), KILL_S
        while not self.stop.wait(RELOAD_S):
            self.written.write()
            if time.monotonic() - started >= kills_due:
                kills_due += KILL_S
                self._kill()

    def _kill(self) -> None:
        workers = family(self.server.pid)[1:]
        if workers:
            try:
                os.kill(random.choice(workers), signal.SIGKILL)
            except ProcessLookupError:
                return
            self.kills += 1


def _start(what: object, address: Address, seconds: float, index: int) -> tuple[object, Pipe]:
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=what, args=(address, seconds, index, theirs), daemon=True)  # type: ignore[arg-type]
    process.start()
    return process, ours


def soak(server: Server, written: generations.Generations, seconds: float, report: Report) -> None:
    asked = [*questions(), generations.question()]
    rows.warm(server, asked[:-1])
    hostile = [_start(_hostile, server.address, seconds, index + 1) for index in range(HOSTILE)]
    holding = [_start(_holding, server.address, seconds, 0)]
    report.line(rows.HEADER)
    parts, end = [], time.monotonic() + seconds
    with Sampler(server.pid, 0.5) as sampler:
        disturbance = Disturbance(server, written)
        while (left := end - time.monotonic()) > 1 and server.is_alive:
            parts.append(_part(server, asked, min(PART_S, left), sampler, report))
        disturbance.stop.set()
        disturbance.thread.join()
        heard, counts = Heard(), Counter()
        for _, pipe in hostile:
            heard.add(pipe.recv())
        for _, pipe in holding:
            counts += pipe.recv()
    _totals(parts, heard, counts, disturbance, report)
    _memory([sample for _, sample in sampler.samples], report)
    _generations(parts, written, report)


def _part(server: Server, asked: list, seconds: float, sampler: Sampler, report: Report) -> Seen:
    sampler.doing = f"{len(sampler.samples)}"
    victims = Victims(server.address, asked, PER_SECOND)
    time.sleep(seconds)
    seen = victims.seen()
    memory = sampler.samples[-1][1]
    missed = [f"lost {counted(seen.lost)}"] if seen.lost else []
    text = f"{'':>6} {rows.victims_text(seen)}  {memory.pss / MB:>4.0f} | {memory.processes} processes"
    report.row(f"{seconds:.0f} s", text, missed)
    return seen


def _totals(parts: list[Seen], heard: Heard, counts: Counter, disturbance: Disturbance, report: Report) -> None:
    alive = [] if disturbance.server.is_alive else ["the server died"]
    report.row("victims", f"{sum(part.answered for part in parts)} answered", alive)
    report.row("attackers", f"{rows.heard_text(heard)} ms", heard.missed())
    report.line(f"connections: {counted(counts, 9)}")
    report.line(rows.lanes(disturbance.server))
    report.line(f"{disturbance.kills} worker processes killed, {disturbance.written.number} generations written")


def _memory(samples: list[Sample], report: Report) -> None:
    """Compare the memory of the last third with the first third. The first tenth is left out, because much is used for
    the first time then.
    """
    used = samples[len(samples) // 10 :]
    third = max(1, len(used) // 3)
    first, last = (sum(one.pss for one in part) / len(part) / MB for part in (used[:third], used[-third:]))
    peak = max(one.pss for one in samples) / MB
    missed = [f"grew from {first:.0f} to {last:.0f} MB"] if last > first * GROWN + GROWN_MB else []
    missed += [f"peak {peak:.0f} MB"] if peak >= MEMORY_MB else []
    report.row("memory", f"PSS first third {first:.0f} MB, last third {last:.0f} MB, peak {peak:.0f} MB", missed)


def _generations(parts: list[Seen], written: generations.Generations, report: Report) -> None:
    """Report the delay until victims saw a new generation. Victims have already checked that each answer is from one
    generation.
    """
    for of in ("policy", "params"):
        steps = sorted(step for part in parts for step in part.generations.get(of, []))
        lags = []
        for number, at in list(written.written.items())[1:]:
            seen = next((when for when, found in steps if found >= number), None)
            lags += [seen - at] if seen is not None else []
        back = sum(after[1] < before[1] for before, after in pairwise(steps))
        newest = max((number for _, number in steps), default=0)
        missed = (
            [f"only generation {newest} of {written.number} was seen"]
            if newest < written.number - LAG_S / RELOAD_S
            else []
        )
        missed += [f"a reload took {max(lags):.1f} s"] if max(lags, default=0) > LAG_S else []
        report.row(
            f"{of} generations", f"{newest} seen, slowest after {max(lags, default=0):.1f} s, {back} steps back", missed
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bounds.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--never-repeating",
        metavar="FILE",
        type=Path,
        help="instead: reviews without a name that comes twice, and samples of memory as lines of JSON in FILE",
    )
    chosen, report = parser.parse_args(), Report()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if chosen.never_repeating:
            plateau.run(chosen.minutes, chosen.never_repeating, folder, report)
            return report.summary()
        written = generations.Generations(folder / "generations")
        policies = [ROOT / "policies", own_policies.write(folder / "own"), written.policies]
        held = [*context.write(folder / "context"), written.context]
        with serving(folder / "server", policies, held, "--reload", "1") as server:
            report.section(
                "soak", f"{chosen.minutes:g} minutes; reloads every {RELOAD_S:g} s, a worker killed every {KILL_S:g} s"
            )
            soak(server, written, chosen.minutes * 60, report)
    return report.summary()


if __name__ == "__main__":
    sys.exit(main())
