"""Asks `replay` and the server, and compares the documents of their answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import httpx

from tests.fuzz.differential.answers import load
from tests.fuzz.doors.cases import Group, groups
from tests.literals import TABLE
from tests.server.asgi import Running
from tests.server.serving import Pki, listening
from webhook import assembly
from webhook.admission import fixtures, wire
from webhook.admission.decode import review_of_attributes
from webhook.admission.phases import LocalAnswerer, PhaseName
from webhook.apimachinery.attributes import JSON, Attributes, Phase
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.commands.replay import Replay, ReplayBackend, objects_after_replay
from webhook.deadline import Deadline
from webhook.errors import CallError
from webhook.facts.train_job_pods.train_job_and_runtime_fields import check_fields_exist_in_release
from webhook.facts.trainer.training_runtime import RUNTIME_FIELD_RULES
from webhook.input import documents
from webhook.input.reload import ReloadableValue
from webhook.patch.schema import is_builtin
from webhook.policy.policy_set import PolicySet
from webhook.rules.decisions import Verdict
from webhook.server.served_state import ServedState
from webhook.settings.shared import ReportSettings

RELEASES: Final = ((2, 0), (2, 1), (2, 2), (2, 3), (2, 4))
"""Releases of Trainer, which differ in the fields of its kinds"""
SETTINGS: Final = (
    ReportSettings(),
    ReportSettings(api_server_text=True, docs_address="https://docs.example"),
    ReportSettings(enforcement_action="warn", docs_address="https://docs.example"),
    ReportSettings(enforcement_action="audit"),
)
"""Settings that change answers. Each group of fixtures has the next one."""
TIMEOUT_S: Final = 30.0
"""The longest timeout of a webhook. No review runs out of time on a slow machine."""


@dataclass(frozen=True)
class Difference:
    fixture: JSON
    group: Group
    replayed: JSON
    served: JSON

    def told(self) -> str:
        parts = {
            "replay": self.replayed,
            "server": self.served,
            "fixture": self.fixture,
            "context": self.group.context,
        }
        told = "\n".join(f"{name}: {json.dumps(part, default=str)}" for name, part in parts.items())
        return f"{self.group.phase} by {', '.join(map(str, self.group.policies))}\n{told}"


@dataclass
class Comparison:
    compared: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


class Served:
    def __init__(self) -> None:
        self._state: ServedState | None = None

    def hold(self, policies: PolicySet, held: Sequence[JSON], settings: ReportSettings = SETTINGS[0]) -> None:
        """Replace policies, cluster and settings, as after a restart of the server."""
        kept, view = (_unchanging(each) for each in (policies, FilesCluster(held)))
        self._state = ServedState(kept, view, None, settings)

    def review(self, attributes: Attributes, phase: Phase, deadline: Deadline) -> Verdict:
        assert self._state is not None
        return self._state.review(attributes, phase, deadline)


def _unchanging(value: Any) -> ReloadableValue[Any]:
    return ReloadableValue(lambda: value, tuple)


def compare(reviews: int, seed: int, folder: Path, most: int) -> Comparison:
    """Draw fixtures, and compare the answers of `replay` and the server.

    Args:
        reviews: how many are drawn at least.
        seed: of the random numbers.
        folder: where policies, fixtures and certificates are written.
        most: the comparison ends after this number of differences.
    """
    served, result, pki = Served(), Comparison(), Pki(folder)
    with (
        listening(Running(served.review), pki.files) as server,
        httpx.Client(base_url=server.address, verify=pki.trust(), timeout=TIMEOUT_S, trust_env=False) as client,
    ):
        for group, settings in zip(groups(reviews, seed, folder), cycle(SETTINGS), strict=False):
            for difference in _compared(group, settings, served, client, folder / "fixtures.json", result):
                result.differences.append(difference)
                if len(result.differences) >= most:
                    return result
    return result


def _compared(
    group: Group, settings: ReportSettings, served: Served, client: httpx.Client, file: Path, result: Comparison
) -> Iterator[Difference]:
    file.write_text(json.dumps(group.fixtures, default=str))
    inputs = documents.read_documents([file])
    held = [*group.context, *(obj for _, obj in objects_after_replay(inputs))]
    policies = _policies(group.policies)
    served.hold(policies, held, settings)
    local = LocalAnswerer(
        policies=policies,
        cluster=ClusterWithAssumedNamespaces(FilesCluster(held)),
        options=assembly.review_options_of_settings(settings, policies),
        timeout_s=TIMEOUT_S,
    )
    for each in inputs.documents:
        replayed = list(_replayed(each, group.phase, local))
        sent = _sent(each.value)
        if sent is None:
            continue
        got = client.post(f"/{group.phase}", params={"timeout": f"{TIMEOUT_S:.0f}s"}, json=sent).json()
        result.compared += 1
        result.outcomes.update(_outcomes(got))
        if [got] != replayed:
            yield Difference(each.value, group, replayed, got)


@lru_cache(maxsize=4)
def _policies(places: tuple[Path, ...]) -> PolicySet:
    """Load the registered policies: no server gets the objects of other policies. The result is cached, because most
    groups have the shipped policies.
    """
    loaded = load(places)
    validating, mutating = (
        tuple(each for each in policies if each.is_registered) for policies in (loaded.validating, loaded.mutating)
    )
    return replace(loaded, validating=validating, mutating=mutating)


def _replayed(document: documents.InputDocument, phase: Phase, local: LocalAnswerer) -> Iterator[JSON]:
    """Yield the answer of `replay` to a fixture, or nothing if `replay` cannot read the fixture."""
    alone = documents.InputDocuments(documents=(document,), files=1, problems=())
    name: PhaseName = "mutate" if phase is Phase.MUTATE else "validate"

    def asked(each: documents.InputDocument) -> tuple[Attributes, LocalAnswerer]:
        return fixtures.attributes_of_fixture(each.value, TABLE.row), local

    return (answer.response for answer in Replay(alone, name, ReplayBackend(asked, TABLE, {})).answers())


def _sent(fixture: JSON) -> JSON | None:
    """Return None if an API server sends no review, for example because it cannot decode the object."""
    if fixtures.is_review(fixture) and fixture["apiVersion"] == wire.API_VERSION:
        return fixture
    try:
        made = fixtures.attributes_of_fixture(fixture, TABLE.row)
    except CallError:
        return None
    if _loses_fields(made):
        return None
    return review_of_attributes(made) if made.is_decoded or not is_builtin(made.kind) else None


def _loses_fields(made: Attributes) -> bool:
    """Return whether an object of Trainer has a field that some release lacks.

    An API server with that release sends the object without the field. For a file, `replay` reports the effect of the
    field. For a review, it reports that the API server has another release.
    """
    return any(
        any(check_fields_exist_in_release(made.object, made.kind.kind, release, RUNTIME_FIELD_RULES, Deadline()))
        for release in RELEASES
    )


def _outcomes(answer: JSON) -> Iterator[str]:
    response = answer.get("response") or {}
    yield "allowed" if response.get("allowed") else "denied"
    yield from (name for name in ("warnings", "patch", "auditAnnotations") if response.get(name))
