"""An option that changes an answer is declared once, and each verb that reviews objects has it or a reason why not."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest
import typer

from tests.options_page import DOORS, PAGE, page
from webhook.commands import options
from webhook.settings import values
from webhook.settings.doors import LEFT_OUT, NOT_OF_SERVER, REPORT_FLAGS, Door, settings_of_door
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import declare_option, declare_setting, declared_settings
from webhook.settings.shared import ReviewSettings
from webhook.typer_application import create_typer_application


def flags_of(door: str) -> set[str]:
    """Return the flags of a verb, as its help lists them."""
    group = typer.main.get_command(create_typer_application())
    command = group.get_command(typer.Context(group, info_name="claimgate"), door)
    return {flag for each in command.params for flag in each.opts}


@pytest.mark.parametrize("door", DOORS)
def test_each_verb_has_every_option_that_is_not_left_out(door: Door) -> None:
    kind = ServerSettings if door == "serve" else ReviewSettings
    has = flags_of(door)
    wanted = {each.flag for each in settings_of_door(kind, door)}
    without = {each.flag for each in declared_settings(kind)} - wanted
    assert wanted <= has, "give the verb its flags by options.add_flags_of_door"
    assert not without & has
    assert {flag for flag, left_out in REPORT_FLAGS.items() if door not in left_out} == has & set(REPORT_FLAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Further(ReviewSettings):
    """The options of reviews with one more."""

    further: bool = declare_option(False, values.switch_type(), "Does nothing.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherOfServer(ServerSettings):
    """The settings of the server with one more."""

    further: bool = declare_setting(False, values.switch_type(), "Does nothing.")


@pytest.mark.parametrize("door", DOORS)
def test_a_new_option_reaches_every_verb(door: Door) -> None:
    kind = FurtherOfServer if door == "serve" else Further

    @options.add_flags_of_door(kind, door)
    def command(*, settings: Any) -> int:
        return int(settings.further)

    assert "further" in inspect.signature(command).parameters
    assert (command(further=True), command()) == (1, 0)


def test_every_reason_in_the_table_belongs_to_an_option() -> None:
    names = {each.name for each in declared_settings(ReviewSettings)}
    of_server = {each.name for each in declared_settings(ServerSettings)}
    assert set(LEFT_OUT) <= names
    assert set(NOT_OF_SERVER) == {each.name for each in declared_settings(ReviewSettings) if not each.has_variable}
    assert names - of_server - set(NOT_OF_SERVER) == set(), "say in doors.py why the server does not have the option"


def test_the_page_is_as_the_declarations_say() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.options_page`"
