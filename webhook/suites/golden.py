"""Golden folders: a recorded review, the objects that were looked up for it, and the expected answer.

    NAME/review.yaml     the AdmissionReview
    NAME/cluster/*.yaml  the objects of the cluster that policies looked up
    NAME/expected.yaml   the answer, compared as a whole

`claimgate replay --record DIR` writes golden folders, and `claimgate test DIR` evaluates the current policies.
`--update-golden` writes the answers again. Values of Secrets and of environment variables are left out. The expected
answer is the answer to the review without these values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast, get_args

from msgspec import Struct

from webhook.admission import fixtures
from webhook.admission.decode import review_of_attributes
from webhook.admission.phases import PhaseName, PhasesOutcome
from webhook.apimachinery.attributes import JSON, Attributes
from webhook.cluster.recording import RecordingCluster
from webhook.errors import CallError, InputError, InputProblem
from webhook.policy.load import Options
from webhook.policy.policy_set import PolicySet
from webhook.suites.case import Case, Entry, Request, answer_of_case
from webhook.suites.expectation import broken_rules, diff_as_yaml, message_texts
from webhook.suites.files import Suite
from webhook.yamltext import yamlfile
from webhook.yamltext.confidential import without_confidential
from webhook.yamltext.input_files import leads_out_by_link, write_file_of_folder

EXPECTED, REVIEW, CLUSTER = "expected.yaml", "review.yaml", "cluster"
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9.-]+")
_PHASE, _IS_WHOLE = "phase", "contextIsWhole"
Policies = Callable[[], PolicySet]


def is_golden(file: Path) -> bool:
    """Return whether a file is the answer of a golden folder."""
    return file.name == EXPECTED and (file.parent / REVIEW).is_file()


def read(suite: Suite, options: Options, policies: Policies, *, updates: bool = False) -> Iterator[Entry]:
    """Yield the only case of a golden folder.

    `suite` is the file with the answer. With `updates`, a different answer is written.
    """
    yield Case(
        id=suite.folder.name, suite=str(suite.file), mismatches=partial(_mismatches, suite, options, policies, updates)
    )


def _mismatches(suite: Suite, options: Options, policies: Policies, updates: bool) -> Sequence[str]:
    expected = _read_one_document(suite, EXPECTED)
    if not isinstance(expected, dict) or expected.get(_PHASE) not in get_args(PhaseName):
        message = f"expected the answer of a review with `phase` ({', '.join(get_args(PhaseName))}): record it anew"
        raise InputError(InputProblem(message=message, file=str(suite.file)))
    try:
        attributes = fixtures.attributes_of_fixture(_read_one_document(suite, REVIEW), options.table.row)
    except CallError as error:
        raise InputError(InputProblem(message=error.message, file=str(suite.folder / REVIEW))) from None
    has_cluster = (suite.folder / CLUSTER).is_dir()
    request = Request(
        attributes=attributes,
        policies=policies(),
        phase=cast("PhaseName", expected[_PHASE]),
        context=suite.objects([CLUSTER]) if has_cluster else (),
        context_is_whole=bool(expected.get(_IS_WHOLE)),
    )
    actual = _outcome_as_json(answer_of_case(request), request)
    if actual == expected:
        return ()
    if updates:
        write_file_of_folder(suite.file, yamlfile.dump(actual))
        return ()
    return (f"the answer differs:\n{diff_as_yaml(expected, actual)}",)


def _read_one_document(suite: Suite, name: str) -> JSON:
    documents = suite.objects([name])
    if len(documents) != 1:
        raise InputError(InputProblem(message="expected one document", file=str(suite.folder / name)))
    return documents[0]


def _outcome_as_json(outcome: PhasesOutcome, request: Request) -> dict[str, Any]:
    """Return the expected answer, with the options of the request."""
    verdict, status = outcome.verdict, outcome.verdict.status
    denied = {"code": status.code, "reason": status.reason, "message": status.message} if status else {}
    return {
        _PHASE: request.phase,
        _IS_WHOLE: request.context_is_whole,
        "allowed": verdict.allowed,
        **({} if verdict.allowed else denied),
        "warnings": list(verdict.warnings),
        "rules": list(broken_rules(outcome)),
        "unknown": list(message_texts(outcome, "unknown")),
        "errors": list(message_texts(outcome, "error")),
        "patch": [dict(each) for each in verdict.patch],
    }


class Recorder(Struct, frozen=True):
    """Writes golden folders below a folder."""

    folder: Path
    policies: PolicySet

    def write(
        self, number: int, attributes: Attributes, cluster: RecordingCluster, phase: PhaseName, outcome: PhasesOutcome
    ) -> str:
        """Write one review. Return a note if the answer changes without confidential values, otherwise "".

        `number` counts reviews from 0. The cluster has recorded the looked-up objects.

        Raises:
            InputError: a folder with the name exists and was not recorded, or there is a link in its path.
        """
        folder = self._empty_folder(self.folder / _name(number, attributes))
        recorded = _redacted(attributes)
        objects = [without_confidential(obj) for obj in _objects_with_namespaces(cluster)]
        request = Request(
            attributes=recorded,
            policies=self.policies,
            phase=phase,
            context=tuple(objects),
            context_is_whole=cluster.is_whole(),
        )
        expected = _outcome_as_json(answer_of_case(request), request)
        _write(folder / REVIEW, [review_of_attributes(recorded)])
        for kind, objects_of_kind in _by_kind(objects).items():
            _write(folder / CLUSTER / f"{kind}.yaml", objects_of_kind)
        _write(folder / EXPECTED, [expected])
        if expected == _outcome_as_json(outcome, request):
            return ""
        return f"{folder}: has another answer than the recorded review, because confidential values are left out"

    @staticmethod
    def _empty_folder(folder: Path) -> Path:
        """Delete the earlier recording in a folder, and return the folder.

        Links are refused, because a link in an audited folder may lead anywhere.
        """
        linked = next((each for each in (folder, folder / CLUSTER) if each.is_symlink()), None)
        if linked is not None or leads_out_by_link(folder):
            message = "is a link or below a link, and recordings are not written through links: name the folder itself"
            raise InputError(InputProblem(message=message, file=str(linked or folder)))
        if not folder.exists():
            return folder
        if not (folder / EXPECTED).is_file():
            message = "already exists, and was not recorded: name another folder"
            raise InputError(InputProblem(message=message, file=str(folder)))
        for file in (folder / REVIEW, folder / EXPECTED, *(folder / CLUSTER).glob("*.yaml")):
            file.unlink(missing_ok=True)
        return folder


def _name(number: int, attributes: Attributes) -> str:
    parts = (f"{number:03}", attributes.kind.kind, attributes.namespace, attributes.name or "unnamed")
    return "-".join(_FOREIGN.sub("-", part) for part in parts if part)[:120]


def _redacted(attributes: Attributes) -> Attributes:
    return replace(
        attributes,
        object=without_confidential(attributes.object),
        old_object=without_confidential(attributes.old_object),
    )


def _objects_with_namespaces(cluster: RecordingCluster) -> Iterator[JSON]:
    """Yield the recorded objects with their namespaces. Assumed Namespaces are left out."""
    for gvk, namespace, obj in cluster.recorded_objects():
        if gvk.kind == "Namespace" and not cluster.file_of_object(obj):
            continue
        metadata = obj.get("metadata") or {}
        yield {**obj, "metadata": {**metadata, **({"namespace": namespace} if namespace else {})}}


def _by_kind(objects: Sequence[JSON]) -> Mapping[str, Sequence[JSON]]:
    kinds: dict[str, list[JSON]] = {}
    for obj in objects:
        kinds.setdefault(_FOREIGN.sub("-", str(obj.get("kind") or "unknown")), []).append(obj)
    return kinds


def _write(file: Path, values: Sequence[JSON]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file_of_folder(file, "---\n".join(map(yamlfile.dump, values)))
