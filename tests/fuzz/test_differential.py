"""Earlier reviews change no answer: random reviews are compared with a fresh evaluation of each.

`python -m tests.fuzz.differential 20000` does the same for longer.
"""

import json
from dataclasses import replace

from tests.fuzz.differential.answers import fresh_answers, warm_answers
from tests.fuzz.differential.comparison import Comparison, compare, outcomes
from tests.fuzz.differential.epochs import Epochs
from tests.literals import validating

REVIEWS, MOST_SEEDS = 40, 20
OUTCOMES = {"denied", "patched", "audited", "failed", "problems", "namespace absent"}
RULE = "namespaceObject.metadata.name == 'a'"


def test_no_answer_depends_on_earlier_reviews(tmp_path):
    """The cases of suites are drawn too, so a changed suite changes what a seed draws. More seeds are drawn until the
    reviews have had every outcome.
    """
    missing = set(OUTCOMES)
    for seed in range(MOST_SEEDS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        result = compare(REVIEWS, seed, folder, most=1)
        assert [difference.told() for difference in result.differences] == []
        assert result.compared == REVIEWS
        missing -= set(result.outcomes)
        if not missing:
            break
    assert missing == set(), "no review had this outcome: draw more seeds"


def test_a_different_answer_is_found_and_reported(tmp_path):
    epoch = Epochs(3, tmp_path).draw(10)
    right = fresh_answers(epoch, [(step,) for step in epoch.steps])
    result = Comparison()
    result.add(epoch, [*right[:4], "another answer", *right[5:]], right)
    (difference,) = result.differences
    assert (difference.number, difference.step) == (5, epoch.steps[4])
    assert "+another answer" in difference.told()


def test_replay_and_server_use_the_cluster_of_the_same_step(tmp_path):
    file = tmp_path / "policies.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": validating(RULE)}))
    epoch = replace(Epochs(3, tmp_path).draw(30), policies=(file,))
    empty = replace(epoch, views=tuple(replace(view, objects=(), is_complete=False) for view in epoch.views))
    one_each = [(step,) for step in epoch.steps]
    assert list(warm_answers(epoch)) != list(warm_answers(empty))
    assert fresh_answers(epoch, one_each) != fresh_answers(empty, one_each)


def test_all_outcomes_of_an_answer_are_found():
    assert set(outcomes("(False, Status(...))\n[]\nDecision(evaluation='error')")) == {"denied", "failed"}
