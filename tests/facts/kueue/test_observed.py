"""The findings about 121 objects, compared with the results of the real Kueue."""

from __future__ import annotations

import re

from tests.facts.kueue.observed import judged, rows
from webhook.rules.decisions import Verdict

DIFFERENT = {
    "kueue/jobset/portable-gpu": "never, and denied besides because the API server refuses its pods",
    "kueue/dra/template-missing": "not now, told by device-claims/claim-exists, to which the rule of Kueue yields",
    "kueue/deployment/labelled": "unmanaged only because no controller created its pods in the test; Kueue queues each pod",
}
FIELD = re.compile(r"(?:spec|metadata)(?:[.][a-zA-Z]+|\[[^\]]+\])*")


def said(verdict: Verdict) -> str:
    if not verdict.allowed:
        return "refused"
    codes = {re.sub(r"/.*", "", code) for code in spoken(verdict)}
    for name in ("never", "not-now", "unmanaged"):
        if f"kueue-{name}" in codes:
            return name
    return "silent"


def spoken(verdict: Verdict) -> list[str]:
    return [each.rule for each in verdict.decisions if each.evaluation in ("deny", "error")]


EXPECTED = {"admitted": "silent", "accepted": "silent"}


def test_every_observed_object_gets_its_outcome() -> None:
    wrong = {}
    for row in rows():
        verdict = judged(row)
        expected = EXPECTED.get(row["class"], row["class"])
        if said(verdict) != expected:
            wrong[row["id"]] = (expected, said(verdict), spoken(verdict), verdict.warnings)
    assert {name: each for name, each in wrong.items() if name not in DIFFERENT} == {}
    assert set(wrong) == set(DIFFERENT)


def fields(text: str) -> set[str]:
    return {field.replace('"', "") for field in FIELD.findall(text)}


def test_a_refusal_names_the_field_that_kueue_names() -> None:
    other = {}
    for row in rows():
        if row["class"] == "refused":
            verdict = judged(row)
            named = fields(row["observed"]["response"]["message"])
            ours = {path for each in verdict.decisions for problem in each.problems for path in fields(problem.path)}
            ours |= {path for each in verdict.decisions for path in fields(each.message)}
            if not any(one.startswith(path) or path.startswith(one) for one in named for path in ours):
                other[row["id"]] = named, ours
    assert other == {}
