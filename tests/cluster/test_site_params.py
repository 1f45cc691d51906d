"""The ConfigMap claimgate-site overrides the shipped ConfigMaps. Mistakes in it are reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.literals import pod, request, shipped_policies
from webhook import assembly
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.evaluation.params import RequestParams
from webhook.evaluation.request_context import request_context
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.train_job_pods.releases import installation_with_assumptions
from webhook.facts.view import ClusterView
from webhook.policy.param_rules import ParamRuleChecker
from webhook.policy.policy_set import PolicySet
from webhook.settings.shared import Settings


def config_map(name: str, namespace: str = "claimgate-system", **data: str) -> Any:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def params_of_kueue(*objects: Any, loaded: PolicySet | None = None) -> Mapping[str, str]:
    loaded = loaded or shipped_policies()
    (policy,) = [one for one in loaded.validating if one.name == "kueue-jobs"]
    found = RequestParams(request(pod()), FilesCluster(objects), loaded, Deadline())
    (param,) = found.params_of_binding(policy, policy.bindings[0])
    return dict(param.object["data"])


def test_a_param_of_the_site_replaces_the_key_of_the_config_map() -> None:
    site = config_map("claimgate-site", **{"kueue.off": "kueue-never/a", "kueues.deny": "x", "kueue": "y"})
    assert params_of_kueue(site)["off"] == "kueue-never/a"
    own = params_of_kueue(config_map("kueue", off="kueue-never/b", deny="kueue-never/c"), site)
    assert own == {"off": "kueue-never/a", "deny": "kueue-never/c"}


def test_policies_of_files_use_the_namespace_where_claimgate_runs() -> None:
    settings = Settings(own_namespace="gates")
    loaded = assembly.load_policies_of_settings(settings, assembly.create_compile_options(settings))
    assert "claimgate-system" not in str([policy.bindings for policy in loaded.policies])
    named = [(each.gvk.kind, each.scope.namespace, each.scope.name) for each in loaded.interests()]
    assert "claimgate-system" not in str(named)
    assert {("ConfigMap", "gates", name) for name in ("kueue", "trainer", "claimgate-site")} <= set(named)
    assert {each["metadata"]["namespace"] for each in loaded.params} == {"gates"}
    ours = (
        config_map("kueue", "gates", off="kueue-never/b"),
        config_map("claimgate-site", "gates", **{"kueue.deny": "x"}),
    )
    others = config_map("kueue", off="kueue-never/c"), config_map("claimgate-site", **{"kueue.deny": "y"})
    assert params_of_kueue(*ours, *others, loaded=loaded) == {"off": "kueue-never/b", "deny": "x"}
    rules = ParamRuleChecker(loaded.policies, loaded.registry, loaded.params, own_namespace="gates")
    wrong = config_map("claimgate-site", "gates", **{"kueue.denny": "x"}), config_map("kueue", "gates", denny="x")
    assert [path[-1] for one in wrong for path, _ in rules.mistakes_if_object_is_param(one)] == ["kueue.denny", "denny"]
    assert not rules.is_param(config_map("kueue"))
    trainer = config_map("trainer", "gates", trainer="2.1"), config_map("trainer", trainer="2.2")
    view = request_context(loaded, request(pod()), FilesCluster(trainer)).view
    assert installation_with_assumptions(view, ClusterAssumptions()).release == (2, 1)


def test_the_release_of_trainer_is_the_one_of_the_site() -> None:
    objects = config_map("trainer", trainer="2.1"), config_map("claimgate-site", **{"trainer.trainer": "2.2"})
    view = ClusterView(FilesCluster(objects), "team")
    assert installation_with_assumptions(view, ClusterAssumptions()).release == (2, 2)


def test_mistakes_of_the_site_are_named_with_their_keys() -> None:
    loaded = shipped_policies()
    rules = ParamRuleChecker(loaded.policies, loaded.registry)
    keys = {"kueu.deny": "x", "deny": "x", "storage.deny": "storage/claim-exist", "gpu-portable.vendor.amd": "a/b"}
    site = config_map("claimgate-site", **keys)
    told = {path[-1]: text for path, text in rules.mistakes_if_object_is_param(site)}
    assert set(told) == {"kueu.deny", "deny", "storage.deny"}
    assert told["kueu.deny"].endswith("no policy has a ConfigMap `kueu`: did you mean `kueue`?")
    assert "did you mean `storage/claim-exists`?" in told["storage.deny"]
    assert "gpu-portable.vendor.amd" not in told
    assert [site] == [obj for _, obj in rules.params_in_cluster(FilesCluster([site]))]


def test_unread_keys_are_reported_if_the_known_keys_are_known() -> None:
    loaded = shipped_policies()
    rules = ParamRuleChecker(loaded.policies, loaded.registry, loaded.params)
    keys = {
        "kueue.denny": "x",
        "gpu-portable.onInvalidd": "drop",
        "gpu-portable.resource.team": "a/b",
        "storage.off": "",
    }
    told = {path[-1]: text for path, text in rules.mistakes_if_object_is_param(config_map("claimgate-site", **keys))}
    assert told == {
        "kueue.denny": "unknown key `denny` of ConfigMap `kueue`: did you mean `deny`?",
        "gpu-portable.onInvalidd": "unknown key `onInvalidd` of ConfigMap `gpu-portable`: did you mean `onInvalid`?",
    }
    mistaken = config_map("kueue", denny="x", **{"controller_manager_config.yaml": "a: b"})
    assert [path[-1] for path, _ in rules.mistakes_if_object_is_param(mistaken)] == ["denny"]
    portable = config_map("gpu-portable", **{"resources": "a/b", "resource.team": "a/b", "vendor.own": "a/b"})
    told = [text for _, text in rules.mistakes_if_object_is_param(portable)]
    assert told == ["unknown key `resources` of ConfigMap `gpu-portable`: did you mean `resource`?"]
    assert portable in [obj for _, obj in rules.params_in_cluster(FilesCluster([portable]))]
