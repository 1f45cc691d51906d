"""Facts stay small and end in time, for any object."""

from dataclasses import replace

import pytest

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.errors import BudgetExceeded
from webhook.facts.command_lines import shell
from webhook.facts.command_lines.command import launch_of_json
from webhook.facts.command_lines.shell import ScriptVariables, split_into_commands
from webhook.facts.dra.resource_slices import find_matching_devices
from webhook.facts.gpu.device_pods import count_devices_of_container
from webhook.facts.gpu.resources import read_device_container
from webhook.facts.sandbox import shards
from webhook.facts.view import _MOST_COMPARED, ClusterView
from webhook.text.similar_names import nearest_name
from webhook.typed.pods import Container
from webhook.typed.view import ReadingContext

DOUBLED = [{"name": "E0", "value": "x"}, *({"name": f"E{i}", "value": f"$(E{i - 1})$(E{i - 1})"} for i in range(1, 60))]


@pytest.mark.parametrize(
    "container",
    [
        {"command": ["torchrun", "--nproc_per_node=8", "t.py"], "env": DOUBLED},
        {"command": ["bash", "-c", "A=xxxxxxxxxx\n" + "A=$A$A\n" * 60 + "torchrun t.py $A"]},
        {"command": ["bash", "-c", "A=" + "x" * 60_000 + "\ntorchrun" + " $A" * 60 + " t.py"]},
        {
            "command": ["bash", "-c", "\n".join((f"A='{'x' * 40_000};'", *["eval $A"] * 200, "torchrun t.py"))],
        },
    ],
    ids=["variables of variables", "a script that doubles a text", "one text many times", "scripts in scripts"],
)
def test_too_long_arguments_are_not_read(container):
    assert launch_of_json(container).by == ""


def test_parsing_a_command_line_ends_at_the_deadline():
    with pytest.raises(BudgetExceeded):
        launch_of_json({"command": ["bash", "-c", "true\n" * 10_000]}, Deadline(-1.0))


def test_a_sourced_file_may_set_any_variable_that_was_known():
    variables = ScriptVariables({"A": "1"})
    taken = [
        variables.assign_and_expand_command(command)
        for command in split_into_commands("B=2; . ./env; C=3; run $A $B $C; source x; run $C")
    ]
    assert [words for words in taken if words[:1] == ("run",)] == [("run", "?", "?", "3"), ("run", "?")]


def test_repeatable_options_are_joined_once():
    said = launch_of_json(
        {"command": ["mpirun", *["--mca", "a", "b"] * 3, *["--mca", "rmaps", "oversubscribe"], "python"]}
    )
    assert said.oversubscribed
    assert shell.ReadingBudget().left == shell.ReadingBudget.MOST


def test_a_too_long_name_has_no_similar_name():
    assert nearest_name("a" * 318, ["a" * 317]) == ""
    assert nearest_name("a" * 200, ["a" * 199]) == "a" * 199


def test_a_fact_compares_a_bounded_number_of_names():
    view = ClusterView(FilesCluster(), "team")
    others = [f"name-{i:06}" for i in range(_MOST_COMPARED)]
    assert view.nearest("abcdefg", ["abcdefh"]) == "abcdefh"
    assert view.nearest("qwertyu", others) == ""
    assert view.nearest("abcdefg", ["abcdefh"]) == ""


def test_a_repeated_claim_in_a_template_is_reported_once_for_each_difference():
    claims = [{"name": "a"}, {"name": "a", "resourceClaimName": "x"}]
    template = {"spec": {"containers": [], "resourceClaims": claims}}
    found = shards.ShardTemplate(template).notes_on_patch({"spec": {"hostname": "x"}}, ("at",))
    assert [note.what for note in found] == ["sources"]
    assert (
        shards.ShardTemplate({"spec": {"resourceClaims": claims[1:]}}).notes_on_patch(
            {"spec": {"hostname": "x"}}, ("at",)
        )
        == []
    )


def test_a_patch_of_an_existing_container_gets_no_finding():
    template = {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]}}
    assert (
        shards.ShardTemplate(template).notes_on_patch({"spec": {"containers": [{"name": "b", "image": "i"}]}}, ("at",))
        == []
    )


