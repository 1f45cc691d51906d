"""`--server`: a running webhook gives the same answers as the core here, over verified TLS."""

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs import keep
from certs.store import Folder
from webhook.cli import run

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "deploy" / "samples"
REVIEWS = ROOT / "tests" / "data" / "reviews"
CONTEXT = str(SAMPLES / "context")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    keep.issue(Folder(folder), ["localhost"], now=datetime.now(UTC), days=keep.Days())
    return folder


@pytest.fixture(scope="module")
def server(certificates):
    """`claimgate serve` in a process of its own; gives its address."""
    log = certificates / "log"
    arguments = ["serve", "--host", "127.0.0.1", "--port", "0", "--drain", "0", "--context", CONTEXT]
    files = ["--tls-cert", str(certificates / "tls.crt"), "--tls-key", str(certificates / "tls.key")]
    with log.open("w") as stream:
        process = subprocess.Popen([sys.executable, "-m", "webhook", *arguments, *files], stderr=stream, cwd=ROOT)
    try:
        yield f"https://localhost:{ready(log)}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def ready(log):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if '"message": "ready"' in line:
                return json.loads(line)["port"]
        time.sleep(0.05)
    pytest.fail(f"not ready: {log.read_text()}")


@pytest.mark.parametrize("phase", ["auto", "mutate", "validate"])
@pytest.mark.parametrize(
    "fixtures", [SAMPLES / "reviews", SAMPLES / "manifests" / "volcano-job.yaml", REVIEWS], ids=lambda path: path.name
)
def test_the_server_gives_the_same_answers(fixtures, phase, server, certificates, tmp_path):
    here, there = tmp_path / "here.ndjson", tmp_path / "there.ndjson"
    reviews = [str(file) for file in ([fixtures] if fixtures.is_file() else sorted(fixtures.glob("*.json")))]
    run(["replay", *reviews, "--phase", phase, "--context", CONTEXT, "-o", f"ndjson={here}"])
    trust = ["--server", server, "--ca", str(certificates / "ca.crt")]
    run(["replay", *reviews, "--phase", phase, *trust, "-o", f"ndjson={there}"])
    local, remote = ([json.loads(line) for line in file.read_text().splitlines()] for file in (here, there))
    assert len(local) == len(reviews)
    for one, other in zip(local, remote, strict=True):
        assert {**one, "decisions": []} == other


def test_decisions_stay_in_the_server(server, certificates, capsys):
    review = str(SAMPLES / "reviews" / "06-trainjob-unknown-runtime.json")
    assert run(["replay", review, "--server", server, "--ca", str(certificates / "ca.crt")]) == 0
    assert "not evaluated" not in capsys.readouterr().out


def test_a_server_of_another_authority_is_not_trusted(server, certificates, tmp_path, capsys):
    keep.issue(Folder(tmp_path), ["localhost"], now=datetime.now(UTC), days=keep.Days())
    review = str(SAMPLES / "reviews" / "01-pod-with-claim.json")
    assert run(["replay", review, "--server", server, "--ca", str(tmp_path / "ca.crt")]) == 2
    assert "certificate verify failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("http://localhost:1", "is not an https address", id="plain text"),
        pytest.param("localhost:8443", "is not an https address", id="no scheme"),
        pytest.param("https://localhost:1", "--server: https://localhost:1/mutate: ", id="nobody listens"),
        pytest.param("https://localhost:x", "is not an https address", id="no port"),
    ],
)
def test_addresses_that_cannot_be_used(url, message, capsys):
    assert run(["replay", str(SAMPLES / "reviews" / "01-pod-with-claim.json"), "--server", url]) == 2
    assert message in capsys.readouterr().err


def test_certificates_that_cannot_be_used(tmp_path, capsys):
    review = str(SAMPLES / "reviews" / "01-pod-with-claim.json")
    (tmp_path / "bad.crt").write_text("nothing")
    for file in ("absent.crt", "bad.crt"):
        assert run(["replay", review, "--server", "https://localhost:1", "--ca", str(tmp_path / file)]) == 2
        assert f"--ca: {tmp_path / file}: " in capsys.readouterr().err
