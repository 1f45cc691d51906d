"""Defines a case of a suite in any format, and evaluates its request in the same way as replay."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from webhook.admission.phases import LocalAnswerer, PhaseName, PhasesOutcome, run_phases
from webhook.apimachinery.attributes import JSON, Attributes
from webhook.apimachinery.paths import FieldPath, path_as_text
from webhook.cel.library.authorizer import ListedAuthorizer
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.errors import ClaimgateError, InputProblem, UnknownRule
from webhook.evaluation.review_options import ReviewOptions
from webhook.policy.load import Options, load_documents
from webhook.policy.policy_set import PolicySet
from webhook.report.finding import Result
from webhook.report.results import CaseResult
from webhook.yamltext import yamlfile

_WITH_ADVICE: Final = ReviewOptions(advice=True)
"""The options of cases, which may expect advice."""


class Case(Struct, frozen=True, kw_only=True):
    """A case that can be run.

    Attributes:
        mismatches: returns a text for each difference, and () if the case passes. A ClaimgateError fails the case
            with its text. UnknownRule instead means that the case itself is wrong.
        notes: remarks about a case that passes.
        line: the line in the file; 0 if unknown.
        parts: the rules and conditions of the policies.
        tried: the `parts` that the case covers (own.py).
        undecided: the unexpected messages about rules that were not evaluated.
        advice: returns the advice; None in formats of suites without advice.
    """

    id: str
    suite: str
    mismatches: Callable[[], Sequence[str]]
    notes: Callable[[], Sequence[str]] = tuple
    advice: Callable[[], Sequence[str]] | None = None
    line: int = 0
    parts: Callable[[], Iterable[str]] = tuple
    tried: Callable[[], Collection[str]] = tuple
    undecided: Callable[[], Sequence[str]] = tuple


class SkippedCase(Struct, frozen=True, kw_only=True):
    """A case that is not run, with the reason. Equal reasons have the same text in all suites."""

    id: str
    suite: str
    why: str
    line: int = 0


class UnreadableCase(Struct, frozen=True, kw_only=True):
    """A case or a whole suite with mistakes, which cannot be run."""

    id: str
    suite: str
    problems: tuple[InputProblem, ...]


def unreadable_case(document: yamlfile.Document, path: FieldPath, message: str) -> UnreadableCase:
    """Return an entry for a mistake at a path of a suite."""
    name = f"{Path(document.file).parent.name}/{path_as_text(path)}"
    return UnreadableCase(id=name, suite=document.file, problems=(document.problem(path, message),))


Entry: TypeAlias = Case | SkippedCase | UnreadableCase
"""A case of a suite, whether it can be run or not."""


def run_case(entry: Entry) -> CaseResult:
    """Run one case, or return why it is not run."""
    if isinstance(entry, SkippedCase):
        return CaseResult(id=entry.id, suite=entry.suite, result=Result.SKIP, why=entry.why, line=entry.line)
    if isinstance(entry, UnreadableCase):
        reasons = "\n".join(map(str, entry.problems))
        line = next((each.line for each in entry.problems if each.file == entry.suite), 0)
        return CaseResult(id=entry.id, suite=entry.suite, result=Result.ERROR, why=reasons, line=line)
    notes: Sequence[str] = ()
    started = time.perf_counter()
    try:
        reasons = "\n".join(entry.mismatches())
        notes = entry.notes()
    except UnknownRule as error:
        return CaseResult(id=entry.id, suite=entry.suite, result=Result.ERROR, why=str(error), line=entry.line)
    except ClaimgateError as error:
        reasons = str(error) or "cannot be read"
    return CaseResult(
        id=entry.id,
        suite=entry.suite,
        result=Result.FAIL if reasons else Result.PASS,
        why=reasons,
        notes=tuple(notes),
        line=entry.line,
        elapsed_s=time.perf_counter() - started,
    )


class Request(Struct, frozen=True, kw_only=True):
    """The request of a case. `context` are objects of the cluster, including params. `context_is_whole`: whether
    `context` has all objects.
    """

    attributes: Attributes
    policies: PolicySet
    phase: PhaseName = "auto"
    context: tuple[JSON, ...] = ()
    context_is_whole: bool = False
    authorizer: Sequence[JSON] = ()


def answer_of_case(request: Request, options: ReviewOptions = _WITH_ADVICE, *, explains: bool = False) -> PhasesOutcome:
    """Return the answer to a request. The default options are the options of admission, with advice."""
    cluster = ClusterWithAssumedNamespaces(FilesCluster(request.context, is_whole=request.context_is_whole))
    answerer = LocalAnswerer(
        policies=request.policies,
        cluster=cluster,
        options=replace(options, authorizer=ListedAuthorizer(request.authorizer)),
        explains=explains,
    )
    return run_phases(request.attributes, request.phase, answerer)


def policies_of_case(objects: Iterable[JSON], options: Options) -> PolicySet:
    """Return the compiled policies and bindings that a case contains.

    Raises:
        PolicyError: the policies have problems. The error lists all problems.
    """
    return load_documents(map(yamlfile.Document, objects), options)
