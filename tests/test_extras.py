"""`pipx install .` is small and runs everything that needs only files. Other commands name the extra to install.

An interpreter runs with only a folder of the wheel and its packages without extras. No network is needed.
"""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.page_blocks import PAGES
from tests.rows import some_quickly
from webhook.cli import EXTRAS, hint_for_missing_module
from webhook.typer_application import VERBS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MEGABYTE = 1 << 20
MOST_MB = 25
SERVE = LIVE = "in a checkout, pipx install --force '.[serve,live]'"
CELPY, RAY, OTEL = (
    f"in a checkout, pipx install --force '.[serve,live,{extra}]'" for extra in ("celpy", "ray", "otel")
)
BROKEN = str(ROOT / "examples/research-team/broken/mpijob-slots.yaml")
REVIEW = str(ROOT / "deploy/samples/reviews/03-batchsandbox-gpu-all.json")
POLICY = str(ROOT / "examples/first-policy")
CLUSTER = str(ROOT / "examples/research-team/cluster")

WORKS = {
    "version": (["version"], 0, "claimgate "),
    "replay": (["replay", REVIEW], 1, "denied 400 BadRequest"),
    "audit": (["audit", BROKEN], 1, "training-job/slots-for-ranks"),
    "audit, as SARIF": (["audit", BROKEN, "-o", "sarif"], 1, '"ruleId": "training-job/slots-for-ranks"'),
    "audit, as HTML": (["audit", BROKEN, "-o", "html"], 1, "training-job/slots-for-ranks"),
    "test": (["test", POLICY], 0, "passed"),
    "simulate": (["simulate", BROKEN, "--context", CLUSTER], 1, "allreduce-slots"),
    "explain": (["explain", "gpu-portable/all"], 0, "gpu-portable/all"),
    "policies": (["policies", "check", POLICY], 0, ""),
    "queues": (["queues", CLUSTER], 0, ""),
    "config": (["config", "show"], 0, ""),
    "completion": (["completion", "bash"], 0, "_claimgate_completion"),
    "cel": (["cel", "1 + 1"], 0, "2"),
    "webhook-config": (["webhook-config", "--service", "a/b"], 0, "ValidatingWebhookConfiguration"),
    "backtest": (["backtest", "--help"], 0, "audit log"),
    "why": (["why", "--help"], 0, "does not run"),
    "rollout": (["rollout", "--help"], 0, "does not deny yet"),
}
NEEDS = {
    "serve": (["serve", "--tls-cert", "a", "--tls-key", "b"], SERVE),
    "demo": (["demo"], SERVE),
    "ui": (["ui", "--port", "0"], SERVE),
    "certs": (["certs", "issue", "--dir", "certificates"], SERVE),
    "replay, to a server": (["replay", REVIEW, "--server", "https://127.0.0.1:1"], SERVE),
    "audit, of a cluster": (["audit", "--live"], LIVE),
    "simulate, in a cluster": (["simulate", BROKEN, "--live"], LIVE),
    "webhook-config, of a cluster": (["webhook-config", "--live"], LIVE),
    "queues, of a cluster": (["queues", "--live"], LIVE),
    "why": (["why", "job/train"], LIVE),
    "audit, on Ray": (["audit", BROKEN, "--ray", "local"], RAY),
    "audit, of an object store": (["audit", "s3://bucket/folder", "--ray", "local"], RAY),
    "backtest, on Ray": (["backtest", BROKEN, "--ray", "local"], RAY),
    "replay, by the other engine": (["replay", REVIEW, "--cel-engine", "celpy"], CELPY),
}


def closure(requirements):
    """Return the distributions that pip would install, by name."""
    found = {}
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", requirement.name).lower()
        if name in found:
            continue
        found[name] = importlib.metadata.distribution(requirement.name)
        waiting += [(Requirement(text), "") for text in found[name].requires or ()]
    return found


def size_mb(distributions):
    files = (file for each in distributions.values() for file in each.files or () if file.suffix != ".pyc")
    return sum(Path(file.locate()).stat().st_size for file in files if Path(file.locate()).is_file()) / MEGABYTE


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder, built = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("built")
    wheel = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", wheel, str(built)], cwd=ROOT, check=True, capture_output=True)
    zipfile.ZipFile(next(built.glob("*.whl"))).extractall(folder)
    for each in closure(PROJECT["dependencies"]).values():
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            (folder / top).symlink_to(each.locate_file(top))
    return folder


