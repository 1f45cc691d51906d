"""With `--server`, a running webhook gives the same answers as the local evaluation, over verified TLS."""

import base64
import json
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from certs import keep
from certs.store import Folder
from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import Phase
from webhook.cli import run_command_line
from webhook.commands.remote import RemoteWebhook
from webhook.errors import CallError

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
    """Yield the address of `claimgate serve`, which runs in a separate process."""
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
    run_command_line(["replay", *reviews, "--phase", phase, "--context", CONTEXT, "-o", f"ndjson={here}"])
    trust = ["--server", server, "--ca", str(certificates / "ca.crt")]
    run_command_line(["replay", *reviews, "--phase", phase, *trust, "-o", f"ndjson={there}"])
    local, remote = ([json.loads(line) for line in file.read_text().splitlines()] for file in (here, there))
    assert len(local) == len(reviews)
    for one, other in zip(local, remote, strict=True):
        assert {**one, "decisions": [], "furtherDecisions": []} == other


def test_decisions_stay_in_the_server(server, certificates, capsys):
    review = str(SAMPLES / "reviews" / "06-trainjob-unknown-runtime.json")
    assert run_command_line(["replay", review, "--server", server, "--ca", str(certificates / "ca.crt")]) == 0
    assert "not evaluated" not in capsys.readouterr().out


def test_a_server_of_another_authority_is_not_trusted(server, certificates, tmp_path, capsys):
    keep.issue(Folder(tmp_path), ["localhost"], now=datetime.now(UTC), days=keep.Days())
    review = str(SAMPLES / "reviews" / "01-pod-with-claim.json")
    assert run_command_line(["replay", review, "--server", server, "--ca", str(tmp_path / "ca.crt")]) == 2
    err = capsys.readouterr().err
    assert "/mutate: certificate verify failed" in err
    assert "_ssl" not in err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("http://localhost:1", "is not an https address", id="plain text"),
        pytest.param("localhost:8443", "is not an https address", id="no scheme"),
        pytest.param(
            "https://localhost:1", "--server: https://localhost:1/mutate: connection refused\n", id="no server listens"
        ),
        pytest.param("https://localhost:x", "is not an https address", id="no port"),
    ],
)
def test_addresses_that_cannot_be_used(url, message, capsys):
    assert run_command_line(["replay", str(SAMPLES / "reviews" / "01-pod-with-claim.json"), "--server", url]) == 2
    assert message in capsys.readouterr().err


def test_certificates_that_cannot_be_used(tmp_path, capsys):
    review = str(SAMPLES / "reviews" / "01-pod-with-claim.json")
    (tmp_path / "bad.crt").write_text("nothing")
    for file, reason in (
        ("absent.crt", ": no such file or directory"),
        ("bad.crt", " does not contain a PEM certificate"),
    ):
        assert (
            run_command_line(["replay", review, "--server", "https://localhost:1", "--ca", str(tmp_path / file)]) == 2
        )
        assert capsys.readouterr().err == f"error: --ca: {tmp_path / file}{reason}\n"


POD = attributes_of_object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})


def answered(code=200, text=None, **response):
    body = json.dumps({"response": {"uid": POD.uid, **response}}) if text is None else text
    client = httpx.Client(
        base_url="https://h", transport=httpx.MockTransport(lambda _: httpx.Response(code, text=body))
    )
    with closing(RemoteWebhook(client)) as door:
        return door.answer(POD, Phase.MUTATE)


@pytest.mark.parametrize(
    ("code", "text", "message"),
    [
        pytest.param(500, "", "an empty body", id="an empty body"),
        pytest.param(400, '{"kind": "Status", "message": "no uid"}', "no uid", id="a Status"),
        pytest.param(404, "<html>\n not here", "<html> not here", id="a page of HTML"),
        pytest.param(200, "{}", "not an answer to a review", id="an object without a response"),
        pytest.param(200, "[1]", "not an answer to a review", id="a list"),
        pytest.param(200, "nothing", "not an answer to a review", id="not JSON"),
        pytest.param(200, '{"response": {"uid": "x", "allowed": true}}', "found `x`", id="another uid"),
    ],
)
def test_an_invalid_answer_of_a_server_is_an_error(code, text, message):
    with pytest.raises(CallError, match=message):
        answered(code, text)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param("!", id="not base64"),
        pytest.param(base64.b64encode(b"{").decode(), id="not JSON"),
        pytest.param(
            base64.b64encode(b'[{"op": "remove", "path": "/absent"}]').decode(), id="a patch that does not apply"
        ),
    ],
)
def test_patches_that_cannot_be_used(patch):
    with pytest.raises(CallError, match="not an answer to a review"):
        answered(allowed=True, patch=patch, patchType="JSONPatch")


def test_a_denial_without_a_message_gets_the_default_of_the_api_server():
    status = answered(allowed=False).status
    assert (status.code, status.reason, status.message) == (400, "", "denied without explanation")


def test_a_request_without_an_answer_exits_with_3(tmp_path, capsys, monkeypatch):
    client = httpx.Client(
        base_url="https://h", transport=httpx.MockTransport(lambda _: httpx.Response(500, text="down"))
    )
    monkeypatch.setattr(RemoteWebhook, "connect", lambda *_: RemoteWebhook(client))
    review = SAMPLES / "reviews" / "01-pod-with-claim.json"
    assert run_command_line(["replay", str(review), "--server", "https://h"]) == 2
    assert capsys.readouterr().err == f"error: {review}:1:1: the server answered HTTP 500: down\n"
