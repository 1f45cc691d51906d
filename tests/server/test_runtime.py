"""What every start does once before the server is ready."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from webhook.logs.structured import Log
from webhook.server.runtime import warm_up
from webhook.server.scheduler import Scheduler
from webhook.server.served_state import ServedState
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
    """A state whose reviews fail."""

    def review(self, *_arguments: object) -> object:
        raise OSError("no memory to be had")


def state(folder: Path, kind: type[ServedState] = ServedState) -> ServedState:
    (folder / "policy.yaml").write_text(POLICY)
    return kind.make(ReportSettings(only=(folder,)), connection=None, log=Log())


def test_it_is_warm_when_policies_are_compiled_and_a_pod_was_reviewed(tmp_path: Path) -> None:
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


def test_the_version_of_its_state_changes_with_its_files(tmp_path: Path) -> None:
    held = state(tmp_path)
    before = held.version()
    assert held.version() == before
    (tmp_path / "policy.yaml").write_text(POLICY.replace("named", "renamed"))
    assert [held.policies.poll(), held.policies.poll()] == [False, True]
    after = held.version()
    assert after is not None
    assert after != before
