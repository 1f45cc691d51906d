"""Each stored object is compiled alone. A mistake in one object is reported, and removes no other object."""

from __future__ import annotations

import json
import tracemalloc
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.server import ApiServer, resources
from tests.live_policies.stored import binding, compiler, of, policy, stored, view
from tests.rows import all_rows
from webhook.apimachinery.attributes import plural_of_kind
from webhook.cluster.connection import connect_to_cluster
from webhook.cluster.watch import WatchCluster
from webhook.errors import LookupFailed
from webhook.live_policies import compile as live_compile
from webhook.live_policies.combine import LivePolicies, combine_file_and_stored_policies
from webhook.live_policies.conditions import conditions_of_object, status_of_all_objects
from webhook.live_policies.objects import GVKS, INTERESTS, MOST_VIEW_BYTES, StoredPolicies, StoredPolicy
from webhook.logs.structured import Log
from webhook.policy.policy_set import PolicySet
from webhook.workloads import table

NOTHING = PolicySet(validating=(), mutating=(), table=table.load_table())
WRONG = {
    "an expression": (policy("p", "gpu.devises == 1", facts=["gpu"]), "spec.validations[0].expression: Invalid value"),
    "an expression with a hint": (policy("p", "gpu.devises == 1", facts=["gpu"]), "hint: did you mean `devices`?"),
    "a fact": (policy("p", facts=["gpus"]), 'spec.facts: Invalid value: "gpus": expected one of: podSets, gpu'),
    "a field that a schema would have dropped": (policy("p", fact=["gpu"]), "spec.fact: unknown field `fact`"),
    "a question without an answer": (policy("p", "authorizer.path('/').check('get').allowed()"), "--authorizer"),
    "the actions of a binding": (binding("p", "p", validationActions=["Deny", "Warn"]), "must not contain both Deny"),
}


def live(*values: dict[str, Any], files: PolicySet = NOTHING) -> LivePolicies:
    return combine_file_and_stored_policies(files, compiler().compile(of(*values)))


def message(made: LivePolicies, name: str, condition: str = "Compiled") -> str:
    (one,) = [each for each in made.objects if each.stored.name == name]
    return "".join(each["message"] for each in conditions_of_object(one, made) if each["type"] == condition)


@all_rows(("value", "told"), WRONG.values(), ids=WRONG)
def test_mistakes_of_stored_policies_are_explained(value: dict[str, Any], told: str) -> None:
    made = live(value, policy("good"), binding("bound", "good"))
    assert told in message(made, "p")
    assert "good" in [each.name for each in made.policies.validating if each.bindings]
    assert message(made, "good") == "every expression compiles"
    assert message(made, "bound") == "the binding is valid"


@pytest.mark.parametrize("name", ["spec.matchConstraints", "bounds"])
def test_a_stored_policy_with_an_unreadable_spec_is_not_in_force(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = policy("p", matchConstraints={"resourceRules": []})
    if name == "bounds":
        monkeypatch.setattr(live_compile, "MOST_BYTES", 2000)
        wrong = policy("p", f"'{'x' * 3000}' != ''")
    made = live(wrong, policy("good"))
    assert [each.name for each in made.policies.validating] == ["good"]
    assert "until this is fixed, the object has no effect" in message(made, "p")


def test_the_oldest_objects_are_used_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_compile, "MOST_OBJECTS", 2)
    spec = policy("any")["spec"]
    made = live(*(stored("ValidatingPolicy", f"p{day}", spec, day=day) for day in (3, 1, 2)))
    assert [each.name for each in made.policies.validating] == ["p1", "p2"]
    assert "policies and bindings have an effect: delete some" in message(made, "p3")


def test_a_shipped_policy_cannot_be_removed_and_may_be_bound_again() -> None:
    shipped = live(policy("shipped", "false"), binding("shipped", "shipped")).policies
    made = live(policy("shipped"), binding("more", "shipped"), binding("shipped", "shipped"), files=shipped)
    (one,) = made.policies.validating
    assert [each.name for each in one.bindings] == ["shipped", "more"]
    told = [
        each["message"]
        for one in made.objects
        for each in conditions_of_object(one, made)
        if one.stored.name == "shipped"
    ]
    assert all("rename it" in each for each in told)
    assert made.failing_object_names() == ("PolicyBinding/shipped", "ValidatingPolicy/shipped")


def test_a_binding_without_a_policy_says_so() -> None:
    made = live(binding("b", "none"))
    assert (
        message(made, "b", "Bound")
        == "spec.policyName: ValidatingPolicy `none` does not exist: apply the policy, or correct the name"
    )
    broken = live(binding("b", "p"), policy("p", "nonsense"))
    assert broken.policies.validating == ()
    assert message(broken, "b", "Bound") == "it binds ValidatingPolicy `p`"


