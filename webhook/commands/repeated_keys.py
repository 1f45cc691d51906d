"""Reports keys that a mapping of an object has twice, as findings of an audit.

kubectl sends only the last value, without a warning, so a Pod can lose its GPUs. Policies cannot check this, because
the decoded object does not have the first value. If the last value contains the first, nothing is lost, and the key
is not reported. In files that kustomize reads, a repeated key is always reported, because kustomize refuses the file.
The annotations of an object are an exception, because kustomize joins them.
Templates of charts write default labels and annotations above those of the user, which helm prefers. Such a key of a
rendered chart is not reported.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from webhook.apimachinery.attributes import JSON, Phase
from webhook.apimachinery.paths import get, parse_path, path_as_text
from webhook.errors import InputProblem
from webhook.input import documents
from webhook.report.finding import Finding, Result, Subject
from webhook.report.rule import Rules
from webhook.rules.catalogue import REPEATED_KEY
from webhook.rules.decisions import Decision, ValidationAction
from webhook.rules.problem import Problem
from webhook.text.wording import some_of
from webhook.yamltext.reading import NO_SEPARATOR
from webhook.yamltext.source_line import Place

_FIX: Final = "keep one of them, or merge their values"
_FIX_OF_DOCUMENT: Final = "write `---` above this line"
_AT_BEGIN: Final = "apiVersion"
"""The path of a finding about the beginning of an object."""
_BY_KUBECTL: Final = ", and kubectl uses the last value"
_BY_OTHERS: Final = ", and most programs use only the last value"
_KEY: Final = "key `"
_EXPECTED: Final = "; expected it once"
_INDEX: Final = re.compile(r"\[[0-9]{1,9}\]")
_OVERRIDDEN: Final = ("metadata.annotations", "metadata.labels")
_MOST_KEYS: Final = 5
"""The most additional keys, or items of a list, that one message names."""


class RepeatedKeys:
    """The repeated keys of all inputs.

    `is_object` says whether the value of an input is an audited object.

    Attributes:
        elsewhere: repeated keys outside of audited objects, which are reported as warnings.
    """

    def __init__(self, inputs: documents.InputDocuments, is_object: Callable[[JSON], bool], rules: Rules) -> None:
        self._rules = rules
        self._of: dict[tuple[str, int], list[InputProblem]] = {}
        self.elsewhere: list[InputProblem] = []
        inputs_by_source = _inputs_by_source(inputs) if inputs.repeated else {}
        for problem in inputs.repeated:
            holder = _input_that_holds_key(problem, inputs_by_source.get(problem.file, ()))
            if holder is not None and is_object(holder.value):
                self._of.setdefault((holder.source, holder.index), []).append(problem)
            else:
                self.elsewhere.append(_with_reader(problem, None if holder is None else holder.value))

    def has_several_objects(self, each: documents.InputDocument) -> bool:
        """Without a line `---`, keys of several objects are in one mapping."""
        problems = self._of.get((each.source, each.index), ())
        return any(problem.message.startswith(NO_SEPARATOR) for problem in problems)

    def findings(self, each: documents.InputDocument, subject: Subject) -> Iterator[Finding]:
        """Yield a finding for each mapping with repeated keys. Items of a list share a finding for the same mistake."""
        by_mapping: dict[tuple[str, str], list[InputProblem]] = {}
        for problem in self._of.get((each.source, each.index), ()):
            if problem.message.startswith(NO_SEPARATOR):
                yield self._finding(problem, _AT_BEGIN, problem.message, _FIX_OF_DOCUMENT, subject)
                continue
            if problem.path.endswith(_OVERRIDDEN) and Path(problem.file).is_dir():
                continue  # of a chart, because the objects of a rendered folder have its path
            key, _, rest = problem.message.removeprefix(_KEY).partition("`")
            place = _INDEX.sub("[]", problem.path)
            by_mapping.setdefault((place, rest if key else problem.message), []).append(problem)
        for same in by_mapping.values():
            yield self._finding_for_mapping(same, each, subject)

    def _finding_for_mapping(
        self, same: Sequence[InputProblem], each: documents.InputDocument, subject: Subject
    ) -> Finding:
        problem = _with_reader(same[0], each.value)
        message = problem.message.removesuffix(_EXPECTED)
        path = path_as_text(parse_path(problem.path)[len(each.path) :])
        more = [
            f"`{other.message.removeprefix(_KEY).partition('`')[0]}`"
            if other.path == problem.path
            else path_as_text(parse_path(other.path)[len(each.path) :])
            for other in same[1:]
        ]
        if others := [*dict.fromkeys(more)]:
            message = f"{message} (likewise {some_of(others, _MOST_KEYS)})"
        return self._finding(problem, path, message, _FIX, subject)

    def _finding(self, problem: InputProblem, path: str, message: str, fix: str, subject: Subject) -> Finding:
        place = Place(file=problem.file, line=problem.line, column=problem.column)
        reported = Problem(code=REPEATED_KEY.id, path=path, message=message, fix=fix)
        return finding_without_policy(self._rules, reported, subject, place)


def _inputs_by_source(
    inputs: documents.InputDocuments,
) -> Mapping[str, Sequence[tuple[tuple[int, int], documents.InputDocument]]]:
    """Return the inputs of each source, sorted by their places."""
    by_source: dict[str, list[tuple[tuple[int, int], documents.InputDocument]]] = {}
    for each in inputs.documents:
        place = each.place()
        by_source.setdefault(each.source, []).append(((place.line, place.column), each))
    return by_source


def _input_that_holds_key(
    problem: InputProblem, inputs: Sequence[tuple[tuple[int, int], documents.InputDocument]]
) -> documents.InputDocument | None:
    """Return the last input that begins before the key."""
    index = bisect_right(inputs, (problem.line, problem.column), key=lambda each: each[0])
    return inputs[index - 1][1] if index else None


def _with_reader(problem: InputProblem, value: JSON) -> InputProblem:
    """Return the problem with a clause that is true for the program that reads the value. An object that kubectl sends
    has a name. A value without a kind is not an object, but for example the values of a chart.
    """
    if any(get(value, ("metadata", field)) for field in ("name", "generateName")):
        return problem
    clause = _BY_OTHERS if get(value, ("kind",)) else ""
    return replace(problem, message=problem.message.replace(_BY_KUBECTL, clause))


def finding_without_policy(rules: Rules, problem: Problem, subject: Subject, place: Place) -> Finding:
    """Return the finding of a rule in `RULES_OF_FILES`, which no policy has."""
    rule = rules[problem.code]
    decision = Decision(
        policy=rule.policy,
        rule=rule.id,
        binding="",
        path=problem.path,
        evaluation="deny",
        actions=(ValidationAction.WARN,),
        severity=rule.severity,
        category=rule.category,
        problems=(problem,),
    )
    return Finding(
        result=Result.WARN,
        rule=rule,
        subject=subject,
        place=place,
        phase=Phase.VALIDATE,
        decision=decision,
        problem=problem,
    )
