"""ConfigMap claimgate-site lies over the shipped ConfigMaps, and its mistakes are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.literals import pod, request, shipped_policies
from webhook.cluster.files import FilesCluster
from webhook.deadline import Deadline
from webhook.evaluation.params import RequestParams
from webhook.facts.assumptions import ClusterAssumptions
from webhook.facts.train_job_pods.releases import installation_with_assumptions
from webhook.facts.view import ClusterView
from webhook.policy.param_rules import ParamRuleChecker


def config_map(name: str, **data: str) -> Any:
    metadata = {"name": name, "namespace": "claimgate-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def params_of_kueue(*objects: Any) -> Mapping[str, str]:
    """The data with which policies about Kueue are evaluated."""
    loaded = shipped_policies()
    (policy,) = [one for one in loaded.validating if one.name == "kueue-jobs"]
    found = RequestParams(request(pod()), FilesCluster(objects), loaded, Deadline())
    (param,) = found.params_of_binding(policy, policy.bindings[0])
    return dict(param.object["data"])


def test_a_key_of_the_site_counts_in_the_place_of_that_of_the_config_map() -> None:
    site = config_map("claimgate-site", **{"kueue.off": "kueue-never/a", "kueues.deny": "x", "kueue": "y"})
    assert params_of_kueue(site)["off"] == "kueue-never/a"
    own = params_of_kueue(config_map("kueue", off="kueue-never/b", deny="kueue-never/c"), site)
    assert own == {"off": "kueue-never/a", "deny": "kueue-never/c"}


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


def test_keys_that_nobody_reads_are_named_where_it_is_known_which_there_are() -> None:
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