def with_status(
    value: dict[str, Any], generation: int, last: dict[str, Any] | None = None, registered: str = ""
) -> Any:
    """Return the object in this generation. If `last` is given, the status has its spec, as of the generation 1."""
    kept = {"lastCompiled": {"generation": 1, "spec": json.dumps(last["spec"])}} if last else {}
    conditions = [{"type": "Registered", "status": registered}] if registered else []
    metadata = {**value["metadata"], "generation": generation}
    return {**value, "metadata": metadata, "status": {"conditions": conditions, **kept}}


def test_the_last_generation_that_compiled_is_in_force_for_every_replica() -> None:
    good, bound = policy("p", "object.metadata.name == 'a'"), binding("b", "p")
    broken = with_status(policy("p", "nonsense"), 2, good)
    for made in (live(broken, bound), live(broken, bound)):  # a process that started later knows only the status
        (one,) = made.policies.validating
        assert one.rules[0].expression.source == "object.metadata.name == 'a'"
        assert message(made, "p").endswith("generation 1 is evaluated, the last that compiled")
        (last,) = [last for stored, _, last in status_of_all_objects(made) if stored.name == "p"]
        assert last == broken["status"]["lastCompiled"]
    for unreadable in ({"spec": "{"}, {"generation": 1, "spec": '{"validations": 1}'}, {"generation": 1, "spec": "[]"}):
        made = live({**broken, "status": {"lastCompiled": unreadable}}, bound)
        assert made.policies.validating == ()
    (mended,) = [last for stored, _, last in status_of_all_objects(live(good)) if stored.name == "p"]
    assert json.loads(mended["spec"]) == good["spec"]


@pytest.mark.parametrize("levels", [201, 900, 100_000], ids=["deeper than is read", "at the limit", "beyond Python"])
def test_a_status_that_is_nested_deeply_stops_no_other_policy(levels: int) -> None:
    broken = policy("p", "nonsense")
    deep = {"generation": 1, "spec": f"{'[' * levels}{']' * levels}"}
    made = live({**broken, "status": {"lastCompiled": deep}}, policy("q", "true"), binding("b", "q"))
    assert [each.name for each in made.policies.validating] == ["q"]
    assert made.failing_object_names() == ("ValidatingPolicy/p",)
    assert message(made, "p").startswith("1 error:")


def test_a_replica_evaluates_only_registered_policies() -> None:
    (rule,) = policy("p")["spec"]["matchConstraints"]["resourceRules"]
    wild = policy("wild", matchConstraints={"resourceRules": [{**rule, "resources": ["*"]}]})

    def names(*values: dict[str, Any]) -> list[str]:
        made = combine_file_and_stored_policies(NOTHING, compiler().compile(of(*values)), is_server=True)
        return [each.name for each in made.policies.validating]

    assert names(policy("p"), wild) == ["p"]
    assert names(*(with_status(each, 1, registered="False") for each in (policy("p"), wild))) == []
    assert names(*(with_status(each, 1, registered="True") for each in (policy("p"), wild))) == ["p", "wild"]


def test_a_portable_policy_is_reported_with_the_export_command() -> None:
    told = message(live(policy("p")), "p", "Portable")
    assert (
        "kubectl get validatingpolicy.claimgate.dev/p -o yaml > policy.yaml; claimgate policies export policy.yaml"
        in told
    )
    assert "uses facts (gpu)" in message(live(policy("p", facts=["gpu"])), "p", "Portable")


def test_a_value_of_a_wrong_type_is_named_and_the_policy_stays_in_force() -> None:
    made = live(policy("p", "object.spec.containers.image == 'a'"), binding("b", "p"))
    told = message(made, "p", "TypeChecked")
    assert told.startswith(
        "spec.validations[0].expression: `object.spec.containers.image`: `object.spec.containers` is a"
    )
    assert "test its elements" in told
    assert [each.name for each in made.policies.validating if each.bindings] == ["p"]
    assert "no expression uses" in message(live(policy("p")), "p", "TypeChecked")


