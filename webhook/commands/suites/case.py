"""One case of a suite: policies, a request, what the cluster holds, and what is expected of the answer.

Every format is read into this, so that all of them are run and judged the same way. Knows no format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from webhook import yamlfile
from webhook.attributes import JSON, Attributes
from webhook.cluster.files import FilesCluster
from webhook.commands.assumed import AssumedNamespaces
from webhook.commands.phases import Local, Outcome, PhaseName, run
from webhook.errors import ClaimgateError
from webhook.policy.load import Options, load_documents
from webhook.policy.policyset import PolicySet

Judge: TypeAlias = Callable[[Outcome], tuple[str, ...]]
"""From what came out to everything that is not as expected, each a readable text; () is a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one case asks, and of whom. `context` is everything the cluster holds, params included."""

    attributes: Attributes
    policies: PolicySet
    phase: PhaseName = "auto"
    context: tuple[JSON, ...] = ()
    authorizer: JSON = None
    api_server_text: bool = False


def compiled(objects: Iterable[JSON], how: Options) -> PolicySet:
    """The policies and bindings that a case carries itself.

    Raises:
        PolicyError: every problem.
    """
    return load_documents(map(yamlfile.Document, objects), how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case. `request` raises what reading its parts raises; `refusal` is the text when that is expected."""

    id: str
    suite: str
    request: Callable[[], Request]
    judge: Judge
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a case went. why is "" for a pass."""

    id: str
    suite: str
    why: str = ""


def check(case: Case) -> Result:
    """Run one case and judge it; whatever cannot be read or loaded is a failure with its text."""
    try:
        request = case.request()
    except ClaimgateError as error:
        return Result(id=case.id, suite=case.suite, why=_judge_refusal(case, str(error)))
    if case.refusal is not None:
        return Result(
            id=case.id, suite=case.suite, why=f"policies: expected them refused: {case.refusal}\nfound: loaded"
        )
    return Result(id=case.id, suite=case.suite, why="\n".join(case.judge(answer(request))))


def answer(request: Request) -> Outcome:
    """What the core says."""
    door = Local(
        policies=request.policies,
        cluster=AssumedNamespaces(FilesCluster(request.context)),
        authorizer=request.authorizer,
        api_server_text=request.api_server_text,
    )
    return run(request.attributes, request.phase, door)


def _judge_refusal(case: Case, found: str) -> str:
    if case.refusal is None:
        return found
    if case.refusal in found:
        return ""
    return f"policies: expected them refused: {case.refusal}\nfound: {found}"
