"""With `--ray`, a local Ray with two workers writes the same bytes as a single process, also from an object store.

`make ray` installs Ray into .venv-ray and runs these tests. Ray and the object store use only the loopback address.
"""

import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: `make ray` installs it and runs these tests")
pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
TEAM = "examples/research-team"
RAY = ("--ray", "local", "--jobs", "2")
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{0}}}\nspec:\n  containers:\n  - {{name: c, resources: {{limits: {{gpu: {1}}}}}}}\n"
BUCKET = "s3://manifests/team"


def claimgate(*arguments, environment=None, timeout=600):
    command = [sys.executable, "-m", "webhook", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, capture_output=True, timeout=timeout, check=False
    )
    return done.returncode, done.stdout, done.stderr


def ray_processes():
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if "/ray/core/src/" in line or "ray::" in line]


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    """Write manifests that are read in several parts, and files that cannot be read."""
    folder = tmp_path_factory.mktemp("manifests")
    for number in range(5):
        texts = [POD.format(f"{number}-{at}", "all" if at % 7 == 0 else "2") for at in range(40)]
        (folder / f"f{number}.yaml").write_text("---\n".join(texts))
    (folder / "large.yaml").write_text("---\n".join(POD.format(f"large-{at}", "all") for at in range(12_000)))
    (folder / "broken.yaml").write_text("---\n".join([POD.format("first", "all"), "a: [\n", POD.format("last", "all")]))
    (folder / "latin1.yaml").write_bytes(b"name: \xe9\n")
    shutil.copytree(ROOT / TEAM, folder / "team")
    return folder


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Write rotated audit logs. One log is cut off, and one has a line that is not an event."""
    folder = tmp_path_factory.mktemp("logs")
    for number in range(4):
        lines = [json.dumps(event(number * 1000 + at)) for at in range(300)]
        lines[7] = "not an event" if number == 1 else lines[7]
        data = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
        file = folder / f"audit-{number}.log.gz"
        file.write_bytes(data[:-900] if number == 2 else data)
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    return folder


def event(number):
    gpus = "all" if number % 3 == 0 else "1"
    spec = {"containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"gpu": gpus}}}]}
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "stage": "ResponseComplete",
        "auditID": str(number),
        "verb": "create",
        "user": {"username": f"user-{number % 5}"},
        "objectRef": {"resource": "pods", "namespace": f"team-{number % 4}", "name": f"p{number}", "apiVersion": "v1"},
        "responseStatus": {"code": 201},
        "requestObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": f"team-{number % 4}"},
            "spec": spec,
        },
    }


AUDITS = {
    "lines": ["-o", "ndjson"],
    "text, with --context-is-whole": ["-o", "text", "--context-is-whole"],
    "HTML, with queues": ["-o", "html", "--advice"],
    "only one rule, as SARIF": ["-o", "sarif", "--rule", "gpu-portable"],
    "files left out": ["-o", "json", "--exclude", "large.yaml", "--include", "f*.yaml"],
}


@pytest.mark.parametrize("row", AUDITS)
def test_an_audit_writes_what_a_single_process_writes(row, manifests):
    """The reports are equal, except for the head of an HTML report, which has the time and the command line."""
    code, *alone = claimgate("audit", manifests, *AUDITS[row])
    assert code in (1, 2)
    assert alone[0]
    again, *parted = claimgate("audit", manifests, *AUDITS[row], *RAY)
    assert (again, [*map(without_head, parted)]) == (code, [*map(without_head, alone)])


def without_head(text):
    return re.sub(rb'<details id="run".*?</details>', b"", text)


@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_backtest_writes_what_a_single_process_writes(format_, logs):
    arguments = ("backtest", logs, "--against", "examples/first-policy", "-o", format_)
    alone = claimgate(*arguments)
    assert alone[0] == 2
    assert b"cut off here" in alone[2]
    assert claimgate(*arguments, *RAY) == alone


def test_a_baseline_works_on_ray(manifests, tmp_path):
    baseline = tmp_path / "baseline.json"
    assert claimgate("audit", manifests / "f1.yaml", "--write-baseline", baseline, *RAY)[0] == 0
    alone = claimgate("audit", manifests, "--baseline", baseline, "-o", "ndjson")
    assert claimgate("audit", manifests, "--baseline", baseline, "-o", "ndjson", *RAY) == alone


@pytest.fixture(scope="module")
def store(manifests, logs):
    """Yield the environment variables of an object store with the manifests and the logs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    variables = {
        "FSSPEC_S3_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        import s3fs

        filled = s3fs.S3FileSystem(key="test", secret="test", endpoint_url=variables["FSSPEC_S3_ENDPOINT_URL"])
        wait_until(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None)
        filled.mkdir("manifests")
        filled.put(str(manifests), "manifests/team", recursive=True)
        for log in sorted(logs.iterdir()):
            filled.put(str(log), f"manifests/logs/{log.name}")
        yield variables
    finally:
        server.terminate()
        server.wait(20)


def wait_until(holds, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(0.1)
    pytest.fail(f"not within {seconds} s")


def test_an_object_store_gives_what_the_folder_gives(store, manifests):
    alone = claimgate("audit", manifests, "-o", "ndjson", "--context-is-whole")
    found = claimgate("audit", BUCKET, "-o", "ndjson", "--context-is-whole", *RAY, environment=store)
    assert found[0] == alone[0]
    for mine, theirs in zip(found[1:], alone[1:], strict=True):
        assert mine.decode().replace(BUCKET, str(manifests)) == theirs.decode()


def test_logs_of_an_object_store_give_what_the_folder_gives(store, logs):
    alone = claimgate("backtest", logs, "-o", "json")
    code, told, errors = claimgate("backtest", "s3://manifests/logs", "-o", "json", *RAY, environment=store)
    assert code == alone[0]
    assert told.decode().replace("s3://manifests/logs", str(logs)) == alone[1].decode()
    assert errors.decode().replace("s3://manifests/logs", str(logs)) == alone[2].decode()


REFUSED = {
    "standard input": (["-", "--ray", "local"], "--ray: standard input cannot be read by other machines"),
    "rendering": ([TEAM, "--ray", "local", "--render"], "--ray: cannot be used together with --render"),
    "not an address": ([TEAM, "--ray", "here"], "--ray: `here` is not an address of Ray; expected `local`"),
    "no server at the address": (
        [TEAM, "--ray", "127.0.0.1:1"],
        "--ray: `127.0.0.1:1` cannot be reached: connection refused",
    ),
    "no cluster of this machine": ([TEAM, "--ray", "auto"], "--ray: no Ray at `auto`"),
    "a store without a driver": (["gs://bucket/x", "--ray", "local"], "gs://bucket/x: cannot be read: please install"),
    "an unknown store": (["nosuch://x", "--ray", "local"], "nosuch://x: cannot be read: protocol not known"),
    "an address without files": (
        ["s3://manifests/absent", "--ray", "local"],
        "s3://manifests/absent: no such file or folder",
    ),
}


@pytest.mark.parametrize("row", REFUSED)
def test_invalid_use_of_ray_is_reported_in_one_line(row, store):
    arguments, told = REFUSED[row]
    code, _, errors = claimgate("audit", *arguments, environment=store)
    assert (code, "Traceback" in errors.decode()) == (2, False)
    [line] = [line for line in errors.decode().splitlines() if line.startswith("error: ")]
    assert told in line


def test_after_ctrl_c_the_report_is_complete_and_no_process_is_left(manifests, tmp_path):
    """While the command runs, the processes of Ray listen only on the loopback address."""
    before = set(ray_processes())
    out = tmp_path / "out.ndjson"
    command = [sys.executable, "-m", "webhook", "audit", str(manifests), "-o", f"ndjson={out}", *RAY]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True) as process:
        wait_until(lambda: out.exists() and out.stat().st_size > 0)
        started = {line.split()[0] for line in ray_processes()} - {line.split()[0] for line in before}
        assert started
        assert addresses_of(started) <= {"127.0.0.1", "[::ffff:127.0.0.1]", "[::1]"}
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    assert b"interrupted after" in errors
    assert b"Traceback" not in errors
    assert all(json.loads(line) for line in out.read_text().splitlines())
    wait_until(lambda: not {line.split()[0] for line in ray_processes()} & started)


def addresses_of(pids):
    listed = subprocess.run(["ss", "-tlnpH"], capture_output=True, text=True, check=True).stdout
    return {
        line.split()[3].rpartition(":")[0] for line in listed.splitlines() if any(f"pid={pid}," in line for pid in pids)
    }
