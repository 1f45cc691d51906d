"""The settings of all tests: the number of examples of property tests, and whether golden files are rewritten."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("fuzz", max_examples=5_000, deadline=None)
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("busy")  # the time of an example depends on the machine that runs the tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden. The difference in version control is then reviewed like code."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the tests may set the width of the screen."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
