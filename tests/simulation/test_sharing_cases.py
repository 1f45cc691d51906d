"""What claimgate finds in the faults and traps of shared GPUs, schedulers, updates and releases in tests/data/sharing.

`python -m tests.simulation.test_sharing_cases` prints a table by kind of fault, and with `-v` each wrong case.
"""

import sys
from pathlib import Path

from tests.fault_cases import judge_case, read_cases, table

CASES = read_cases(Path(__file__).parents[1] / "data" / "sharing" / "cases.jsonl")
LEAST = {"certain": 62, "advice": 13}
"""The least number of faults that must be found. Raise it with each rule."""
OF_ANOTHER_KIND = {"karpenter-tolerate-all"}
"""Cases in which another rule may use one of the words, for a toleration of every taint"""


def test_mistakes_get_findings_and_valid_look_alikes_get_none():
    verdicts = [judge_case(case) for case in CASES]
    shown = table(CASES, verdicts)
    wrong = {case["id"]: each.wrong for case, each in zip(CASES, verdicts, strict=True) if each.wrong}
    assert set(wrong) == OF_ANOTHER_KIND, (shown, wrong)
    for severity, least in LEAST.items():
        told = [
            each.told
            for case, each in zip(CASES, verdicts, strict=True)
            if case["severity"] == severity and not case["trap"]
        ]
        assert sum(told) >= least, (severity, shown)


if __name__ == "__main__":
    judged = [judge_case(case) for case in CASES]
    print(table(CASES, judged))
    for case, each in zip(CASES, judged, strict=True):
        if "-v" in sys.argv and (each.wrong or each.answer or not each.told):
            print(case["id"], case["severity"], "told" if each.told else "not told", each.wrong, "|", each.answer)
