"""An option that changes an answer is declared once. Each verb that reviews objects has it, or a reason."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.commands.test_backtest import event
from tests.literals import pod, request
from tests.options_page import DOORS, PAGE, page
from webhook import assembly
from webhook.admission import review
from webhook.apimachinery.attributes import Phase
from webhook.commands import options
from webhook.deadline import Deadline
from webhook.evaluation.request_context import RequestContext, request_context
from webhook.evaluation.review_options import ReviewOptions
from webhook.logs.structured import Log
from webhook.server.served_state import ServedState
from webhook.settings import values
from webhook.settings.serving import ServerSettings
from webhook.settings.setting import Setting, declare_option, declare_setting, declared_settings
from webhook.settings.shared import LEFT_OUT, NOT_OF_SERVER, REPORT_FLAGS, ReviewSettings, Verb, settings_of_verb
from webhook.typer_application import create_typer_application


def flags_of(door: str) -> set[str]:
    group = typer.main.get_command(create_typer_application())
    command = group.get_command(typer.Context(group, info_name="claimgate"), door)
    return {flag for each in command.params for flag in each.opts}


@pytest.mark.parametrize("door", DOORS)
def test_each_verb_has_every_option_that_is_not_left_out(door: Verb) -> None:
    kind = ServerSettings if door == "serve" else ReviewSettings
    has = flags_of(door)
    wanted = {each.flag for each in settings_of_verb(kind, door)}
    without = {each.flag for each in declared_settings(kind)} - wanted
    assert wanted <= has, "give the verb its flags by options.add_flags_of_verb"
    assert not without & has
    assert {flag for flag, left_out in REPORT_FLAGS.items() if door not in left_out} == has & set(REPORT_FLAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Further(ReviewSettings):
    further: bool = declare_option(False, values.switch_type(), "Does nothing.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherOfServer(ServerSettings):
    further: bool = declare_setting(False, values.switch_type(), "Does nothing.")


REVIEWERS = [each for each in DOORS if each != "test"]
"""The verbs that have the options. `test` reads them from its cases."""


@pytest.mark.parametrize("door", REVIEWERS)
def test_a_new_option_reaches_every_verb(door: Verb) -> None:
    kind = FurtherOfServer if door == "serve" else Further

    @options.add_flags_of_verb(kind, door)
    def command(*, settings: Any) -> int:
        return int(settings.further)

    assert "further" in inspect.signature(command).parameters
    assert (command(further=True), command()) == (1, 0)


@dataclass(frozen=True, kw_only=True)
class FurtherOptions(ReviewOptions):
    """Options of a review with one more option, which has the name of its setting."""

    further: bool = False


CONVERTED = {"authorizer", "skip"}
"""Options that a review has in another form than the setting (tests/commands/test_one_meaning.py)"""
ELSEWHERE = {("audit", "docs_address"): "the links are in its report"}
"""Options of a verb with an effect only outside of the review"""


def another_value(each: Setting) -> Any:
    if each.name == "enforcement_action":
        return "warn"
    return not each.default if isinstance(each.default, bool) else each.default + type(each.default)("1")


@pytest.mark.parametrize("door", REVIEWERS)
def test_an_option_reaches_each_review(door: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ReviewOptions] = []

    def recorded(*arguments: Any, **named: Any) -> RequestContext:
        context = request_context(*arguments, **named)
        seen.append(context.options)
        return context

    monkeypatch.setattr(assembly, "ReviewOptions", FurtherOptions)
    monkeypatch.setattr(review, "request_context", recorded)
    kind = FurtherOfServer if door == "serve" else Further
    of_reviews = {field.name for field in fields(FurtherOptions)} - CONVERTED
    changed = {each.name: another_value(each) for each in settings_of_verb(kind, door) if each.name in of_reviews}
    _review(door, kind(no_config=True, **changed), tmp_path)
    lost = {name for each in seen for name, value in changed.items() if getattr(each, name, None) != value}
    assert seen
    assert {name for name in lost if (door, name) not in ELSEWHERE} == set(), (
        f"`{door}` reviews objects without these options: take the options of its reviews from "
        "assembly.review_options_of_settings, or say in LEFT_OUT of webhook/settings/shared.py why it has no such option"
    )


def _review(door: Verb, settings: Any, folder: Path) -> None:
    """Review a Pod with the function that a verb calls after it has read flags and variables."""
    if door == "serve":
        state = ServedState.make(settings, None, Log())
        state.review(request(pod()), Phase.VALIDATE, Deadline())
        return
    file = folder / "file.json"
    file.write_text(json.dumps(event("create", pod()) if door == "backtest" else pod()))
    command: Any = import_module(f"webhook.commands.{door}").command
    command.__wrapped__(str(file) if door == "simulate" else [str(file)], settings=settings)


def test_a_case_has_every_option_that_is_not_left_out() -> None:
    names = {each.name for each in settings_of_verb(ReviewSettings, "test")} & {
        field.name for field in fields(ReviewOptions)
    }
    assert names == {"advice"}, (
        "cases of suites do not have these options: take them from OF_TEST in webhook/settings/shared.py, or give them "
        "to answer_of_case in webhook/suites/case.py"
    )


def test_each_setting_has_an_effect() -> None:
    sources = [path for path in Path("webhook").rglob("*.py") if path.parent.name != "settings"]
    read = set(re.findall(r"\.(\w+)\b", "\n".join(path.read_text() for path in sources)))
    declared = {each.name for kind in (ReviewSettings, ServerSettings) for each in declared_settings(kind)}
    assert declared - read == set(), (
        "no code reads these settings: declare those of answers in AnswerSettings (webhook/settings/shared.py) and "
        "read them as `context.options` where the review needs them, or remove the setting from webhook/settings"
    )


def test_a_variable_does_not_set_an_option_that_a_verb_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAIMGATE_ENFORCEMENT_ACTION", "warn")

    def actions(door: Verb) -> str:
        @options.add_flags_of_verb(ReviewSettings, door)
        def command(*, settings: Any) -> Any:
            return settings.enforcement_action

        return str(command())

    assert (actions("replay"), actions("test")) == ("warn", "deny")


def test_every_reason_in_the_table_belongs_to_an_option() -> None:
    names = {each.name for each in declared_settings(ReviewSettings)}
    of_server = {each.name for each in declared_settings(ServerSettings)}
    assert set(LEFT_OUT) <= names
    assert set(NOT_OF_SERVER) == {each.name for each in declared_settings(ReviewSettings) if not each.has_variable}
    assert names - of_server - set(NOT_OF_SERVER) == set(), (
        "say in `LEFT_OUT` of webhook/settings/shared.py why the server does not have the option"
    )


def test_the_page_is_as_the_declarations_say() -> None:
    assert PAGE.read_text() == page(), "run make docs, which writes the page"
