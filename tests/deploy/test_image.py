"""The Dockerfile makes an image that serves. Its steps are executed, and the result is started as in a cluster: with an
unprivileged user, a read-only root, and no packages of the build.
"""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import quick_yaml
from tests.deploy import image
from tests.deploy.image import Stage
from tests.release import IMAGE, IMAGE_FOLDERS, VERSION
from tests.server.serving import Pki

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
TLS = "/etc/claimgate/tls"
REVIEW = ROOT / "deploy/samples/reviews/03-batchsandbox-gpu-all.json"


def test_the_context_of_a_release_has_all_files_that_the_dockerfile_copies() -> None:
    copied = {
        name
        for word, rest in image.instructions(DOCKERFILE.read_text())
        if word == "COPY" and not rest.startswith("--from")
        for name in rest.split()[:-1]
    }
    assert copied <= {*IMAGE, *IMAGE_FOLDERS}
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = image.patterns((ROOT / ".dockerignore").read_text())
    assert [name for name in copied if image.is_left_out(name, ignored)] == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("webhook/cli.py", False),
        ("webhook/__pycache__", True),
        ("webhook/cel/__pycache__/x.pyc", True),
        ("docs/rules/README.md", False),
        ("docs/index.md", True),
        (".git/config", True),
        ("tests/conftest.py", True),
    ],
)
def test_the_docker_build_context_includes_the_right_files(path: str, expected: bool) -> None:
    assert image.is_left_out(path, image.patterns((ROOT / ".dockerignore").read_text())) is expected


def test_the_last_stage_is_unprivileged_and_named() -> None:
    last = DOCKERFILE.read_text().rpartition("\nFROM ")[2]
    words = dict(image.instructions(last))
    assert words["USER"] == "65532:65532"  # a number, because runAsNonRoot cannot check names
    assert "RUN" not in words
    for label, argument in (("version", "VERSION"), ("revision", "REVISION"), ("base.name", "PYTHON")):
        assert f'org.opencontainers.image.{label}="${{{argument}}}"' in words["LABEL"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    if reason := image.missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("image")
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)  # the user of the image may enter
    return image.build(DOCKERFILE, folder, {"VERSION": VERSION})


def ran(built: Stage, *arguments: str, code: int = 0) -> str:
    command = built.command(arguments, read_only=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.nightly
def test_the_image_has_the_command_line_and_no_build_tools(built: Stage) -> None:
    assert ran(built, *built.entrypoint, "version").startswith(f"claimgate {VERSION}\n")
    assert built.labels["org.opencontainers.image.version"] == VERSION
    assert built.labels["org.opencontainers.image.base.name"].startswith("python:3.")
    assert built.arguments == ("serve",)
    python = "/opt/claimgate/bin/python"
    for name in ("pip", "hatchling", "pytest"):
        assert "No module named" in ran(built, python, "-c", f"import {name}", code=1)
    assert not built.inside("/src").exists()
    assert ran(built, "id", "-u").strip() == "65532"
    assert "Read-only file system" in ran(built, "touch", "/opt/claimgate/new", code=1)
    assert "Read-only file system" in ran(built, "touch", "/tmp/new", code=1)


@pytest.mark.nightly
def test_every_module_is_compiled(built: Stage) -> None:
    """The root is read-only, so each start would compile other modules again."""
    packages = next(built.inside("/opt/claimgate/lib").glob("python*")) / "site-packages"
    modules = [path for name in ("webhook", "certs") for path in (packages / name).rglob("*.py")]
    assert len(modules) > 500
    assert [path for path in modules if not list((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))] == []


@pytest.fixture(scope="module")
def served(built: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Pki]]:
    """Start the image with the arguments of the Deployment, except those that need a cluster. Yield its log line when
    it is ready.
    """
    pki = Pki(tmp_path_factory.mktemp("tls"))
    pki.folder.chmod(0o755)
    for file in pki.folder.iterdir():
        file.chmod(0o644)
    deployment = next(quick_yaml.load_all((ROOT / "deploy/base/deployment.yaml").read_text()))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    here = {"--probe-port=8081": "--probe-port=0"}
    arguments = [here.get(each, each) for each in container["args"] if each != "--live"]
    command = built.command(
        [*built.entrypoint, *arguments, "--host=127.0.0.1", "--port=0"], read_only=True, mounts={pki.folder: TLS}
    )
    log = pki.folder / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stderr=stream, start_new_session=True)
    try:
        yield _ready(process, log), pki
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(inside[0]), signal.SIGTERM)
        assert process.wait(30) == 0, log.read_text()  # the first process of its namespace, as in a container
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _ready(process: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        for line in log.read_text().splitlines():
            if '"message": "ready"' in line:
                return json.loads(line)
        time.sleep(0.1)
    raise AssertionError(log.read_text())


@pytest.mark.nightly
def test_the_image_serves_with_a_read_only_root(served: tuple[dict[str, Any], Pki]) -> None:
    ready, pki = served
    end = time.monotonic() + 60
    while time.monotonic() < end:
        probed = httpx.get(f"http://127.0.0.1:{ready['probe_port']}/readyz?verbose")
        if probed.is_success:
            break
        time.sleep(0.1)
    assert probed.status_code == 200, probed.text
    trust = ssl.create_default_context(cafile=str(pki.folder / "ca.crt"))
    with httpx.Client(verify=trust, base_url=f"https://localhost:{ready['port']}") as client:
        answer = client.post("/mutate", content=REVIEW.read_bytes(), headers={"content-type": "application/json"})
    assert re.search(r"gpu-portable/all", answer.json()["response"]["status"]["message"])
