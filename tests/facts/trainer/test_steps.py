"""Changes of a runtime's steps, the pods that the API server refuses, and how each field of a pod merges."""

from __future__ import annotations

import pytest

from tests.facts.trainer.made import job, node, of, patch, pod_of, pod_patch, replicated, runtime
from webhook.facts.train_job_pods.types import RuntimeSpec
from webhook.facts.trainer.training_runtime import validate_plugins
from webhook.typed.view import ReadingContext


@pytest.mark.parametrize(
    ("before", "laid", "expected"),
    [
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"b": "2"}}, {"nodeSelector": {"a": "1", "b": "2"}}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
        ),
        (
            {"resourceClaims": [{"name": "c", "resourceClaimName": "one"}]},
            {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]},
            {"resourceClaims": [{"name": "c", "resourceClaimName": "one", "resourceClaimTemplateName": "t"}]},
        ),
        (
            {"imagePullSecrets": [{"name": "a"}]},
            {"imagePullSecrets": [{"name": "b"}]},
            {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]},
        ),
        (
            {"schedulingGates": [{"name": "a"}]},
            {"schedulingGates": [{"name": "a"}]},
            {"schedulingGates": [{"name": "a"}]},
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}]},
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}]},
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": []}, {"tolerations": [{"key": "a"}]}),
        (
            {"securityContext": {"runAsUser": 1}},
            {"securityContext": {"fsGroup": 2}},
            {"securityContext": {"runAsUser": 1, "fsGroup": 2}},
        ),
        (
            {"affinity": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"a": 1}]}}, "podAffinity": {"x": 1}}},
            {"affinity": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"b": 1}]}}}},
            {"affinity": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"b": 1}]}}, "podAffinity": {"x": 1}}},
        ),
        ({"volumes": [{"name": "v"}]}, {"volumes": []}, {"volumes": [{"name": "v"}]}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_fields_of_a_pod_merge_as_their_tags_say(before: dict, laid: dict, expected: dict) -> None:
    """k8s.io/api core/v1 types.go, patchStrategy and patchMergeKey. A field that a patch cannot have is dropped first."""
    fact = of(
        job(runtimePatches=[patch(pod_patch("node", **laid))]),
        runtime(replicated("node", node(), step="trainer", **before)),
        version=(2, 4),
    )
    pod = pod_of(fact)
    assert {name: pod[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("before", "laid", "expected"),
    [
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "2"}]}, [{"name": "A", "value": "2"}]),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}]},
            {"volumeMounts": [{"name": "v", "mountPath": "/b"}]},
            [{"name": "v", "mountPath": "/b"}, {"name": "v", "mountPath": "/a"}],
        ),
        (
            {"ports": [{"containerPort": 1, "name": "a"}]},
            {"ports": [{"containerPort": 1, "name": "b"}]},
            [{"containerPort": 1, "name": "a"}],
        ),
        (
            {"envFrom": [{"configMapRef": {"name": "a"}}]},
            {"envFrom": [{"configMapRef": {"name": "b"}}]},
            [{"configMapRef": {"name": "a"}}],
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_fields_of_a_container_merge_as_their_tags_say(before: dict, laid: dict, expected: list) -> None:
    fact = of(
        job(runtimePatches=[patch(pod_patch("node", containers=[{"name": "node", **laid}]))]),
        runtime(replicated("node", node(**before), step="trainer")),
    )
    (name,) = laid
    assert pod_of(fact)["containers"][0][name] == expected


def test_the_jobs_keep_the_order_of_the_runtime() -> None:
    first, second = replicated("dataset-initializer", node()), replicated("node", node(), step="trainer")
    own = patch(pod_patch("node", nodeSelector={"a": "b"}), pod_patch("dataset-initializer", nodeSelector={"a": "b"}))
    fact = of(job(runtimePatches=[own]), runtime(first, second))
    assert [each.name for each in fact.job.replicated_jobs] == ["dataset-initializer", "node"]


def test_claims_of_a_container_are_replaced() -> None:
    fact = of(
        job(
            runtimePatches=[
                patch(pod_patch("node", containers=[{"name": "node", "resources": {"claims": [{"name": "b"}]}}]))
            ]
        ),
        runtime(replicated("node", node({"claims": [{"name": "a"}]}), step="trainer")),
        version=(2, 4),
    )
    assert pod_of(fact)["containers"][0]["resources"]["claims"] == [{"name": "b"}]


def test_claims_per_node_win_and_reach_only_the_node_in_2_4() -> None:
    own = [{"name": "gpu", "resourceClaimTemplateName": "mine"}, {"name": "nic", "resourceClaimTemplateName": "n"}]
    base = runtime(
        replicated(
            "node",
            node({"claims": [{"name": "gpu"}], "limits": {"cpu": 1}}),
            {"name": "side", "image": "s"},
            step="trainer",
            resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}, {"name": "x", "resourceClaimName": "y"}],
        )
    )
    asked = job(trainer={"resourceClaimsPerNode": own, "resourcesPerNode": {"limits": {"memory": "1Gi"}}})
    pod = pod_of(of(asked, base, version=(2, 4)))
    assert pod["resourceClaims"] == [{"name": "x", "resourceClaimName": "y"}, *own]
    main, side = pod["containers"]
    assert main["resources"]["claims"] == [{"name": "gpu"}, {"name": "nic"}]
    assert main["resources"]["limits"] == {"cpu": 1, "memory": "1Gi"}
    assert "resources" not in side
    before = pod_of(of(asked, base))
    assert before["resourceClaims"][0] == {"name": "gpu", "resourceClaimName": "one"}


