"""Modules import only from lower layers (ARCHITECTURE.md), and never each other in a circle.

A third-party package is imported only in its folders, and declared packages are used. Imports for types count as well.
"""

import ast
import graphlib
import importlib
import pathlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache

import pytest

import webhook
from tests.rows import all_rows

ROOT = pathlib.Path(__file__).parent.parent
PACKAGE = ROOT / "webhook"
LAYERS = (
    {"text"},
    {"apimachinery", "errors"},
    {"deadline", "logs"},
    {"typed", "yamltext"},
    {"cel", "cluster", "input", "patch", "workloads"},
    {"rules", "schema", "status"},
    {"facts", "manifests"},
    {"policy", "settings"},
    {"conversion", "evaluation", "export", "live_policies"},
    {"admission", "assembly"},
    {"report", "server"},
    {"playground", "simulation", "suites"},
    {"commands", "typer_application"},
    {"cli", "__main__"},
)
TOP = "cli", "__main__"
"""The start of the program. `__main__` starts `cli`."""
LAYER = {folder: height for height, folders in enumerate(LAYERS) for folder in folders}

CEL = {"library": 0, "syntax": 1, "check": 2, "compile": 3, "estimate": 3}
"""The folders inside cel/. Their imports also go strictly down. The modules of cel/ itself join them."""

FACTS = (
    {"train_job_pods", "volcano_objects"},
    {"pod_security", "pods", "removed_versions"},
    {"command_lines", "priority_classes"},
    {"gpu", "shapes"},
    {"dra"},
    {"device_failures", "jobset", "launch", "nodes", "pod_prerequisites"},
    {"storage"},
    {
        "mesh",
        "model_servers",
        "other_schedulers",
        "serving_kinds",
        "sandbox",
        "ray",
        "trainer",
        "training_jobs",
        "updates",
    },
    {"kueue", "volcano"},
    {"namespace_quota", "preemption"},
)
"""The packages of facts/ by floor, from the lowest. All of them use the other modules of facts/, which import none of
them.
"""
FLOOR = {name: height for height, names in enumerate(FACTS) for name in names}

DISTRIBUTIONS = {
    "celpy": "cel-python",
    "yaml": "pyyaml",
    "re2": "google-re2",
    "prometheus_client": "prometheus-client",
    "opentelemetry": "opentelemetry-sdk",
}
"""Distributions that are not named like their package"""
FOLDERS = {
    "celpy": {"cel/reference_engine"},
    "re2": {"cel"},
    "kubernetes": {"cluster", "certs"},
    "opentelemetry": {"server"},
    "fastapi": {"playground", "server"},
    "starlette": {"server"},
    "uvicorn": {"server", "commands"},
    "httptools": {"server"},
    "prometheus_client": {"server"},
    "httpx": {"commands"},
    "urllib3": {"cluster", "certs"},
    "ray": {"commands"},
    "fsspec": {"commands", "input"},
    "yaml": {"yamltext"},
    "cryptography": {"certs"},
    "msgspec": {"admission", "cluster", "commands", "facts", "logs", "playground", "report", "schema", "workloads"},
    "typer": {"commands", "report", "typer_application"},
    "rich": {"commands", "report"},
    "pydantic": {"manifests", "workloads", "facts", "suites", "text"},
}
BROUGHT_BY = {"starlette": "fastapi", "rich": "typer", "urllib3": "kubernetes"}
"""Imported packages that come with a declared package"""
RECORDS = {"msgspec.Struct", "msgspec.field", "msgspec.structs", "msgspec.structs.replace", "msgspec.structs.fields"}
"""The base of records, in every folder (docs/decisions/0016-records-are-structs.md)"""
UNIMPORTED = {"uvloop", "opentelemetry-exporter-otlp-proto-http"}
"""uvicorn chooses uvloop, and claimgate never imports it. The exporter is a part of `opentelemetry`."""


@dataclass(frozen=True)
class Module:
    """What a module imports. Each module is parsed once for all tests."""

    imports: tuple[str, ...]
    docstring: str | None


@cache
def parsed(path):
    tree = ast.parse(path.read_text())
    return Module(tuple(imported_by(tree, path)), ast.get_docstring(tree))


def imports(path):
    """Return the absolute names of all imports: at the top, inside functions, or only for types."""
    return parsed(path).imports


