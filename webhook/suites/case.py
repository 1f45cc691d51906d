"""One case of a suite, whatever its format: something to ask, and everything that is not as it should be.

Knows no format. Cases that are a request with policies of their own are asked here, through the door that replay uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from webhook import yamlfile
from webhook.admission.phases import Local, Outcome, PhaseName, run
from webhook.attributes import JSON, Attributes
from webhook.cel.library.authorizer import Decisions
from webhook.cluster.assumed_namespaces import AssumedNamespaces
from webhook.cluster.files import FilesCluster
from webhook.errors import ClaimgateError
from webhook.policy.load import Options, load_documents
from webhook.policy.policy_set import PolicySet
from webhook.report.case import CaseResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case. `mismatches` gives a readable text for everything that differs; () is a pass.

    It may raise what reading the parts of the case raises: that is a failure of the case, with its text.
    """

    id: str
    suite: str
    mismatches: Callable[[], Sequence[str]]


def check(case: Case) -> CaseResult:
    """Run one case."""
    try:
        why = "\n".join(case.mismatches())
    except ClaimgateError as error:
        why = str(error) or "cannot be read"
    return CaseResult(id=case.id, suite=case.suite, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a case asks, and of whom. `context` is everything the cluster holds, params included."""

    attributes: Attributes
    policies: PolicySet
    phase: PhaseName = "auto"
    context: tuple[JSON, ...] = ()
    authorizer: Sequence[JSON] = ()


def answer(request: Request) -> Outcome:
    """What the core says."""
    cluster = AssumedNamespaces(FilesCluster(request.context))
    door = Local(policies=request.policies, cluster=cluster, authorizer=Decisions(request.authorizer))
    return run(request.attributes, request.phase, door)


def compiled(objects: Iterable[JSON], how: Options) -> PolicySet:
    """The policies and bindings that a case carries itself.

    Raises:
        PolicyError: every problem.
    """
    return load_documents(map(yamlfile.Document, objects), how)
