"""Queues of Volcano: each is asked about by many others, and for every resource."""

from collections.abc import ItemsView
from typing import Any

import pytest

from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.facts.volcano.queues import Queue


class Walked(dict[str, Any]):
    """A map that counts how often its entries are listed."""

    walks = 0

    def items(self) -> ItemsView[str, Any]:
        self.walks += 1
        return super().items()


def test_the_amounts_of_a_queue_are_read_once():
    """A queue of 2,000 resources above 50 others took over a minute, when each was read for each of the others."""
    capability = Walked({"nvidia.com/gpu": "8", "cpu": "no amount"})
    queue = Queue(name="research", value={"spec": {"capability": capability}})
    assert [str(queue.amounts("capability")["nvidia.com/gpu"]) for _ in range(3)] == ["8"] * 3
    assert list(queue.amounts("capability")) == ["nvidia.com/gpu"]
    assert capability.walks == 1


def test_amounts_are_read_as_long_as_there_is_time():
    capability = {f"example.com/device-{number}": "1" for number in range(1000)}
    queue = Queue(name="research", value={"spec": {"capability": capability}}, deadline=Deadline(at=0))
    with pytest.raises(BudgetExceeded):
        queue.amounts("capability")