def test_a_policy_about_very_many_kinds_is_not_type_checked() -> None:
    rule = {"apiGroups": ["a", "b"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [*"abcdefgh"] * 8}
    wide = policy("p", matchConstraints={"resourceRules": [rule]})
    made = live(wide)
    (compiled,) = made.objects
    assert compiled.wrong_types is None
    (told,) = [each for each in conditions_of_object(compiled, made) if each["type"] == "TypeChecked"]
    assert (told["status"], told["reason"]) == ("Unknown", "TooMuch")


def test_an_unchanged_policy_is_not_compiled_again() -> None:
    one = compiler()
    (first,) = one.compile(of(policy("p")))
    again, _ = one.compile(of(policy("p"), policy("q")))
    assert again.policy is first.policy
    (changed,) = one.compile(of(policy("p", "false")))
    assert changed.policy is not first.policy


def test_an_internal_error_affects_only_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_policy = live_compile.compile_policy

    def failing(manifest: Any, *arguments: Any, **named: Any) -> Any:
        if manifest.metadata.name == "p":
            raise ZeroDivisionError
        return compile_policy(manifest, *arguments, **named)

    monkeypatch.setattr(live_compile, "compile_policy", failing)
    made = live(policy("p"), policy("good"))
    assert [each.name for each in made.policies.validating] == ["good"]
    assert "claimgate failed on this object (ZeroDivisionError)" in message(made, "p")


def test_kinds_that_are_not_served_have_no_objects() -> None:
    assert view().list_oldest_first() == ()
    assert view().explain_unknown_objects() == ""


class Slow:
    """A processor clock that advances each time it is read."""

    def __init__(self) -> None:
        self.now = self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def many(name: str, day: int = 1) -> dict[str, Any]:
    validations = [{"expression": f"'{name}{at}' != ''"} for at in range(20)]
    return stored("ValidatingPolicy", name, {**policy(name)["spec"], "validations": validations}, day=day)


def test_a_policy_that_compiles_too_long_is_refused_and_others_stay() -> None:
    clock = Slow()
    compiling = compiler(clock)
    clock.step = 0.03  # each expression reads the clock twice
    made = combine_file_and_stored_policies(NOTHING, compiling.compile(of(many("slow"), policy("good"))))
    assert [each.name for each in made.policies.validating] == ["good"]
    assert "compiling it takes longer than 1 s" in message(made, "slow")
    assert [each.reason for each in made.objects if each.errors] == ["TooSlow"]


def test_a_policy_without_time_compiles_after_an_older_one_is_deleted() -> None:
    clock = Slow()
    clock.step = 0.02
    compiling = compiler(clock)
    values = [many(f"p{day}", day=day) for day in range(1, 9)]
    first = compiling.compile(of(*values))
    served = [each.stored.name for each in first if each.policy]
    assert served == [f"p{day}" for day in range(1, len(served) + 1)]
    assert 1 < len(served) < len(values)
    assert all("all policies up to this one" in each.errors[0] for each in first if each.errors)
    again = compiling.compile(of(*values))  # compiled policies need no time
    assert len([each for each in again if each.policy]) > len(served)
    again = compiling.compile(of(*values))
    assert [each.stored.name for each in again if each.errors] == []


def test_thousands_of_mistakes_are_summarized_and_other_policies_stay() -> None:
    names = f"[{', '.join(['a'] * 8_000)}].size() > 0"
    tracemalloc.start()
    made = compiler(Slow()).compile(of(policy("wrong", names), policy("good")))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each.reason for each in made] == ["Compiled", "Invalid"]
    assert made[1].errors[0].splitlines()[-1] == " | and 7990 more"
    assert sum(map(len, made[1].errors)) < len(names) + 5_000
    assert most < 80 << 20


def test_a_too_expensive_expression_is_refused_before_it_is_compiled() -> None:
    """The clock does not advance during the compilation, so no time is charged."""
    made = compiler(Slow()).compile(of(policy("long", "1<2&&" * 10_000 + "true"), policy("good")))
    assert {each.stored.name: each.reason for each in made} == {"long": "TooSlow", "good": "Compiled"}


def test_stored_policies_use_bounded_memory(tmp_path: Path) -> None:
    """A policy that is too large to be compiled keeps only name and size. Other policies share a bound."""
    server, kinds = ApiServer(), ("ValidatingPolicy", "MutatingPolicy", "PolicyBinding")
    paths = [f"/apis/claimgate.dev/v1alpha1/{plural_of_kind(kind)}" for kind in kinds]
    server.answers["/apis/claimgate.dev/v1alpha1"] = resources(*((plural_of_kind(kind), kind, False) for kind in kinds))
    server.objects |= {path: [] for path in paths}
    large = policy("large", "x" * 1_300_000)
    server.objects[paths[0]] = [
        policy("small"),
        {**large, "metadata": {**large["metadata"], "annotations": {"a": "b"}}},
    ]
    server.objects[paths[2]] = [binding(f"b-{number}", "x" * 60_000) for number in range(300)]
    view = WatchCluster(
        connect_to_cluster(server.kubeconfig(tmp_path)), INTERESTS, Log(stream=StringIO()), most_bytes=MOST_VIEW_BYTES
    )
    view.start()
    try:
        assert view.wait_until_synced(20)
        assert view.memory.bytes < 10_000
        kept = [StoredPolicy(each) for each in view.list(GVKS[0], None)]
        assert [each.name for each in kept] == ["large", "small"]
        with pytest.raises(LookupFailed, match=r"PolicyBinding of the cluster are not in the view: .* more than 16Mi"):
            StoredPolicies(view).list_oldest_first()
    finally:
        view.close()
        server.shutdown()
        server.server_close()
    too_large, small = compiler().compile(kept)
    assert (too_large.reason, small.reason) == ("TooMuch", "Compiled")
    assert "at most 65536 are allowed: make the object smaller" in too_large.errors[0]
