"""One module of a folder uses private parts of dependencies. They are checked at start, and pyproject bounds versions."""

import ast
import itertools
import re
import tomllib
from pathlib import Path

import pytest

from webhook.admission import private_api as messages
from webhook.cel.library import private_api as patterns
from webhook.cluster import private_api as clients
from webhook.errors import ConfigurationError, DependencyChanged

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPENDENCIES = [*PROJECT["dependencies"], *itertools.chain(*PROJECT["optional-dependencies"].values())]
NAMES = {"_re2", "pool_manager"}


@pytest.mark.parametrize("room", [messages, patterns], ids=lambda room: room.__name__)
def test_the_installed_versions_have_the_private_parts_that_are_used(room):
    room.check_installed_version()


def test_unknown_messages_of_msgspec_are_reported(monkeypatch):
    monkeypatch.setattr(messages, "_SHAPE", re.compile("Wanted (?P<wanted>.)"))
    with pytest.raises(
        DependencyChanged,
        match=r"^msgspec [0-9.]+ does not work here: the wording of ValidationError has changed; install ",
    ) as error:
        messages.check_installed_version()
    assert isinstance(error.value, ConfigurationError)  # exit code 2, one line


def test_a_changed_re2_program_is_reported(monkeypatch):
    monkeypatch.setattr(patterns, "compiled_re2_program", lambda _pattern, _options: None)
    with pytest.raises(DependencyChanged, match=r"^google-re2 "):
        patterns.check_installed_version()


def test_a_kubernetes_client_without_pool_manager_is_reported(monkeypatch):
    import kubernetes

    monkeypatch.setattr(kubernetes.client.rest.RESTClientObject, "__init__", lambda *_: None)
    with pytest.raises(DependencyChanged, match=r"^kubernetes [0-9.]+ .* RESTClientObject\.pool_manager has changed"):
        clients.connection_pool(kubernetes.client.Configuration())


@pytest.mark.parametrize("package", ["uvicorn", "uvloop", "httptools", "kubernetes", "msgspec", "google-re2"])
def test_each_package_with_private_use_has_an_upper_bound(package):
    (declared,) = [one for one in DEPENDENCIES if re.match(rf"{package}[<>=]", one)]
    assert ",<" in declared


def test_no_other_module_uses_private_parts():
    for file in (ROOT / "webhook").rglob("*.py"):
        if file.name == "private_api.py":
            continue
        text = file.read_text()
        if not any(name in text for name in NAMES):
            continue
        tree = ast.parse(text)
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        used |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert not used & NAMES, file