def claimgate(installed, folder, *arguments):
    """Run claimgate in an interpreter that can import only the standard library and the folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KUBE"))}
    environment |= {"PYTHONPATH": str(installed), "HOME": str(folder), "COLUMNS": "120"}
    command = [sys.executable, "-S", "-m", "webhook", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("row", some_quickly(WORKS, 4))
def test_verbs_that_read_files_need_no_extra(row, installed, tmp_path):
    arguments, code, told = WORKS[row]
    done = claimgate(installed, tmp_path, *arguments)
    assert (done.returncode, "Error" in done.stderr) == (code, False), done.stdout + done.stderr
    assert told in done.stdout


@pytest.mark.parametrize("row", some_quickly(NEEDS, 4))
def test_a_command_that_needs_an_extra_names_it_in_one_line(row, installed, tmp_path):
    arguments, command = NEEDS[row]
    done = claimgate(installed, tmp_path, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.splitlines()
    if arguments[0] == "serve":  # the server writes a log line
        lines = [f"error: {json.loads(line)['error']}" for line in lines]
    told = [line for line in lines if line.startswith("error: ")]
    assert len(told) == 1
    assert re.fullmatch(r"error: this needs the package \w+, which is not installed: (.*)", told[0])[1] == command
    assert "Traceback" not in done.stderr


def test_pages_install_by_one_line():
    """Pages use README's install line with their extras. On public indexes, the bare name is another package."""
    allowed = re.compile(r"pipx install(?: --force)? '\.\[serve,live(?:,\w+)?\]'|pipx install \.(?= |`)")
    others = {
        ("README.md", "pip install pipx"),
        ("docs/python.md", "pip install ."),
        ("docs/clusters.md", "pip install --no-index --no-deps wheels/*"),
    }
    pages = {
        path.relative_to(ROOT).as_posix(): path.read_text() for path in (*PAGES, ROOT / "deploy/kubectl/claimgate.yaml")
    }
    wrong = [
        (page, match[0])
        for page, text in pages.items()
        for match in re.finditer(r"pipx? install[^\n]*", text)
        if page != "CHANGELOG.md"
        if not allowed.match(match[0]) and (page, match[0].partition("`")[0]) not in others
    ]
    assert wrong == []
    assert "pipx install '.[serve,live]' " in pages["README.md"]


@pytest.mark.parametrize("placeholder", ["OWNER/claimgate", "rev: TAG"])
def test_each_placeholder_is_listed_once(placeholder):
    files = (*PAGES, ROOT / "action.yml", ROOT / ".pre-commit-hooks.yaml")
    assert [path.name for path in files if placeholder in path.read_text()] == ["integrations.md"]


def test_every_verb_has_a_test():
    assert {row.partition(",")[0] for row in (*WORKS, *NEEDS)} == set(VERBS)


def test_an_installation_without_extras_is_small():
    """The kubernetes client alone is more than twice as large."""
    small, whole = closure(PROJECT["dependencies"]), closure(_everything())
    assert size_mb(small) < MOST_MB
    assert size_mb(whole) > 4 * size_mb(small)


def _everything():
    """Return all dependencies with the extras of `all`, which does not include Ray."""
    extras = {name: texts for name, texts in PROJECT["optional-dependencies"].items() if name not in ("all", "ray")}
    return [*PROJECT["dependencies"], *(text for texts in extras.values() for text in texts)]


def test_the_message_knows_every_package_of_the_extras():
    """The names are those of imports, also of packages that come with others."""
    names = {
        "cel-python": "celpy",
        "opentelemetry-sdk": "opentelemetry",
        "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    }
    brought = {"serve": {"starlette"}, "live": {"urllib3"}, "celpy": set(), "otel": set(), "ray": set()}
    for extra, packages in EXTRAS.items():
        declared = {Requirement(text).name for text in PROJECT["optional-dependencies"][extra]}
        assert {names.get(name, name.replace("-", "_")) for name in declared} | brought[extra] == packages
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert Requirement(everything).extras == set(EXTRAS) - {"ray"}


def test_spans_need_an_extra_although_fastapi_installs_a_part_of_the_package():
    assert hint_for_missing_module("opentelemetry.sdk").endswith(OTEL)
