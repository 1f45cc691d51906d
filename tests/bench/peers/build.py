"""Builds Gatekeeper and Kyverno for this machine with Go, from their published modules, once.

Sources and programs are in a cache folder outside of the checkout (CLAIMGATE_PEERS, or `claimgate-peers` in
$XDG_CACHE_HOME). Go verifies each module against its checksum database. `go install` cannot install a module that
replaces others, so the module is copied out of Go's module cache, and built with the versions of its go.mod.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Module:
    name: str
    path: str
    version: str
    package: str


GATEKEEPER = Module("Gatekeeper", "github.com/open-policy-agent/gatekeeper/v3", "v3.23.1", ".")
KYVERNO = Module("Kyverno", "github.com/kyverno/kyverno", "v1.19.1", "./cmd/kyverno")


@dataclass(frozen=True)
class Built:
    """A program, and the folder of its sources, which has its CustomResourceDefinitions."""

    program: Path
    sources: Path


def cache() -> Path:
    if chosen := os.environ.get("CLAIMGATE_PEERS"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "claimgate-peers"


def missing() -> str:
    """Return why nothing can be built on this machine, or ""."""
    return "" if shutil.which("go") else "no go on the PATH: install Go 1.26 or newer to build Gatekeeper and Kyverno"


def built(module: Module) -> Built:
    """Build the program if it does not exist, which takes a few minutes on two cores.

    Raises:
        SystemExit: Go could not build it.
    """
    folder = cache() / f"{module.name.lower()}-{module.version}"
    made = Built(folder / "program", folder / "sources")
    if not made.program.exists():
        print(f"building {module.name} {module.version} in {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        downloaded = json.loads(_go("mod", "download", "-json", f"{module.path}@{module.version}"))
        shutil.copytree(downloaded["Dir"], made.sources)
        for path in (made.sources, *made.sources.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)  # Go's module cache is read-only, and so is the copy
        _go("build", "-mod=mod", "-o", str(made.program), module.package, at=made.sources)
    return made


def _go(*arguments: str, at: Path | None = None) -> str:
    environment = {**os.environ, "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
    done = subprocess.run(["go", *arguments], cwd=at, env=environment, text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"go {' '.join(arguments)} failed{f' in {at}' if at else ''}: {done.stdout[-2000:]}")
    return done.stdout
