"""What all tests share: how many examples property tests try, and whether golden files are written anew."""

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("fuzz", max_examples=5_000, deadline=None)
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("busy")  # how long an example takes tells of the machine that runs the tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden: the difference in version control is then reviewed like code."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")


@pytest.fixture(autouse=True)
def no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what says how wide a screen is: whoever starts the tests may have set it."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
