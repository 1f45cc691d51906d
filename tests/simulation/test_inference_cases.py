"""What claimgate finds in the faults and traps of inference servers in tests/data/inference.

`python -m tests.simulation.test_inference_cases` prints a table by kind of fault, and with `-v` each wrong case.
"""

import sys
from pathlib import Path

import pytest

from tests.fault_cases import judge_case, read_cases, table

CASES = read_cases(Path(__file__).parents[1] / "data" / "inference" / "cases.jsonl")
LEAST = {"certain": 0.98, "advice": 0.8}
"""The least share of faults that must be found"""


@pytest.mark.slow
def test_mistakes_get_findings_and_valid_look_alikes_get_none():
    verdicts = [judge_case(case) for case in CASES]
    print(table(CASES, verdicts))
    wrong = {case["id"]: each.wrong for case, each in zip(CASES, verdicts, strict=True) if each.wrong}
    assert wrong == {}
    for severity, least in LEAST.items():
        told = [
            each.told
            for case, each in zip(CASES, verdicts, strict=True)
            if case["severity"] == severity and not case["trap"]
        ]
        assert sum(told) >= least * len(told), severity


if __name__ == "__main__":
    named = [
        case
        for case in CASES
        if not (chosen := [each for each in sys.argv[1:] if each != "-v"]) or case["id"] in chosen
    ]
    judged = [judge_case(case) for case in named]
    print(table(named, judged))
    for case, each in zip(named, judged, strict=True):
        if "-v" in sys.argv and (each.wrong or each.answer or not each.told):
            print(case["id"], case["severity"], "told" if each.told else "not told", each.wrong, "|", each.answer)
