"""A flag overrides an environment variable, which overrides the default. An invalid value is reported with its
source.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rows import all_rows
from webhook.commands import options
from webhook.errors import ConfigurationError
from webhook.input import shipped
from webhook.settings import values
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import SettingsBase, declare_setting, declared_settings, read_settings
from webhook.settings.shared import Settings

BY_NAME = {each.name: each for each in declared_settings(ServerSettings)}


def test_defaults():
    assert read_settings(ServerSettings, {}, {}) == ServerSettings()
    assert ServerSettings().max_body_bytes == 20 * 1024 * 1024


def test_flags_win_over_the_environment():
    environment = {"CLAIMGATE_LOG_LEVEL": "debug", "CLAIMGATE_CEL_ENGINE": "celpy", "CLAIMGATE_POLICIES": ""}
    flags = {"log_level": "error", "policies": [], "workloads": [Path("w")], "context": None}
    chosen = read_settings(ServerSettings, flags, environment)
    assert chosen == ServerSettings(log_level="error", cel_engine="celpy", workloads=(Path("w"),))
    assert chosen.names_given_by_flags == {"log_level", "workloads"}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("policies", "/:-", (Path("/"), Path("-"))),
        ("kubernetes_version", "v1.34.2", (1, 34)),
        ("max_body_bytes", "4Mi", 4 * 1024 * 1024),
        ("max_body_bytes", " 100 ", 100),
        ("api_server_text", "True", True),
        ("api_server_text", "0", False),
        ("client_name", "api, other name,", ("api", "other name")),
        ("port", "0", 0),
        ("timeout", "2.5", 2.5),
        ("tls_cert", "a b", Path("a b")),
        ("host", "::1", "::1"),
    ],
)
def test_text_is_read(name, text, value):
    assert getattr(read_settings(ServerSettings, {}, {BY_NAME[name].environment_variable: text}), name) == value


@all_rows(
    ("name", "text", "message"),
    [
        ("kubernetes_version", "one", "`one` is not a version; write a version such as `1.36`"),
        ("kubernetes_version", "1.99", "`1.99` is a release with unknown CEL; write a release from 1.30 to 1.37"),
        ("max_body_bytes", "0", "`0` is not a size; write bytes, or a number with Ki, Mi or Gi"),
        ("worker_memory", "1Mi", "`1Mi` is too small; the minimum is 16Mi"),
        ("log_level", "loud", "`loud` is not one of debug, info, warning, error"),
        ("cel_engine", "x", "`x` is not one of compiled, celpy"),
        ("api_server_text", "maybe", "`maybe` is not a truth value; write true or false"),
        ("port", "70000", "`70000` is not a whole number from 0 to 65535"),
        ("port", "８４４３", "`８４４３` is not a whole number from 0 to 65535"),
        ("port", "http", "`http` is not a whole number from 0 to 65535"),
        ("max_connections", "0", "`0` is not a whole number of 1 or more"),
        ("timeout", "0", "`0` is not a number of 0.1 or more seconds"),
        ("drain", "nan", "`nan` is not a number of 0 or more seconds"),
        ("tls_cert", "https://h/x", "`https://h/x` is an address; write the name of a file"),
        ("context", "https://h/x", "`https://h/x` contains an address; write names of files and folders"),
        ("context", "nowhere", "`nowhere` does not exist; write files and folders, separated by `:`"),
        (
            "context",
            "/:nowhere",
            "`/:nowhere` names nowhere, which does not exist; write files and folders, separated by `:`",
        ),
        ("reload", "inf", "`inf` is not a number of 0 or more seconds"),
    ],
)
def test_an_invalid_setting_is_reported_with_its_flag_or_variable(name, text, message):
    each = BY_NAME[name]
    for flags, environment, origin in (
        ({name: text}, {}, each.flag),
        ({}, {each.environment_variable: text}, each.environment_variable),
    ):
        with pytest.raises(ConfigurationError) as error:
            read_settings(ServerSettings, flags, environment)
        assert str(error.value) == f"{origin}: {message}"


def test_a_path_that_cannot_be_inspected_is_reported_by_its_reader():
    long = "x" * 300
    assert read_settings(ServerSettings, {}, {"CLAIMGATE_CONTEXT": f"-:{long}"}).context == (Path("-"), Path(long))


@all_rows("each", declared_settings(ServerSettings), ids=lambda each: each.name)
def test_every_default_can_be_written(each):
    """README and help show the real defaults."""
    if each.default not in (None, ()):
        assert each.type.read(each.shown_default) == each.default


@all_rows("each", declared_settings(ServerSettings), ids=lambda each: each.name)
def test_every_setting_is_explained_in_sentences(each):
    assert each.help[0].isupper() or each.help[0] == "`"
    assert each.help.endswith(".")


def test_a_setting_that_is_added_is_a_flag_and_a_variable(monkeypatch):
    @dataclass(frozen=True, slots=True, kw_only=True)
    class More(Settings):
        colours: int = declare_setting(3, values.whole_number_type("COUNT", 1), "How many colours.")

    @options.add_settings_flags(More, "colours")
    def command(*, settings: More) -> int:
        return settings.colours

    monkeypatch.setenv("CLAIMGATE_COLOURS", "7")
    assert (command(), command(colours="5")) == (7, 5)
    assert issubclass(More, SettingsBase)


def test_shipped_policies_are_found(tmp_path):
    assert shipped.policies_folder().name in {"policies", "_policies"}
    package = tmp_path / "webhook"
    package.mkdir()
    with pytest.raises(ConfigurationError, match="no shipped policies"):
        shipped.policies_folder(package)
    (tmp_path / "policies").mkdir()
    assert shipped.policies_folder(package) == tmp_path / "policies"
    (package / "_policies").mkdir()
    assert shipped.policies_folder(package) == package / "_policies"
