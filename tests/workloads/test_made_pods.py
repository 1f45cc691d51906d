"""The pods that controllers create from single fields of objects."""

from typing import Any

import pytest

from tests.literals import TABLE
from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.workloads.made_pods import MadePod, made_pods

GPU = {"limits": {"nvidia.com/gpu": 1}}


def nim(**spec: Any) -> JSON:
    image = {"repository": "nvcr.io/nim/llama", "tag": "1"}
    return {"metadata": {"name": "n", "labels": {"a": "0"}}, "spec": {"image": image, "resources": GPU, **spec}}


def spark(**spec: Any) -> JSON:
    return {"metadata": {"labels": {"a": "0", "kueue.x-k8s.io/queue-name": "q"}}, "spec": {"image": "i", **spec}}


def pods(kind: str, obj: JSON) -> tuple[MadePod, ...] | None:
    row = next(row for row in TABLE.rows if row.kind == kind)
    return made_pods(obj, row, Deadline())


def test_a_nim_service_makes_one_container() -> None:
    (made,) = pods("NIMService", nim(labels={"a": "1"}, tolerations=[{"operator": "Exists"}])) or ()
    assert made.pod == {
        "metadata": {"labels": {"a": "1"}},
        "spec": {
            "containers": [{"name": "nim", "image": "nvcr.io/nim/llama:1", "resources": GPU}],
            "tolerations": [{"operator": "Exists"}],
        },
    }
    assert "volumes" not in made.known_in_spec
    assert made.locate(("spec", "tolerations", 0, "key")) == ("spec", "tolerations", 0, "key")
    assert made.locate(("spec", "containers", 0, "env")) == ("spec",)


def test_without_gpus_the_resources_of_a_nim_service_come_from_its_model() -> None:
    (made,) = pods("NIMService", nim(resources={"limits": {"memory": "1Gi"}})) or ()
    assert "resources" not in made.known_in_container


def test_a_spark_application_makes_a_driver_and_executors() -> None:
    gpu = {"name": "nvidia.com/gpu", "quantity": 2}
    driver, executor = pods("SparkApplication", spark(driver={}, executor={"image": "e", "gpu": gpu})) or ()
    assert driver.pod["metadata"] == {"labels": {"a": "0"}}
    assert driver.pod["spec"]["containers"][0]["image"] == "i"
    (container,) = executor.pod["spec"]["containers"]
    assert (container["image"], container["resources"]) == ("e", {"limits": {"nvidia.com/gpu": 2}})
    assert executor.hidden_limits == {"cpu", "memory"}


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        ("NIMService", nim(multiNode={"parallelism": {"pipeline": 2}})),
        ("NIMService", nim(inferencePlatform="kserve")),
        ("NIMService", nim(image=None)),
        ("NIMService", {"spec": 1}),
        ("SparkApplication", spark(driver={"template": {"spec": {}}}, executor={})),
        ("SparkApplication", spark(driver={}, executor={}, sparkConf={"spark.kubernetes.driver.label.a": "b"})),
        ("Workflow", {"spec": {"templates": []}}),
    ],
    ids=["several nodes", "KServe", "no image", "no object", "a template", "labels in sparkConf", "no such row"],
)
def test_no_pods_are_predicted_for_kinds_with_other_fields(kind: str, obj: JSON) -> None:
    assert pods(kind, obj) is None


def test_plain_settings_of_spark_do_not_describe_pods() -> None:
    assert pods("SparkApplication", spark(driver={}, executor={}, sparkConf={"spark.ui.port": "4045"}))