@pytest.mark.parametrize(
    ("jobs", "release", "expected"),
    [
        ([], (2, 3), ["needs a replicated job `model-initializer`"]),
        ([replicated("model-initializer")], (2, 3), ["needs a container `model-initializer` in replicated job"]),
        (
            [replicated("model-initializer", {"name": "model-initializer"})],
            (2, 3),
            ["needs a volumeMount `initializer` in container"],
        ),
        ([replicated("model-initializer", {"name": "model-initializer"})], (2, 2), []),
        (
            [
                replicated(
                    "model-initializer",
                    {"name": "model-initializer", "volumeMounts": [{"name": "initializer", "mountPath": "/x"}]},
                )
            ],
            (2, 3),
            [],
        ),
    ],
)
def test_an_initializer_needs_its_step(jobs: list, release: tuple, expected: list) -> None:
    """kubeflow/trainer pkg/runtime/framework/plugins/jobset/jobset.go checkInitializer."""
    fact = of(
        job(initializer={"model": {}}), runtime(*jobs, replicated("node", node(), step="trainer")), version=release
    )
    found = fact.told("initializer-step")
    assert [path for path, _ in found] == ["spec.initializer.model"] * len(expected)
    assert all(text.startswith(words) for (_, text), words in zip(found, expected, strict=True))


def test_a_trainer_without_effect_is_reported_once_with_all_its_fields() -> None:
    asked = job(trainer={"image": "i", "env": [{"name": "A"}], "numNodes": 2, "args": None})
    fact = of(asked, runtime(replicated("node", node())))
    ((path, text),) = fact.told("train-job/trainer-step")
    assert (path, text.partition(" have no effect")[0]) == ("spec.trainer", "`image`, `env` and `numNodes`")
    assert fact.told("ignored-nodes") == []
    ((path, text),) = of(job(trainer={"numNodes": 2}), runtime(replicated("node", node()))).told("ignored-nodes")
    assert (path, text.startswith("is ignored because")) == ("spec.trainer.numNodes", True)
    fact = of(asked, runtime(replicated("node", {"name": "trainer"}, step="trainer")))
    assert {text.partition("because ")[2] for _, text in fact.told("train-job/trainer-step")} == {
        "replicated job `node`, the trainer of ClusterTrainingRuntime `r`, has no container `node`"
    }
    assert fact.told("ignored-nodes") == []


def test_an_mpi_node_gets_variables_and_resources_without_the_label() -> None:
    base = runtime(replicated("node", node()), policy={"mpi": {"runLauncherAsNode": True}})
    fact = of(job(trainer={"env": [{"name": "A"}], "resourcesPerNode": {"limits": {}}, "command": ["a"]}), base)
    assert [path for path, _ in fact.told("train-job/trainer-step")] == ["spec.trainer.command"]


def test_a_launcher_as_node_needs_both_jobs_for_several_nodes() -> None:
    base = runtime(replicated("node", node()), policy={"mpi": {"runLauncherAsNode": True}})
    ((path, text),) = of(job(trainer={"numNodes": 2}), base).told("launcher-as-node")
    assert (path, text.endswith("has no replicated job `launcher`")) == ("spec.trainer.numNodes", True)
    assert of(job(trainer={"numNodes": 1}), base).told("launcher-as-node") == []


