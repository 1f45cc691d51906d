"""A headless Chromium driven over WebDriver: `chromium` and `chromedriver` as Debian installs them."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def is_there() -> bool:
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Browser:
    """One session of a browser. A script is the body of a function, and may return a promise."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client = client
        self._session = session

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._client.post(f"/session/{self._session}{path}", json=body).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise AssertionError(f"{path}: {answer['error']}: {answer['message']}")
        return answer

    def open(self, address: str) -> None:
        self._post("/url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        wrapped = f"const done = arguments[arguments.length - 1]; (async (...args) => {{{script}}})(...arguments).then(done, error => done(`failed: ${{error}}`))"
        return self._post("/execute/async", {"script": wrapped, "args": list(arguments)})

    def wait(self, script: str, seconds: float = 20) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.run(f"return Boolean({script})"):
                return
            time.sleep(0.05)
        raise AssertionError(f"not true after {seconds} seconds: {script}")

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self._post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, width: int, scheme: str) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def picture(self, file: Path) -> None:
        made = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(made["data"]))

    def log(self) -> list[str]:
        entries = self._post("/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]


@contextmanager
def browser() -> Iterator[Browser]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [shutil.which("chromedriver") or "chromedriver", f"--port={port}"]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
                _wait_for(client)
                switches = [*SWITCHES, f"--user-data-dir={profile}"]
                chosen = {
                    "goog:chromeOptions": {"args": switches},
                    "goog:loggingPrefs": {"browser": "ALL"},
                    "timeouts": {"script": 60000},
                }
                made = client.post("/session", json={"capabilities": {"alwaysMatch": chosen}}).json()["value"]
                session = made["sessionId"]
                yield Browser(client, session)
                client.delete(f"/session/{session}")
        finally:
            driver.terminate()
            driver.wait(timeout=20)


def _wait_for(client: httpx.Client) -> None:
    for _ in range(200):
        try:
            if client.get("/status").json()["value"]["ready"]:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("chromedriver does not answer")