def test_the_clock_is_read_for_each_name_that_is_compared_with_all_known_names():
    resources = {"limits": {f"nvidia.com/gpux-{i}": 1 for i in range(5)}}
    assert read_device_container(Container.of({"resources": resources}, (), ReadingContext(Late(5)))).requested == ()
    with pytest.raises(BudgetExceeded):
        read_device_container(Container.of({"resources": resources}, (), ReadingContext(Late(4))))


SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {"driver": "d", "pool": {"name": "p", "generation": 1}, "devices": [{"name": f"d{i}"} for i in range(50)]},
}


class Late(Deadline):
    def __init__(self, looks):
        super().__init__()
        self.looks = looks

    def check_clock(self):
        self.looks -= 1
        if self.looks < 0:
            raise BudgetExceeded("operation interrupted")
        self.left = 100


def test_a_timeout_in_a_selector_is_not_a_failure_of_the_selector():
    expression = 'device.attributes["d"].none == 1'
    request = {"name": "r", "exactly": {"deviceClassName": "", "selectors": [{"cel": {"expression": expression}}]}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [request]}},
    }
    asked = subject(claim, SLICE, is_whole=True)
    assert len(find_matching_devices(asked).selections[0].failures) == 1
    for looks in range(8):
        with pytest.raises(BudgetExceeded):
            find_matching_devices(
                replace(asked, cluster=ClusterView(FilesCluster([SLICE], is_whole=True), "team", Late(looks)))
            )


def test_a_list_in_one_review_is_requested_once():
    class Counting(FilesCluster):
        lists = 0

        def list(self, gvk, namespace):
            self.lists += 1
            return super().list(gvk, namespace)

    cluster = Counting()
    view = ClusterView(cluster, "team")
    for _ in range(3):
        assert not view.list_visible_json(GroupVersionKind("", "v1", "Namespace"))
        assert not view.is_whole()
    assert cluster.lists == 1


class Looks(Deadline):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.longest_s = 0.0

    def check_clock(self) -> None:
        self.count += 1
        super().check_clock()

    def check_clock_before_slow_call(self, seconds: float) -> None:
        self.longest_s = max(self.longest_s, seconds)


def test_names_of_resources_are_charged_for_each_comparison():
    looks = Looks()
    limits = {f"example.com/{number}": "1" for number in range(1000)}
    count_devices_of_container(
        Container.of({"name": "a", "resources": {"limits": limits}}, (), ReadingContext(looks, frozenset(), False))
    )
    assert looks.count >= 90


def test_names_of_resources_that_may_be_devices_are_charged_before_they_are_looked_up():
    looks = Looks()
    limits = {f"name-{number}": "1" for number in range(1000)}
    read_device_container(Container.of({"resources": {"limits": limits}}, (), ReadingContext(looks)))
    assert looks.count >= 90


@pytest.mark.parametrize(
    ("patch", "least"),
    [
        ({"containers": [{"name": "a", "resources": {"claims": [{"name": "x"}] * 2000}}]}, 100),
        ({"containers": [{"name": "a", "resources": {"claims": [{}] * 2000}}]}, 80),
        ({"resourceClaims": [{"name": str(number)} for number in range(2000)]}, 100),
        ({"containers": [{"name": "new"}]}, 60),
    ],
    ids=["claims", "claims without a name", "declared claims", "a container that moves all others"],
)
def test_each_pass_over_a_shard_patch_and_its_template_is_charged(patch, least):
    looks = Looks()
    containers = [{"name": "a", "image": "i"}, *({"name": "", "image": str(number)} for number in range(500))]
    shards.ShardTemplate({"spec": {"containers": containers}}, looks).notes_on_patch({"spec": patch}, ("at",))
    assert looks.count >= least


def test_a_long_script_is_charged_before_it_is_split():
    looks = Looks()
    launch_of_json({"command": ["bash", "-c", "$(" * 20_000 + ")" * 20_000]}, looks)
    assert looks.longest_s > 0.01


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "echo " + "word " * 10_000],
        ["bash", "-c", "mpirun -np 4; " * 3_000],
        ["run", *["word"] * 10_000],
        ["torchrun", *["--nnodes=2"] * 10_000, "train.py"],
    ],
    ids=[
        "a script of one command",
        "a script of many commands",
        "words that start no launcher",
        "options of a launcher",
    ],
)
def test_the_clock_is_read_while_the_words_of_a_command_are(command):
    looks = Looks()
    launch_of_json({"command": command}, looks)
    assert looks.count > 45
