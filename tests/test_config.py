"""Flags win over the environment, the environment over the defaults."""

import dataclasses
from pathlib import Path

import pytest

from webhook import config, shipped
from webhook.config import Settings, settings
from webhook.errors import ConfigurationError


def test_defaults():
    assert settings({}, {}) == Settings()
    assert Settings().max_body_bytes == 20 * 1024 * 1024


def test_flags_win_over_the_environment():
    environment = {"WEBHOOK_LOG_LEVEL": "debug", "WEBHOOK_CEL_ENGINE": "celpy", "WEBHOOK_POLICIES": ""}
    chosen = settings({"log_level": "error", "policies": [], "workloads": [Path("w")], "context": None}, environment)
    assert chosen == Settings(log_level="error", cel_engine="celpy", workloads=(Path("w"),))


@pytest.mark.parametrize(
    "field, text, value",
    [
        ("policies", "a:b/c", (Path("a"), Path("b/c"))),
        ("kubernetes_version", "v1.34.2", (1, 34)),
        ("max_body_bytes", "4Mi", 4 * 1024 * 1024),
        ("max_body_bytes", " 100 ", 100),
        ("api_server_text", "True", True),
        ("api_server_text", "0", False),
    ],
)
def test_text_is_read(field, text, value):
    assert getattr(settings({}, {config.variable(field): text}), field) == value


@pytest.mark.parametrize(
    "field, text, message",
    [
        ("kubernetes_version", "one", "WEBHOOK_KUBERNETES_VERSION: `one` is not a version"),
        ("max_body_bytes", "0", "WEBHOOK_MAX_BODY_BYTES: `0` is not a size"),
        ("log_level", "loud", "WEBHOOK_LOG_LEVEL: `loud` is none of debug, info, warning, error"),
        ("api_server_text", "maybe", "`maybe` is none of true, false, 1, 0"),
    ],
)
def test_unusable_text_names_its_variable(field, text, message):
    with pytest.raises(ConfigurationError, match=message):
        settings({}, {config.variable(field): text})


def test_an_unusable_flag_is_named():
    with pytest.raises(ConfigurationError, match="--cel-engine: `x` is none of compiled, celpy"):
        settings({"cel_engine": "x"}, {})


def test_every_setting_can_be_read():
    assert set(config._READERS) == {field.name for field in dataclasses.fields(Settings)}


def test_shipped_policies_are_found(tmp_path):
    assert shipped.policies().name in {"policies", "_policies"}
    package = tmp_path / "webhook"
    package.mkdir()
    with pytest.raises(ConfigurationError, match="no shipped policies"):
        shipped.policies(package)
    (tmp_path / "policies").mkdir()
    assert shipped.policies(package) == tmp_path / "policies"
    (package / "_policies").mkdir()
    assert shipped.policies(package) == package / "_policies"
