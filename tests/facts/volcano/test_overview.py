"""The tree of Volcano's queues, with the greatest amount that each queue could have."""

from webhook.cluster.files import FilesCluster
from webhook.facts.view import ClusterView
from webhook.facts.volcano.queue_tree import read_volcano_overview


def queue(name, parent="", state="Open", deserved=None, allocated=None, **capability):
    spec = {"parent": parent, "capability": capability, "deserved": deserved or {}}
    status = {"state": state, "allocated": allocated or {}}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
        "status": status,
    }


def rows(*queues):
    return read_volcano_overview(ClusterView(FilesCluster(queues), "")).rows


def test_parents_are_listed_before_their_children():
    made = rows(queue("b", "a"), queue("c", "root"), queue("root"), queue("a"), queue("d", "b"))
    assert [(row.name, row.parent, row.depth) for row in made] == [
        ("root", "", 0),
        ("a", "root", 1),
        ("b", "a", 2),
        ("d", "b", 3),
        ("c", "root", 1),
    ]


def test_a_queue_without_root_or_with_an_unknown_parent_is_at_the_top():
    assert [(row.name, row.depth) for row in rows(queue("b", "elsewhere"), queue("a"))] == [("a", 0), ("b", 0)]


def test_the_maximum_is_that_of_the_tightest_parent_queue():
    made = rows(queue("a", cpu="8"), queue("b", "a", cpu="16", memory="1Gi"), queue("c", "b"))
    assert {row.name: {each.resource: each.format_as_quantity(each.most) for each in row.amounts} for row in made} == {
        "a": {"cpu": "8"},
        "b": {"cpu": "8", "memory": "1Gi"},
        "c": {"cpu": "8", "memory": "1Gi"},
    }


def test_amounts_include_the_deserved_share_and_the_usage():
    [made] = rows(queue("a", deserved={"cpu": "1500m"}, allocated={"cpu": "2"}, cpu="4"))
    [cpu] = made.amounts
    assert (cpu.nominal, cpu.used, cpu.most) == (1500, 2000, 4000)


def test_closed_queues_and_cycles_can_admit_nothing():
    closed, first, second = rows(queue("a", state="Closed"), queue("b", "c"), queue("c", "b"))
    assert closed.obstacles == ("accepts no jobs because its state is Closed",)
    assert first.obstacles == second.obstacles != ()
    assert (first.name, second.name) == ("b", "c")
