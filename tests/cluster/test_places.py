"""Which namespace and name a lookup of an object uses."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.cluster.lookup import namespace_and_name


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"namespace": "a", "name": "b"}, ("a", "b")),
        ({"name": "b"}, ("", "b")),
        ({"namespace": None, "name": 7}, ("", "7")),
        ({"namespace": ["a"], "name": {"b": 1}}, ("['a']", "{'b': 1}")),
        (None, ("", "")),
    ],
)
def test_a_place_is_two_texts(metadata: Any, place: tuple[str, str]) -> None:
    assert namespace_and_name({"metadata": metadata}) == place
