"""The wheel has the policies and samples, and is built with locked tools. Lock files name no host."""

import itertools
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
LOCKS = [f"requirements{part}.lock" for part in ("", "-dev", "-build", "-docs", "-ray")]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel without a network and without an isolated build environment."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-q",
        "-w",
        str(folder),
    ]
    subprocess.run([*build, str(ROOT)], check=True)
    return next(folder.glob("claimgate-*.whl"))


def test_the_wheel_holds_policies_samples_and_both_packages(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = [file.relative_to(ROOT / "policies") for file in (ROOT / "policies").rglob("*.yaml")]
    assert {f"webhook/_policies/{file}" for file in shipped} <= names
    assert "webhook/_samples/reviews/01-pod-with-claim.json" in names
    assert {"certs/__init__.py", "claimgate/__init__.py", "webhook/py.typed", "webhook/workloads/kinds.yaml"} <= names
    assert not [name for name in names if name.startswith(("tests/", "deploy/"))]


def test_the_wheel_works_alone(wheel, tmp_path):
    """The wheel runs in another folder with its own policies."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    review = "webhook/_samples/reviews/03-batchsandbox-gpu-all.json"
    assert "denied 400 BadRequest" in claimgate(tmp_path, "replay", review)
    assert "  webhook/_policies/gpu-portable/policy.yaml\n" in claimgate(tmp_path, "policies", "list")


def claimgate(folder, *arguments):
    code = (
        "import sys; sys.path.insert(0, '.'); from webhook.cli import run_command_line; run_command_line(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_have_hashes_and_no_host(lock):
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "--index-url" not in text
    for block in re.split(r"\n(?=\S)", text.strip()):
        assert PINNED.match(block), block
        assert "--hash=sha256:" in block, block


def pins(lock):
    return dict(PINNED.findall((ROOT / lock).read_text()))


def test_locks_agree_with_each_other():
    dev = pins("requirements-dev.lock")
    for lock in ("requirements.lock", "requirements-build.lock"):
        assert pins(lock).items() <= dev.items()


def test_every_declared_dependency_is_locked():
    declared = [*PROJECT["project"]["dependencies"], *itertools.chain(*EXTRAS.values())]
    declared = [one for one in declared if not one.startswith("claimgate[")]
    on_ray = pins("requirements-ray.lock").keys()
    assert {re.match(r"[a-z0-9-]+", one)[0] for one in declared} <= pins("requirements.lock").keys() | on_ray
    groups = PROJECT["dependency-groups"]
    wanted = [one for group in groups.values() for one in group if isinstance(one, str)]
    locked = pins("requirements-dev.lock").keys() | pins("requirements-docs.lock").keys() | on_ray
    assert {re.match(r"[a-z0-9-]+", one)[0] for one in wanted} <= locked


def test_every_dependency_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text()
    declared = text[text.index("dependencies = [") : text.index("[project.scripts]")].splitlines()
    named = [line for line in declared if line.startswith('  "')]
    assert len(named) > 10
    assert [line for line in named if " # " not in line] == []
