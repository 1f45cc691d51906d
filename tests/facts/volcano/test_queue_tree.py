"""The queues of a cluster: parents and children, and the time to read the amounts of many queues."""

from collections.abc import ItemsView
from typing import Any

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.facts.volcano.queue_tree import QueueTree, read_queues
from webhook.facts.volcano_objects.types import Queue
from webhook.typed.view import ReadingContext


class Walked(dict[str, Any]):
    walks = 0

    def items(self) -> ItemsView[str, Any]:
        self.walks += 1
        return super().items()


def test_the_amounts_of_a_queue_are_read_once() -> None:
    """With 2,000 resources above 50 queues, reading each resource for each queue took over a minute."""
    capability = Walked({"nvidia.com/gpu": "8", "cpu": "no amount"})
    queue = Queue.of({"metadata": {"name": "research"}, "spec": {"capability": capability}})
    assert [str(queue.spec.capability["nvidia.com/gpu"]) for _ in range(3)] == ["8"] * 3
    assert list(queue.spec.capability) == ["nvidia.com/gpu"]
    assert capability.walks == 1


def test_amounts_are_read_until_the_deadline() -> None:
    capability = {f"example.com/device-{number}": "1" for number in range(1000)}
    queue = Queue.of({"spec": {"capability": capability}}, (), ReadingContext(Deadline(at=0)))
    with pytest.raises(BudgetExceeded):
        _ = queue.spec.capability


def queues(**parents: str) -> QueueTree:
    listed: list[JSON] = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"parent": parent, "capability": {"cpu": 1}} if parent else {},
        }
        for name, parent in parents.items()
    ]
    return subject(None, *listed).once(read_queues)


def test_a_queue_has_its_parents_and_children() -> None:
    tree = queues(a="", b="a", c="b", d="a")
    assert [queue.name for queue in tree.ancestors("c")] == ["b", "a"]
    assert [queue.name for queue in tree.children_of("a")] == ["b", "d"]
    assert [queue.name for queue in tree.siblings(tree.all["b"])] == ["d", "b"]
    assert sorted(queue.name for queue in tree.topmost_descendants_with_limit("a", "cpu")) == ["b", "d"]
    assert list(tree.ancestors("unknown")) == []


def test_a_cycle_ends() -> None:
    circle = queues(a="b", b="c", c="a")
    assert [queue.name for queue in circle.ancestors("a")] == ["b", "c"]
    assert [queue.name for queue in circle.queue_and_ancestors("a")] == ["a", "b", "c"]
    assert list(circle.topmost_descendants_with_limit("a", "memory")) == []
