"""Only changed values are written."""

from __future__ import annotations

from tests.rows import all_rows
from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.patch.write_back import write_back_changes

SHOWN = {"name": "c", "policy": "Always", "limits": {"gpu": "8"}, "env": [{"name": "a"}, {"name": "b", "value": "1"}]}
WRITTEN = {"name": "c", "limits": {"gpu": 8}, "env": [{"name": "a", "value": ""}, {"name": "b", "value": "1"}]}
A, B = WRITTEN["env"]

CHANGES = {
    "nothing": (SHOWN, WRITTEN),
    "an equal value": ({**SHOWN, "limits": {"gpu": "8"}}, WRITTEN),
    "a default that is set again": ({**SHOWN, "policy": "Always"}, WRITTEN),
    "another value than the default": ({**SHOWN, "policy": "Never"}, {**WRITTEN, "policy": "Never"}),
    "a value beside others": (
        {**SHOWN, "limits": {"gpu": "8", "cpu": "1"}},
        {**WRITTEN, "limits": {"gpu": 8, "cpu": "1"}},
    ),
    "a removed default": ({key: value for key, value in SHOWN.items() if key != "policy"}, WRITTEN),
    "a removed value": ({**SHOWN, "limits": {}}, {**WRITTEN, "limits": {}}),
    "a new element before others": (
        {**SHOWN, "env": [{"name": "z"}, *SHOWN["env"]]},
        {**WRITTEN, "env": [{"name": "z"}, A, B]},
    ),
    "a removed element": ({**SHOWN, "env": [{"name": "b", "value": "2"}]}, {**WRITTEN, "env": [{**B, "value": "2"}]}),
    "elements in another order": ({**SHOWN, "env": [*reversed(SHOWN["env"])]}, {**WRITTEN, "env": [B, A]}),
}


@all_rows(("changed", "expected"), CHANGES.values(), ids=CHANGES)
def test_unchanged_values_keep_their_spelling(changed: JSON, expected: JSON) -> None:
    made = write_back_changes(WRITTEN, SHOWN, changed, Deadline())
    assert made == expected
    assert expected != WRITTEN or made is WRITTEN