def imported_by(tree, path):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports name the package"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folder_of(path, package):
    """Return the folder and the path of a module, such as `cel` and `cel/parser`."""
    parts = path.relative_to(package).with_suffix("").parts
    return parts[0], "/".join(parts)


def upward(package):
    for path in sorted(package.rglob("*.py")):
        own, module = folder_of(path, package)
        for name in imports(path):
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if (
                top == "webhook"
                and own != "__init__"
                and other != own
                and other in LAYER
                and LAYER[other] >= LAYER[own]
                and (other, own) != TOP
            ):
                yield f"{module} -> {name}"


def strangers(package, name_of_package=""):
    for path in sorted(package.rglob("*.py")):
        own, module = folder_of(path, package)
        for name in imports(path):
            allowed = FOLDERS.get(name.split(".")[0])
            if allowed is not None and name not in RECORDS and not allowed & {name_of_package or own, module}:
                yield f"{module} -> {name}"


def test_every_module_has_a_layer():
    folders = {folder_of(path, PACKAGE)[0] for path in PACKAGE.rglob("*.py")}
    assert folders - {"__init__"} <= set(LAYER)


def test_modules_import_only_from_lower_layers():
    assert list(upward(PACKAGE)) == []


def test_architecture_names_the_layers():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text[text.index("<!-- layers:") : text.index("<!-- end -->")]
    shown = {
        int(height): set(re.findall(r"`(\w+)`", rooms)) for height, rooms in re.findall(r"\| (\d+) \| (.*?) \|", table)
    }
    assert shown == dict(enumerate(LAYERS, 1))
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(re.findall(r"\| `(\w+)/` \|", text))


def test_the_folders_of_cel_go_strictly_down():
    assert {path.name for path in (PACKAGE / "cel").iterdir() if path.is_dir()} - {"__pycache__"} == set(CEL)
    found = [
        f"{folder_of(path, PACKAGE)[1]} -> {name}"
        for own, height in CEL.items()
        for path in (PACKAGE / "cel" / own).rglob("*.py")
        for name in imports(path)
        for other in [name.removeprefix("webhook.cel.").split(".")[0]]
        if name.startswith("webhook.cel.") and other != own and CEL.get(other, -1) >= height
    ]
    assert found == []


def test_third_party_packages_stay_in_their_folders():
    assert list(strangers(PACKAGE)) == []
    assert list(strangers(ROOT / "certs", "certs")) == []


def test_certs_does_not_import_webhook_and_few_folders_import_certs():
    assert [
        name for path in (ROOT / "certs").rglob("*.py") for name in imports(path) if name.startswith("webhook")
    ] == []
    users = {
        folder_of(path, PACKAGE)[0]
        for path in PACKAGE.rglob("*.py")
        for name in imports(path)
        if name.startswith("certs")
    }
    assert users <= {"commands", "server"}


def not_below(facts):
    for path in sorted(facts.rglob("*.py")):
        own, module = folder_of(path, facts)
        for name in imports(path):
            other = name.removeprefix("webhook.facts.").partition(".")[0]
            if name.startswith("webhook.facts.") and other != own and FLOOR.get(other, -1) >= FLOOR.get(own, 0):
                yield f"{module} -> {name}"