@pytest.mark.parametrize(
    ("policy", "name", "reserved"),
    [
        ("torch", "PET_NODE_RANK", True),
        ("mpi", "OMPI_MCA_plm_rsh_args", True),
        ("xgboost", "DMLC_NUM_WORKER", True),
        ("jax", "PET_NODE_RANK", False),
        ("torch", "DMLC_NUM_WORKER", False),
    ],
)
def test_plugins_reserve_variables(policy: str, name: str, reserved: bool) -> None:
    fact = of(job(trainer={"env": [{"name": "A"}, {"name": name}]}), runtime(policy=policy))
    assert [path for path, _ in fact.told("reserved-env")] == (["spec.trainer.env[1].name"] if reserved else [])


def test_env_injection_names_existing_jobs_and_containers() -> None:
    targets = [{"jobName": "node", "containerNames": ["side", "none"]}, {"jobName": "x", "containerNames": ["side"]}]
    base = runtime(
        replicated("node", node(), {"name": "side"}, step="trainer"),
        policy={"torch": {"envInjection": {"targets": targets}}},
    )
    spec = RuntimeSpec(base["spec"], ("spec",), ReadingContext())
    policy, job_set = spec.ml_policy, spec.template.spec
    found = validate_plugins(policy, job_set, (2, 3))
    assert [each.message.partition("but ")[2] for each in found] == [
        "job `node` has no container `none`",
        "job `x` has no container `side`",
    ]
    assert list(validate_plugins(policy, job_set, (2, 2))) == []


def test_pods_are_refused() -> None:
    """k8s.io/kubernetes pkg/apis/core/validation; the token's volume is kubeflow/trainer#3998."""
    bad = replicated(
        "bad",
        {"name": "a", "resources": {"claims": [{"name": "c"}]}, "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        resourceClaims=[{"name": "d", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}],
        volumes=[{"name": "w", "emptyDir": {}, "hostPath": {}}, {"name": "kubeflow-trainer-token"}],
    )
    fact = of(job(), runtime(bad, policy={}))
    assert sorted(fact.rules()) == [
        "claim-declared",
        "claim-source",
        "image-required",
        "training-runtime/token-volume",
        "unused-claim",
        "volume-exists",
        "volume-source",
    ]
    assert {each.path for each in fact.problems} == {"spec.runtimeRef"}


def test_volumes_of_claim_policies_are_there() -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    base = runtime(replicated("node", {"name": "a", "image": "x", "volumeMounts": mounts}), policy={})
    base["spec"]["template"]["spec"]["volumeClaimPolicies"] = [{"templates": [{"metadata": {"name": "shared"}}]}]
    assert of(job(), base).rules() == []


def test_problems_of_the_runtime_are_distinguished_from_those_of_patches() -> None:
    base = runtime(replicated("node", node(volumeMounts=[{"name": "gone", "mountPath": "/g"}]), step="trainer"))
    laid = pod_patch("node", containers=[{"name": "node", "volumeMounts": [{"name": "new", "mountPath": "/n"}]}])
    found = of(job(runtimePatches=[patch(laid)]), base).told("volume-exists")
    assert sorted((path, "`new`" in text) for path, text in found) == [
        ("spec.runtimePatches", True),
        ("spec.runtimeRef", False),
    ]


def test_a_lost_toleration_does_not_hide_other_findings() -> None:
    base = runtime(
        replicated(
            "node", node(volumeMounts=[{"name": "x", "mountPath": "/x"}]), step="trainer", tolerations=[{"key": "a"}]
        )
    )
    fact = of(job(runtimePatches=[patch(pod_patch("node", tolerations=[{"key": "b"}]))]), base)
    assert fact.rules("lost-toleration", "volume-exists") == ["lost-toleration", "volume-exists"]


def test_jobset_problems_of_the_runtime_are_distinguished_from_those_of_patches() -> None:
    base = runtime(replicated("node", node(), step="trainer"), replicated("Side", node()))
    base["spec"]["template"]["spec"]["volumeClaimPolicies"] = [{"templates": [{"metadata": {"name": "v"}}]}]
    laid = pod_patch("node", volumes=[{"name": "v", "emptyDir": {}}])
    found = of(job(runtimePatches=[patch(laid)]), base).problems
    assert [(each.code, each.path) for each in found if each.code.startswith("job-set/")] == [
        ("job-set/volume-conflict", "spec.runtimePatches"),
        ("job-set/unmounted-claim", "spec.runtimeRef"),
        ("job-set/dns-label", "spec.runtimeRef"),
    ]
