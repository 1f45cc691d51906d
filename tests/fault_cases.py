"""Manifests with faults, and traps, which only look faulty. Each is audited with advice and simulated here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.literals import TABLE, shipped_policies
from webhook.admission.fixtures import attributes_of_object
from webhook.admission.phases import LocalAnswerer, run_phases
from webhook.apimachinery.attributes import JSON
from webhook.cluster import Cluster
from webhook.cluster.files import FilesCluster
from webhook.cluster.layered import ClusterWithAssumedNamespaces
from webhook.cluster.recording import RecordingCluster
from webhook.evaluation.review_options import ReviewOptions
from webhook.facts.pods.unread_pods import looks_like_pods, makes_no_pods
from webhook.report.finding import Finding, Result, findings_of_object, subject_of_request
from webhook.report.rule import RulesOfPolicies
from webhook.simulation.outcome import ANSWERS, ObjectPlace, simulate_job
from webhook.yamltext import yamlfile
from webhook.yamltext.source_line import Place

_OPTIONS: Final = ReviewOptions(advice=True, sees_all_namespaces=True)
_SIMULATED: Final = ReviewOptions(sees_all_namespaces=True)
_WORDS: Final = {"can-start": "can start", "nothing-found": "nothing found"}
_OPEN: Final = frozenset(("can start", "unknown"))
"""Answers for which `nothing found that stops it; nodes …` is also right."""


class Judged(NamedTuple):
    """The texts of the findings about a case, and the answers of `simulate`."""

    texts: Sequence[str]
    answers: frozenset[str]


def read_cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def judge(files: Mapping[str, str], context: Mapping[str, str], *, is_whole: bool = False) -> Judged:
    own = [each for text in files.values() for each in _documents(text)]
    others = (each for text in context.values() for each in _documents(text))
    cluster = ClusterWithAssumedNamespaces(FilesCluster([*own, *others], is_whole=is_whole))
    findings, answers = list[str](), set[str]()
    for obj in (each.value for each in own):
        findings += (f"{each.rule.id} {each.message}" for each in _findings(obj, cluster, _OPTIONS))
        group, kind = obj["apiVersion"].rpartition("/")[0], obj["kind"]
        row = TABLE.row(group, kind)
        if row is not None or (looks_like_pods(obj) and not makes_no_pods(group, kind, TABLE)):
            answers.add(_answer(obj, cluster))
    return Judged(findings, frozenset(answers))


def _documents(text: str) -> Iterator[yamlfile.Document]:
    """Yield the documents of a text that are objects."""
    for document in yamlfile.load(text, "app.yaml"):
        if isinstance(document.value, dict):
            yield document


def _findings(obj: JSON, cluster: Cluster, options: ReviewOptions) -> Iterable[Finding]:
    attributes = attributes_of_object(obj, TABLE.row)
    policies = shipped_policies()
    outcome = run_phases(attributes, "auto", LocalAnswerer(policies=policies, cluster=cluster, options=options))
    told = findings_of_object(
        (*outcome.decisions, *outcome.further), subject_of_request(attributes), _place, RulesOfPolicies(policies)
    )
    return [each for each in told if each.result in (Result.FAIL, Result.WARN)]


def findings_of_one_object(obj: JSON) -> Iterable[Finding]:
    """Return the findings about an object in a cluster without other objects."""
    return _findings(obj, ClusterWithAssumedNamespaces(FilesCluster([obj])), _SIMULATED)


def findings_among(obj: JSON, others: Iterable[JSON]) -> Sequence[str]:
    """Return the texts of findings about an object in a cluster with some other objects and nothing else."""
    documents = [yamlfile.dump(each) for each in (obj, *others)]
    known = [document for text in documents for document in _documents(text)]
    cluster = ClusterWithAssumedNamespaces(FilesCluster(known, is_whole=True))
    return [each.rule.id for each in _findings(obj, cluster, _OPTIONS)]


def _place(_: object, _words: object = ()) -> Place:
    return Place(file="app.yaml", line=1, column=1)


def _answer(obj: JSON, cluster: Cluster) -> str:
    """Return the answer of `simulate`, in the words that cases use."""
    attributes, located = attributes_of_object(obj, TABLE.row), ObjectPlace(_place(""), _place)
    answer = simulate_job(attributes, located, RecordingCluster(cluster), shipped_policies(), _SIMULATED).answer
    assert answer in ANSWERS
    return _WORDS.get(answer, answer)


def holds_words(texts: Iterable[str], words: Sequence[str]) -> bool:
    return any(all(word in text for word in words) for text in texts)


class Verdict(NamedTuple):
    """Whether the fault was found, which findings are wrong, and whether the answer of `simulate` is right."""

    told: bool
    wrong: str
    answer: str


def judge_case(case: Mapping[str, Any]) -> Verdict:
    said = judge(case["files"], case["context"] or {}, is_whole=case["whole"])
    spoken = [word for word in case["never"] if any(word in text for text in (*said.texts, *said.answers))]
    if spoken:
        return Verdict(told=False, wrong=f"says {', '.join(spoken)}", answer="")
    answer = _wrong_answer(case.get("simulate") or "", said.answers)
    if case["trap"]:
        return Verdict(told=True, wrong="", answer=answer)
    files, context = case.get("fixed"), case.get("fixed_context")
    mended = judge(files or case["files"], context or case["context"] or {}, is_whole=case["whole"])
    wrong = "speaks of the mended variant" if (files or context) and holds_words(mended.texts, case["must"]) else ""
    return Verdict(told=holds_words(said.texts, case["must"]), wrong=wrong, answer=answer)


def _wrong_answer(right: str, given: frozenset[str]) -> str:
    """Return the wrong answer, or "". An unknown answer does not count as wrong."""
    wanted = set(right.split("|")) - {""}
    if not wanted or wanted & given or ("nothing found" in given and wanted & _OPEN):
        return ""
    return f"{', '.join(sorted(given)) or 'nothing'} for {right}"


def table(cases: Sequence[Mapping[str, Any]], verdicts: Sequence[Verdict]) -> str:
    """Return a table. Each line has the numbers of cases, found faults, wrong findings, and wrong answers."""
    columns = ("cases", "told", "wrong", "wrong answer")
    counts: dict[str, Counter[str]] = {}
    for case, verdict in zip(cases, verdicts, strict=True):
        row = counts.setdefault(f"{case['kind_of_fault']}, {case['severity']}", Counter())
        row.update(
            {"cases": 1, "told": verdict.told, "wrong": bool(verdict.wrong), "wrong answer": bool(verdict.answer)}
        )
    lines = [f"{'':44}{''.join(f'{each:>14}' for each in columns)}"]
    lines += (f"{name:44}{''.join(f'{row[each]:>14}' for each in columns)}" for name, row in sorted(counts.items()))
    return "\n".join(lines)
