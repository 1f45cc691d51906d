"""`claimgate replay` and a running server answer the same: recorded reviews, cases of suites, random reviews.

`python -m tests.fuzz.doors 10000` does the same for longer.
"""

from tests.fuzz.doors.comparison import compare

REVIEWS, SEED = 200, 5
"""This seed gives all outcomes below, several times each."""


def test_replay_answers_as_the_server(tmp_path):
    result = compare(REVIEWS, SEED, tmp_path, most=1)
    assert [difference.told() for difference in result.differences] == []
    assert result.compared > REVIEWS * 0.9
    assert {"allowed", "denied", "warnings", "patch", "auditAnnotations"} <= set(result.outcomes)
