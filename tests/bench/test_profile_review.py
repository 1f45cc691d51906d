"""The profile of a review counts the right calls, and a recorded review can be profiled."""

import json
from pathlib import Path

import pytest

from tests.bench.profile_review import answering, own_times, passed, show
from webhook.apimachinery.attributes import Phase
from webhook.apimachinery.paths import get
from webhook.errors import InputError
from webhook.settings.shared import Settings

RECORDED = Path(__file__).parents[1] / "data/reviews/controller-replicaset-controller-create-pods.json"
POLICIES = Settings(only=(Path(__file__).parents[2] / "policies/claims-exactly-one",))


def test_only_functions_of_the_project_are_counted():
    result = passed(lambda: [json.loads("{}"), get({"a": 1}, ("a",)), get({"a": 1}, ("b",))])
    assert (result.modules, result.functions) == (
        {"webhook.apimachinery.paths"},
        {("webhook.apimachinery.paths", "get")},
    )
    assert (result.calls, result.changes) == (2, 1)


@pytest.mark.parametrize("phase", Phase)
def test_a_recorded_review_is_answered_from_bytes_to_bytes(phase):
    response = json.loads(answering(str(RECORDED), POLICIES, phase)())["response"]
    sent = json.loads(RECORDED.read_text())["request"]["uid"]
    assert (response["uid"], response["allowed"]) == (sent, True)


def test_profiled_times_name_functions_with_their_lines():
    rows = own_times(answering(str(RECORDED), POLICIES, Phase.VALIDATE), 3)
    assert rows == sorted(rows, reverse=True)
    assert any(name.startswith("webhook/admission/decode.py:") and calls == 1 for _, calls, name in rows)


def test_the_figures_are_printed(capsys):
    show(answering(str(RECORDED), POLICIES, Phase.VALIDATE), times=3, lines=5)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].endswith("ms a review, median of 3")
    assert printed[1].endswith("changes of module")
    assert len(printed) == 9


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InputError):
        answering(str(tmp_path / "absent.json"), POLICIES, Phase.VALIDATE)
