"""No request may delay another: `python -m tests.bench.bounds` measures this from outside, as an attacker would.

One server has the shipped policies and slow policies of a site, over TLS on loopback. Victims and attackers are
separate processes. Every section ends by itself. A missed target is printed and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.bounds import (
    attacks,
    connections,
    context,
    crowd_rows,
    cuts,
    growth,
    live_view,
    own_policies,
    rows,
    starts,
    updates,
)
from tests.bench.bounds.memory import MB, Sample, Sampler, look
from tests.bench.bounds.report import DIRECT_P99_MS, MEMORY_MB, Report
from tests.bench.bounds.server import ROOT, UVLOOP, Server, serving
from tests.bench.bounds.victims import questions

AFTER_S = 3.0
SECTIONS = ("starts", "victims", "connections", "crowds", "cuts", "live", "growth", "updates")
APART = {"starts", "live", "growth", "updates"}
"""Sections with separate servers"""
TOGETHER = {"issue": 1, "lists": 4, "texts": 2, "bytes": 2, "own": 2, "compiled": 1, "near": 1}
"""How many attacks of a group share a row. Each of the four attackers sends one of them."""


def flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bounds", description=__doc__)
    parser.add_argument("--section", action="append", choices=SECTIONS, help="only this section; repeatable")
    parser.add_argument(
        "--only", metavar="REGEX", default="", help="only attacks and lists with such a name, each alone"
    )
    parser.add_argument("--each", action="store_true", help="a row for each attack instead of several in one")
    parser.add_argument("--row-seconds", type=float, default=1.5, metavar="S", help="how long attackers of a row send")
    parser.add_argument(
        "--stalls",
        type=Path,
        metavar="FILE",
        help="write there what held the event loop for 10 ms and more, by row; the server then runs asyncio's loop, whose "
        f"times and memory are others, or uvloop if the name ends in {UVLOOP}",
    )
    parser.add_argument(
        "--tree",
        type=Path,
        metavar="FOLDER",
        default=ROOT,
        help="the checkout whose server the section `live` measures, as a control",
    )
    return parser.parse_args()


def planned(only: str, *, each: bool) -> list[tuple[str, list[attacks.Attack]]]:
    found = []
    for group, make in attacks.GROUPS.items():
        chosen = [one for one in make() if re.search(only, one.name)]
        size = 1 if each or only else TOGETHER[group]
        for start in range(0, len(chosen), size):
            together = chosen[start : start + size]
            found.append((" · ".join(_short(one.name, size) for one in together), together))
    return found


def _short(name: str, size: int) -> str:
    return name if size == 1 else name.removeprefix("own: ").removesuffix(", 3 MB")


def victims(server: Server, sampler: Sampler, chosen: argparse.Namespace, report: Report) -> None:
    report.section("victims", *rows.ABOUT)
    planning = planned(chosen.only, each=chosen.each)
    for attack in (one for _, together in planning for one in together):
        if fault := rows.check_small(server.address, attack):
            report.row(attack.name, "the row does not mean what it says", [fault])
    report.line(rows.HEADER)
    asked = questions()
    rows.warm(server, asked)
    rows.quiet(server, asked, chosen.row_seconds, report)
    for name, together in planning:
        rows.measure(server, name, together, asked, sampler, chosen.row_seconds, report)
    report.line(rows.lanes(server))


def hostile_connections(server: Server, sampler: Sampler, only: str, report: Report) -> None:
    """Measure victims during every attack on connections, TLS and HTTP."""
    report.section(
        "connections",
        f"as above, with a target of p99 < {DIRECT_P99_MS} ms; connections of the attackers may be cut or refused",
        rows.HEADER,
    )
    asked = questions()
    rows.warm(server, asked)
    for behaviour in connections.BEHAVIOURS:
        if re.search(only, behaviour.name):
            rows.measure_connections(server, behaviour, asked, sampler, report)
    time.sleep(AFTER_S)
    report.line(rows.lanes(server))
    report.line(f"memory {AFTER_S:g} s later: PSS {look(server.pid).pss / MB:.0f} MB")


def attacked(folder: Path, sections: set[str], chosen: argparse.Namespace, report: Report) -> list[tuple[str, Sample]]:
    """Run the sections that share a server, and return the server's largest memory."""
    places = own_policies.write(folder / "policies"), context.write(folder / "context")
    with (
        serving(folder / "server", [ROOT / "policies", places[0]], places[1], stalls=chosen.stalls) as server,
        Sampler(server.pid) as sampler,
    ):
        if "victims" in sections:
            victims(server, sampler, chosen, report)
        if "connections" in sections:
            hostile_connections(server, sampler, chosen.only, report)
        if "crowds" in sections:
            crowd_rows.measure(server, sampler, chosen.only, report)
        if "cuts" in sections:
            sampler.doing = "cut times"
            cuts.measure(server.address, report)
        return [sampler.peak()]


