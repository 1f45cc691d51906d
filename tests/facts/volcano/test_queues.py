"""Queues of Volcano: each is asked about by many others, and for every resource."""

from collections.abc import ItemsView
from typing import Any

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
