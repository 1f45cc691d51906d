"""Measures an audit of many objects by claimgate and gator: objects a second, and memory.

The objects are the public manifests of tests/data/manifests, repeated with unique names, as files of a thousand
documents. The 16 CEL policies have three validations each, and match every kind.

gator (the program in GATOR, or in PATH) gets the same expressions as constraint templates with K8sNativeValidation. It
gets fewer objects, because it holds all objects in memory. gator reports only violations, so its row is compared with
the format text. The other rows are for ndjson, which lists 16 results for each object.

The last row is a backtest of one audit log that is a gigabyte as gzip. Each event has a public manifest, and text that
does not compress, like uids, tokens and digests.

    python -m tests.bench.bench_audit --objects 100000 --check    exits 1 when a goal is missed
    python -m tests.bench.bench_audit --log-mb 0                  leaves out the log, which takes minutes
"""

from __future__ import annotations

import argparse
import base64
import gzip
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz.yaml_readers import corpus
from webhook.yamltext import yamlfile

MANIFESTS: Final = Path(__file__).parents[1] / "data" / "manifests"
POLICIES: Final = 16
VALIDATIONS: Final = (
    "!has(object.metadata.labels) || object.metadata.labels.all(k, k != 'forbidden-{0}')",
    "!has(object.metadata.name) || size(object.metadata.name) < 25{0}",
    "!has(object.metadata.annotations) || object.metadata.annotations.all(k, !k.endsWith('.invalid/{0}'))",
)
MEMORY_GOAL_MB, GATOR_GOAL, JOBS_GOAL = 300, 3.0, 1.6
OF_GATOR: Final = 20_000
_MARK = re.compile(r"^---(?=\s|$).*\n?", re.MULTILINE)
_NAME = re.compile(r"^(metadata:\n(?:  .*\n)*?  name: *)['\"]?([a-z0-9.-]+)['\"]?", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    wall_s: float
    processor_s: float
    peak_mb: float


def manifests() -> list[str]:
    """Return the public manifests as texts that gator also accepts. Each has a name to which a number can be added."""
    documents = (part for text in corpus(MANIFESTS) for part in _MARK.split(text))
    return [each for each in documents if _NAME.search(each) and "\napiVersion:" in f"\n{each}"]


def write_objects(folder: Path, count: int) -> int:
    """Write files of a thousand objects each, and return their size in bytes."""
    size = 0
    numbered = enumerate(itertools.islice(itertools.cycle(manifests()), count))
    for at, objects in itertools.groupby(numbered, key=lambda each: each[0] // 1000):
        texts = [_NAME.sub(rf"\g<1>\g<2>-{number}", text, count=1).strip("\n") for number, text in objects]
        file = folder / f"objects-{at:04}.yaml"
        file.write_text("\n---\n".join(texts) + "\n")
        size += file.stat().st_size
    return size


def write_policies(folder: Path) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    for number in range(POLICIES):
        spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": _validations(number)}
        binding = {"policyName": f"p{number}", "validationActions": ["Deny"]}
        api_version = "admissionregistration.k8s.io/v1"
        texts = [
            yamlfile.dump({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": inner})
            for kind, name, inner in (
                ("ValidatingAdmissionPolicy", f"p{number}", spec),
                ("ValidatingAdmissionPolicyBinding", f"b{number}", binding),
            )
        ]
        (folder / f"p{number}.yaml").write_text("---\n".join(texts))


def write_constraints(folder: Path) -> None:
    for number in range(POLICIES):
        kind = f"Bench{number}"
        code = [{"engine": "K8sNativeValidation", "source": {"validations": _validations(number)}}]
        target = {"target": "admission.k8s.gatekeeper.sh", "code": code}
        template = {
            "apiVersion": "templates.gatekeeper.sh/v1",
            "kind": "ConstraintTemplate",
            "metadata": {"name": kind.lower()},
            "spec": {"crd": {"spec": {"names": {"kind": kind}}}, "targets": [target]},
        }
        constraint = {
            "apiVersion": "constraints.gatekeeper.sh/v1beta1",
            "kind": kind,
            "metadata": {"name": f"c{number}"},
        }
        (folder / f"c{number}.yaml").write_text("---\n".join(map(yamlfile.dump, (template, constraint))))


def _validations(number: int) -> list[dict[str, str]]:
    return [{"expression": text.format(number % 10), "message": "no"} for text in VALIDATIONS]


def measured(command: Sequence[str], codes: Sequence[int] = (0, 1)) -> Run:
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            errors.seek(0)
            raise SystemExit(f"{command[:2]} ended with {process.returncode}: {errors.read()[-800:].decode()}")
    return Run(wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def audit(objects: Path, policies: Path, jobs: int = 1, report: str = "ndjson") -> Run:
    program = ["-m", "webhook", "audit", str(objects), "--only", str(policies), "--jobs", str(jobs), "-o", report]
    return measured([sys.executable, *program])


def rows(count: int, gator: str | None) -> Iterator[tuple[str, float, float, str]]:
    """Yield rows for the table. Each row has a name, the figure, the goal, and a note."""
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place, name) for name in ("objects", "few", "policies", "constraints")}
        for folder in folders.values():
            folder.mkdir()
        size = write_objects(folders["objects"], count)
        write_policies(folders["policies"])
        one = audit(folders["objects"], folders["policies"])
        yield "peak memory in MB", one.peak_mb, MEMORY_GOAL_MB, f"{count} objects, {size >> 20} MB of YAML"
        two = audit(folders["objects"], folders["policies"], jobs=2)
        yield "objects a second", count / one.wall_s, 0, f"{count / one.processor_s:.0f} a processor second"
        yield (
            "times as quick with --jobs 2",
            one.wall_s / two.wall_s,
            JOBS_GOAL,
            f"{two.wall_s:.1f} s, {one.wall_s:.1f} s",
        )
        if gator:
            write_objects(folders["few"], OF_GATOR)
            write_constraints(folders["constraints"])
            yield from _beside(gator, folders)


def write_log(file: Path, size_mb: int) -> int:
    """Write an audit log of this size in MB as gzip, and return its number of events."""
    objects = [each for text in manifests() for each in yamlfile.load(text)]
    random, count = Random(29), 0
    with file.open("wb") as stored, gzip.GzipFile(fileobj=stored, mode="wb", compresslevel=1, mtime=0) as stream:
        while stored.tell() < size_mb << 20:
            value = objects[count % len(objects)].value
            noise = base64.b64encode(random.randbytes(2500)).decode()
            stream.write(_event(value, count, noise) + b"\n")
            count += 1
    return count


def _event(value: dict[str, object], number: int, noise: str) -> bytes:
    """Return an audit event: one of a thousand users creates the object."""
    group, _, version = str(value["apiVersion"]).rpartition("/")
    resource = {"apiGroup": group, "apiVersion": version, "resource": f"{value['kind']}s".lower()}
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": str(number),
        "stage": "ResponseComplete",
        "verb": "create",
        "user": {"username": f"user-{number % 1000}", "extra": {"token": [noise]}},
        "objectRef": {**resource, "namespace": f"team-{number % 300}", "name": f"o-{number}"},
        "responseStatus": {"code": 201},
        "requestObject": value,
    }
    return json.dumps(event).encode()


def backtest_row(size_mb: int) -> tuple[str, float, float, str]:
    with tempfile.TemporaryDirectory() as place:
        policies, log = Path(place, "policies"), Path(place, "audit.log.gz")
        policies.mkdir()
        write_policies(policies)
        count = write_log(log, size_mb)
        run = measured([sys.executable, "-m", "webhook", "backtest", str(log), "--only", str(policies), "-o", "json"])
    note = f"{count} events, {count / run.processor_s:.0f} a processor second"
    return f"peak memory in MB, {size_mb} MB log", run.peak_mb, MEMORY_GOAL_MB, note


def _beside(gator: str, folders: dict[str, Path]) -> Iterator[tuple[str, float, float, str]]:
    """Run an audit of claimgate and one of gator in turn, and yield a row for each."""
    ours, theirs = [], []
    for _ in range(3):
        ours.append(audit(folders["few"], folders["policies"], report="text"))
        theirs.append(
            measured([gator, "test", "-f", str(folders["few"]), "-f", str(folders["constraints"]), "-o", "json"])
        )
    mine, other = (min(each.processor_s for each in runs) for runs in (ours, theirs))
    note = f"{OF_GATOR} objects: {OF_GATOR / mine:.0f} and {OF_GATOR / other:.0f} a processor second, "
    memory = f"{max(each.peak_mb for each in ours):.0f} and {max(each.peak_mb for each in theirs):.0f} MB"
    yield "times as quick as gator", other / mine, GATOR_GOAL, note + memory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--log-mb", type=int, default=1024, help="size of the audit log of the last row, 0 for no log")
    parser.add_argument("--check", action="store_true")
    chosen = parser.parse_args()
    gator = os.environ.get("GATOR") or shutil.which("gator")
    missed = 0
    logs = [chosen.log_mb] if chosen.log_mb else []
    for name, figure, goal, note in itertools.chain(rows(chosen.objects, gator), map(backtest_row, logs)):
        is_missed = figure > goal if "memory" in name else figure < goal
        missed += is_missed
        print(f"{name:32} {figure:10.1f}  goal {goal:6.1f}  {'missed' if is_missed else 'ok':7} {note}", flush=True)
    if not gator:
        print("gator is not there: name it with GATOR", file=sys.stderr)
    return int(chosen.check and missed > 0)


if __name__ == "__main__":
    sys.exit(main())