def viewed(folder: Path, chosen: argparse.Namespace, report: Report) -> list[tuple[str, Sample]]:
    """Measure victims while a user fills the live view, and return the largest memory of each server."""
    return [_viewed(folder, name, chosen, report) for name in live_view.begin(chosen.only, report)]


def _viewed(folder: Path, name: str, chosen: argparse.Namespace, report: Report) -> tuple[str, Sample]:
    tree = chosen.tree
    with live_view.cluster(folder / "cluster", name) as held:
        flags = "--kubeconfig", str(held.kubeconfig), *live_view.flags_of_row(name)
        with (
            serving(folder / "live", [tree / "policies"], [], *flags, tree=tree, stalls=chosen.stalls) as server,
            Sampler(server.pid) as sampler,
        ):
            live_view.measure(server, held, name, sampler, report)
            return sampler.peak()


def grown(folder: Path, only: str, report: Report) -> list[tuple[str, Sample]]:
    """Measure how answers get slower with longer lists, and return the server's largest memory. The server allows a
    minute for each review.
    """
    places = [ROOT / "policies"], context.write(folder / "context")
    with serving(folder / "patient", *places, "--timeout", "60") as server, Sampler(server.pid) as sampler:
        sampler.doing = "growth"
        rows.warm(server, questions())
        growth.measure(server, sampler, only, report)
        return [sampler.peak()]


def updated(folder: Path, report: Report) -> list[tuple[str, Sample]]:
    """Measure the memory of a server while a param that it watches changes again and again."""
    report.section("updates", "memory of the server while a user changes what its policies read")
    updates.write(folder / "params", 0)
    places = [ROOT / "policies"], [*context.write(folder / "context"), folder / "params"]
    with (
        serving(folder / "updates", *places, "--reload", updates.RELOAD_S) as server,
        Sampler(server.pid) as sampler,
    ):
        sampler.doing = "updates"
        rows.warm(server, questions())
        updates.measure(server, folder / "params", report)
        return [sampler.peak()]


def main() -> int:
    chosen, report = flags(), Report()
    sections, peaks = set(chosen.section or SECTIONS), []
    with tempfile.TemporaryDirectory() as name:
        if "starts" in sections:
            starts.measure(Path(name), report)
        if sections - APART:
            peaks += attacked(Path(name), sections, chosen, report)
        if "live" in sections:
            peaks += viewed(Path(name), chosen, report)
        if "growth" in sections:
            peaks += grown(Path(name), chosen.only, report)
        if "updates" in sections:
            peaks += updated(Path(name), report)
        memory(peaks, report)
    return report.summary()


def memory(peaks: list[tuple[str, Sample]], report: Report) -> None:
    report.section(
        "memory", f"PSS and RSS of the server and its children, the most of all of the above; target: < {MEMORY_MB} MB"
    )
    for what, peak in peaks:
        most = max(peak.pss, peak.main_rss) / MB
        of = f"RSS {peak.rss / MB:.0f} MB in {peak.processes} processes, first {peak.main_rss / MB:.0f} MB"
        report.row(what, f"PSS {peak.pss / MB:.0f} MB, {of}", [f"{most:.0f} MB"] if most >= MEMORY_MB else [])


if __name__ == "__main__":
    sys.exit(main())
