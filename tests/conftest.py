"""The settings of all tests: the number of examples of property tests, and whether golden files are rewritten."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

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
