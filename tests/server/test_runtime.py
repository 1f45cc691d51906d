"""What every start does before the server is ready."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from webhook.errors import InputError
from webhook.logs.structured import Log
from webhook.rules.actions import EFFECTS
from webhook.server.runtime import warm_up
from webhook.server.scheduler import Scheduler
from webhook.server.served_state import ServedState
from webhook.settings.configured import read_settings
from webhook.settings.shared import ReportSettings

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  validations: [{expression: "object.metadata.name != ''"}]
"""


class Failing(ServedState):
    def review(self, *_arguments: object) -> object:
        raise OSError("no memory to be had")


def state(folder: Path, kind: type[ServedState] = ServedState) -> ServedState:
    (folder / "policy.yaml").write_text(POLICY)
    return kind.make(ReportSettings(only=(folder,)), connection=None, log=Log())


def test_a_state_is_warm_when_policies_are_compiled_and_a_pod_was_reviewed(tmp_path: Path) -> None:
    async def scenario() -> tuple[bool, bool]:
        scheduler = Scheduler()
        warming = asyncio.create_task(warm_up(state(tmp_path), scheduler))
        await asyncio.sleep(0)
        before = scheduler.is_warm.is_set()
        await warming
        return before, scheduler.is_warm.is_set()

    assert asyncio.run(scenario()) == (False, True)


def test_a_warm_up_that_fails_does_not_keep_the_server_from_being_ready(tmp_path: Path) -> None:
    async def scenario() -> bool:
        scheduler = Scheduler()
        with pytest.raises(OSError, match="no memory"):
            await warm_up(state(tmp_path, Failing), scheduler)
        return scheduler.is_warm.is_set()

    assert asyncio.run(scenario())


LEVELS = "levels: {{rules: {{named: {}}}}}"


def test_a_mistake_in_the_configuration_keeps_the_last_valid_configuration(tmp_path: Path) -> None:
    file = tmp_path / "claimgate.yaml"
    file.write_text(LEVELS.format("warn"))
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "policy.yaml").write_text(POLICY)
    settings = read_settings(ReportSettings, {"only": [folder], "config": file}, {})
    held = ServedState.make(settings, connection=None, log=Log())

    def change(text: str) -> tuple[str, object]:
        file.write_text(text)
        for reloaded in (held.configuration, held.configuration, held.policies, held.policies):
            reloaded.poll()
        return held.configuration.error, held.policies.current.configured["named"]

    warns, denies = EFFECTS["warn"].action, EFFECTS["deny"].action
    assert change("level: {}") == (f"{file}:1:1: level: unknown field: did you mean `levels`?", warns)
    error, action = change(LEVELS.format("deny").replace("named", "name"))
    assert "unknown rule `name`: did you mean `named`?" in error
    assert action == warns
    (folder / "policy.yaml").write_text(POLICY.replace("!= ''", "!= 'a'"))
    assert change("level: []")[1] == warns
    assert held.policies.reloads == 1  # the policies did not reload, because they follow their own files
    assert change(LEVELS.format("deny")) == ("", denies)
    assert held.policies.error == ""


def test_the_first_configuration_must_be_valid(tmp_path: Path) -> None:
    file = tmp_path / "claimgate.yaml"
    file.write_text("levels: {rules: {nam: warn}}")
    with pytest.raises(InputError, match=r"claimgate.yaml:1:18: levels.rules.nam: unknown rule `nam`"):
        ServedState.make(read_settings(ReportSettings, {"config": file}, {}), connection=None, log=Log())


def test_the_version_of_the_state_changes_with_the_files(tmp_path: Path) -> None:
    held = state(tmp_path)
    before = held.version()
    assert held.version() == before
    (tmp_path / "policy.yaml").write_text(POLICY.replace("named", "renamed"))
    assert [held.policies.poll(), held.policies.poll()] == [False, True]
    after = held.version()
    assert after is not None
    assert after != before
