"""Objects without nulls and directives are recognized without a walk."""

import pytest

from webhook.deadline import Deadline
from webhook.facts.train_job_pods.train_job_and_runtime_fields import has_no_null_or_dollar_key

BARE = {
    "texts of many lengths": {"a": "x" * 31, "b": "x" * 32, "c": "x" * 256, "d": "x" * 65_536},
    "text beyond ASCII": {"ä": "À la carte, null, \u00c0\u0300"},
    "a dollar inside a text": {"command": ["bash", "-c", "echo $HOME"]},
    "not an object": 1.5,
}
OTHERS = {
    "a null in a list": {"a": [{"b": None}]},
    "a null itself": None,
    "a key of a directive": {"a": {"$patch": "delete"}},
    "a key of 32 characters": {"$" + "k" * 31: 1},
    "a key of 300 characters": {"$" + "k" * 299: 1},
    "a key of 70,000 characters": {"a": [{"$" + "k" * 69_999: 1}]},
    "a number that cannot be written": {"a": 1 << 70},
    "half of a surrogate pair": {"a": "\ud800"},
}


@pytest.mark.parametrize("value", BARE.values(), ids=BARE)
def test_a_bare_value_is_reported(value):
    assert has_no_null_or_dollar_key(value, Deadline())


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
def test_a_value_that_may_have_more_fields_is_checked(value):
    assert not has_no_null_or_dollar_key(value, Deadline())