def circle(folder, name):
    """Return modules that import each other in a circle, in their order, or []. The module of a package is its
    __init__.py.
    """
    paths = {
        ".".join((name, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in folder.rglob("*.py")
    }
    graph = {module: modules_imported_by(path, paths) - {module} for module, path in paths.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def modules_imported_by(path, modules):
    return {one if one in modules else one.rpartition(".")[0] for one in imports(path)} & set(modules)


def test_no_modules_import_each_other_in_a_circle():
    modules = circle(PACKAGE, "webhook")
    assert modules == [], (
        f"each is imported by the next: {', '.join(modules)}. Move what both sides need to a module below them, or join"
        f" modules that are one idea"
    )


@pytest.mark.parametrize(
    "first",
    [
        "from p.right import f\n",
        "def g():\n    from p.right import f\n",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from p.right import f\n",
    ],
    ids=["at the top", "inside a function", "only for types"],
)
def test_a_planted_circle_is_found(first, tmp_path):
    for name, text in {
        "__init__": "from p.above import f\n",
        "below": "import json\n",
        "left": f"from p import below\n{first}",
        "right": "from p import left\n",
        "above": "from p.left import f\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert set(circle(tmp_path, "p")) == {"p.left", "p.right"}


def test_the_packages_of_facts_go_strictly_down():
    names = {path.stem for path in (PACKAGE / "facts").iterdir()} - {"__pycache__"}
    packages = {path.name for path in (PACKAGE / "facts").iterdir() if path.is_dir()} - {"__pycache__"}
    assert packages <= set(FLOOR) <= names
    assert list(not_below(PACKAGE / "facts")) == []


def test_architecture_names_the_floors_of_facts():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text[text.index("<!-- floors of facts:") :].partition("<!-- end -->")[0]
    rows = re.findall(r"\| (\d+) \| (.*?) \|", table)
    assert [set(re.findall(r"`(\w+)`", packages)) for _, packages in reversed(rows)] == list(FACTS)
    assert [int(height) for height, _ in reversed(rows)] == list(range(1, len(FACTS) + 1))


def test_planted_violations_in_facts_are_found(tmp_path):
    planted = {
        "kinds": "from webhook.facts.pods import pod_sets",
        "gpu/fact": "def f():\n    from webhook.facts.dra.fact import FACTS",
        "launch/command": "from webhook.facts.storage import mounts\nfrom webhook.facts.launch import words",
    }
    for name, text in planted.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert list(not_below(tmp_path)) == [
        "gpu/fact -> webhook.facts.dra.fact.FACTS",
        "kinds -> webhook.facts.pods.pod_sets",
        "launch/command -> webhook.facts.storage.mounts",
    ]


def test_planted_violations_are_found(tmp_path):
    package = tmp_path / "webhook"
    (package / "cel").mkdir(parents=True)
    (package / "cel/bad.py").write_text("def f():\n    from webhook.policy import load\n    import fastapi\n")
    (package / "facts.py").write_text(
        "import webhook.facts\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import yaml\n"
    )
    (package / "errors.py").write_text("from webhook import logs\nimport yaml.reader\n")
    assert list(upward(package)) == ["cel/bad -> webhook.policy.load", "errors -> webhook.logs"]
    assert list(strangers(package)) == ["cel/bad -> fastapi", "errors -> yaml.reader", "facts -> yaml"]


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dependencies = [
        *project["dependencies"],
        *(text for extra in project["optional-dependencies"].values() for text in extra),
    ]
    return {re.split(r"[^A-Za-z0-9_.-]", text)[0].rstrip(".-") for text in dependencies} - {project["name"]}


def imported():
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "certs").rglob("*.py")]
    return {name.split(".")[0] for path in files for name in imports(path)}


def test_imported_packages_are_declared():
    outside = {name for name in imported() if name in FOLDERS}
    needed = {BROUGHT_BY.get(name, DISTRIBUTIONS.get(name, name)) for name in outside}
    assert needed <= declared()


def test_declared_dependencies_are_imported():
    used = {DISTRIBUTIONS.get(name, name) for name in imported()}
    assert declared() - UNIMPORTED <= used


def test_every_import_is_the_standard_library_ours_or_known():
    import sys

    assert imported() - set(sys.stdlib_module_names) - {"webhook", "certs"} <= set(FOLDERS)


@all_rows("path", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: str(path.parent.name))
def test_exported_names_exist_and_are_sorted(path):
    name = ".".join(("webhook", *path.relative_to(PACKAGE).parent.parts))
    module = importlib.import_module(name)
    exported = list(getattr(module, "__all__", ()))
    assert all(hasattr(module, one) for one in exported)
    assert exported == sorted(exported, key=lambda one: (not one.isupper(), not one[0].isupper(), one))


BANNED = {"utils", "util", "helpers", "common", "base", "manager", "engine", "core", "misc"}


def test_modules_are_named_after_their_content():
    assert [path.name for path in PACKAGE.rglob("*.py") if path.stem in BANNED] == []


def test_every_module_has_a_docstring():
    assert [path for path in PACKAGE.rglob("*.py") if not parsed(path).docstring] == []


def test_large_packages_are_imported_only_when_used():
    """For a quick start, only a live cluster or a server imports what they need."""
    import subprocess
    import sys

    light = (
        "webhook.yamltext.yamlfile webhook.settings.serving webhook.cluster.watch webhook.cluster.connection "
        "webhook.patch.configuration"
    )
    code = (
        f"import sys, {light.replace(' ', ', ')}; print(*(set(sys.modules) & {{'kubernetes', 'fastapi', "
        f"'celpy', 'httpx'}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == ""


def test_the_version_is_one():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == webhook.__version__
