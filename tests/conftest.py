"""The settings of all tests: the number of examples of property tests, and whether golden files are rewritten."""

import gc
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from webhook import assembly
from webhook.input import shipped
from webhook.policy.load import Options, PolicyDocuments
from webhook.policy.policy_set import PolicySet

settings.register_profile("fuzz", max_examples=5_000, deadline=None)
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("busy")  # the time of an example depends on the machine that runs the tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --update-golden. The changed files are then reviewed like code."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


def pytest_collection() -> None:
    """Collect no garbage while pytest collects tests. Collection creates thousands of objects that stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude the objects that stay from later garbage collections, which otherwise took a third of the tests' time."""
    gc.enable()
    gc.set_threshold(20_000)
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """After each file, exclude the policies that its tests compiled for all tests, too."""
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the environment variables for the screen, which may be set outside of the tests."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


READ_DOCUMENTS, COMPILE_DOCUMENTS = assembly.read_policy_documents, assembly.compile_policy_documents
COMPILED: dict[tuple[object, ...], tuple[Options, PolicySet]] = {}


@cache
def shipped_documents() -> PolicyDocuments:
    return READ_DOCUMENTS([shipped.policies_folder()])


def read_documents_once(places: Sequence[Path | str], root: str = "") -> PolicyDocuments:
    is_shipped = list(places) == [shipped.policies_folder()] and not root
    return shipped_documents() if is_shipped else READ_DOCUMENTS(places, root)


def compile_documents_once(documents: PolicyDocuments, options: Options) -> PolicySet:
    if documents is not shipped_documents():
        return COMPILE_DOCUMENTS(documents, options)
    key = (options.engine, options.version, id(options.table), options.lazy, options.own_namespace)
    if key not in COMPILED:
        COMPILED[key] = (
            options,
            COMPILE_DOCUMENTS(documents, options),
        )  # keeping the options keeps the id of their table
    return COMPILED[key][1]


@pytest.fixture(autouse=True)
def shipped_policies_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all verbs that tests run in this process share the shipped policies, as the reviews of a server do.

    Reading and compiling them is most of the time of a short verb. A verb in a process of its own reads them again.
    """
    monkeypatch.setattr(assembly, "read_policy_documents", read_documents_once)
    monkeypatch.setattr(assembly, "compile_policy_documents", compile_documents_once)
