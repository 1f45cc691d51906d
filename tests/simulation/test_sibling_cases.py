"""What claimgate finds in variations of faults and traps, in tests/data/siblings.

A fault has words that one finding must have (`must`), and a trap has words that no finding may have (`never`). Cases with
a mended variant or an answer of `simulate` are judged as in tests/data/inference. Others ignore upper case.
`python -m tests.simulation.test_sibling_cases` names the wrong cases.
"""

import sys
from pathlib import Path

import pytest

from tests.fault_cases import holds_words, judge, judge_case, read_cases

CASES = read_cases(Path(__file__).parents[1] / "data" / "siblings" / "cases.jsonl")


def is_right(case):
    """A fault is found and its mended variant has no such finding, or a trap gets no finding about it."""
    if not {"fixed", "fixed_context", "simulate"}.isdisjoint(case):
        verdict = judge_case(case)
        return verdict.told and not verdict.wrong and not verdict.answer
    said = judge(case["files"], case["context"], is_whole=case["whole"])
    texts = [each.lower() for each in said.texts]
    if case["trap"]:
        return not any(holds_words(texts, [word]) for word in case["never"])
    return holds_words(texts, case["must"])


@pytest.mark.slow
def test_variations_of_mistakes_get_findings_and_valid_look_alikes_get_none():
    assert [case["id"] for case in CASES if not is_right(case)] == []


if __name__ == "__main__":
    wrong = [case["id"] for case in CASES if not is_right(case)]
    sys.stdout.write("".join(f"{each}\n" for each in (f"{len(CASES) - len(wrong)} of {len(CASES)}", *wrong)))
