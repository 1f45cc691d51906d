"""What claimgate finds in variations of faults and traps, and what `simulate` and `why` say of them, in
tests/data/siblings.

A fault has words that one finding must have (`must`), and a trap has words that no finding may have (`never`). Cases with
a mended variant or an answer of `simulate` are judged as in tests/data/inference. Others ignore upper case.
`python -m tests.simulation.test_sibling_cases` names the wrong cases.
"""

import sys
from pathlib import Path

import pytest

from tests.fault_cases import holds_words, judge, judge_case, read_cases
from tests.simulation.test_truth_cases import mistakes_of_answer
from webhook.cli import run_command_line
from webhook.yamltext import yamlfile

CLUSTERS = Path(__file__).parents[1] / "data" / "siblings" / "clusters.yaml"
[_CLUSTERS] = yamlfile.read(CLUSTERS)
IN_CLUSTERS, ASKED = _CLUSTERS.value["cases"], _CLUSTERS.value["why"]
CASES = read_cases(Path(__file__).parents[1] / "data" / "siblings" / "cases.jsonl")


def is_right(case):
    """Return whether the findings about a case are right: a fault is found, but not in its mended variant, and a trap
    is not reported.
    """
    if not {"fixed", "fixed_context", "simulate"}.isdisjoint(case):
        verdict = judge_case(case)
        return verdict.told and not verdict.wrong and not verdict.answer
    said = judge(case["files"], case["context"], is_whole=case["whole"])
    texts = [each.lower() for each in said.texts]
    if case["trap"]:
        return not any(holds_words(texts, [word.lower()]) for word in case["never"])
    return holds_words(texts, [word.lower() for word in case["must"]])


@pytest.mark.parametrize("case_id", ["f-2-kp-limit-nodes", "r4-vq-ancestor", "f-2-hami-sched"])
def test_a_condition_that_nothing_shows_leaves_the_answer_open(case_id):
    [case] = [each for each in CASES if each["id"] == case_id]
    assert judge(case["files"], case["context"], is_whole=True).answers == {"unknown"}, "see Problem.is_conditional"


@pytest.mark.slow
def test_variations_of_mistakes_get_findings_and_valid_look_alikes_get_none():
    assert [case["id"] for case in CASES if not is_right(case)] == []


@pytest.mark.slow
@pytest.mark.parametrize("case", IN_CLUSTERS, ids=[each["case"] for each in IN_CLUSTERS])
def test_simulate_is_right_about_variations_in_whole_clusters(case, tmp_path):
    assert [*mistakes_of_answer(case, tmp_path)] == [], f"see the case in {CLUSTERS.name}"


@pytest.mark.slow
@pytest.mark.parametrize("case", ASKED, ids=[each["case"] for each in ASKED])
def test_why_names_what_a_cluster_says(case, tmp_path, capsys):
    (tmp_path / "cluster.yaml").write_text("---\n".join(map(yamlfile.dump, case["objects"])))
    code = run_command_line(["why", case["ask"], "-n", "team", "--context", str(tmp_path)])
    text = " ".join(capsys.readouterr().out.split())
    assert code in case["code"], text
    assert [words for words in case["says"] if words not in text] == [], text


if __name__ == "__main__":
    wrong = [case["id"] for case in CASES if not is_right(case)]
    sys.stdout.write("".join(f"{each}\n" for each in (f"{len(CASES) - len(wrong)} of {len(CASES)}", *wrong)))
