"""What all tests share: how many examples property tests try, and whether golden files are written anew."""

import pytest
from hypothesis import settings

settings.register_profile("fuzz", max_examples=5_000, deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden: the difference in version control is then reviewed like code."""
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")
