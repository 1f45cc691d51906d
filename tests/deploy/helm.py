"""Calls helm and kubectl for tests. Without a tool, the skipped test says how to get it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import quick_yaml
from tests.e2e.apiserver import assets

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
NAMESPACE = "claimgate-system"
_HOW = {
    "helm": "go install helm.sh/helm/v3/cmd/helm@v3.19.0, or set HELM to one",
    "kubectl": "set KUBEBUILDER_ASSETS to a folder with it",
}


def tool(name: str) -> str:
    places = (os.environ.get(name.upper(), ""), str(assets() / name), name)
    found = next((path for place in places if place and (path := shutil.which(place))), "")
    if not found:
        pytest.skip(f"no {name}: {_HOW[name]}")
    return found


def helm(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([tool("helm"), *arguments], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def template(values: Sequence[str] = (), code: int = 0, namespace: str = NAMESPACE) -> subprocess.CompletedProcess[str]:
    """Render the chart with these values of `--set`, and without the Pod of `helm test`."""
    given = [word for value in values for word in ("--set", value)]
    place = ["--namespace", namespace, "--kube-version", "1.36.2", "--skip-tests"]
    return helm("template", "claimgate", str(CHART), *place, *given, code=code)


def rendered(*values: str, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    return [found for found in quick_yaml.load_all(template(values, namespace=namespace).stdout) if found]


@cache
def kustomized(folder: str) -> list[dict[str, Any]]:
    done = subprocess.run([tool("kubectl"), "kustomize", DEPLOY / folder], capture_output=True, check=True)
    return [found for found in quick_yaml.load_all(done.stdout) if found]
