"""What Kueue is configured to do: which kinds it manages, in which namespaces, and how it counts resources.

Kueue reads a Configuration when it starts, of which its releases keep a ConfigMap `kueue-manager-config` in
`kueue-system`; a param may hold the same text, for other names or where nobody may read that. Without either the
defaults of the release stand. Source: kubernetes-sigs/kueue@ff69552e apis/config/v1beta2 and config/components/manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from webhook import quantity, yamlfile
from webhook.attributes import JSON, NAME_LABEL
from webhook.errors import InputError
from webhook.facts.kueue.objects import CONFIGURATION
from webhook.facts.kueue.releases import DEFAULT, TRAINING_OFF
from webhook.facts.pods.containers import items, mapping, text
from webhook.facts.subject import Subject
from webhook.facts.trainer.lookups import TRAIN_JOB
from webhook.facts.view import CONFIG_MAP
from webhook.paths import get
from webhook.problem import MissingObject
from webhook.releases import Release

FILE: Final = "controller_manager_config.yaml"
"""The key of the ConfigMap, and of a param, that holds the text."""
KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("batch", "Job"): "batch/job",
    ("", "Pod"): "pod",
    ("apps", "Deployment"): "deployment",
    ("apps", "StatefulSet"): "statefulset",
    ("jobset.x-k8s.io", "JobSet"): "jobset.x-k8s.io/jobset",
    ("kubeflow.org", "MPIJob"): "kubeflow.org/mpijob",
    TRAIN_JOB: "trainer.kubeflow.org/trainjob",
    ("ray.io", "RayJob"): "ray.io/rayjob",
    ("ray.io", "RayCluster"): "ray.io/raycluster",
    ("ray.io", "RayService"): "ray.io/rayservice",
    ("workload.codeflare.dev", "AppWrapper"): "workload.codeflare.dev/appwrapper",
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): "leaderworkerset.x-k8s.io/leaderworkerset",
    ("kubeflow.org", "PyTorchJob"): "kubeflow.org/pytorchjob",
    ("kubeflow.org", "TFJob"): "kubeflow.org/tfjob",
    ("kubeflow.org", "XGBoostJob"): "kubeflow.org/xgboostjob",
    ("kubeflow.org", "PaddleJob"): "kubeflow.org/paddlejob",
    ("kubeflow.org", "JAXJob"): "kubeflow.org/jaxjob",
    ("sparkoperator.k8s.io", "SparkApplication"): "sparkoperator.k8s.io/sparkapplication",
}
"""The kinds that Kueue can manage and what its Configuration calls them."""
MISSING_CONFIGURATION: Final = MissingObject(
    kind="ConfigMap", name=CONFIGURATION.name, namespace=CONFIGURATION.namespace
)
"""What nobody has seen where no Configuration is known."""
_TRAINING: Final = ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob")
_ALPHA: Final = ("sparkapplication",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A Configuration.

    Args:
        is_known: whether anybody said anything; otherwise the defaults of the release stand.
        frameworks: the kinds that are integrated, as `batch/job`.
        manages_all: whether jobs without a queue name are managed, too.
        namespaces: the label selector of managed namespaces.
        device_classes: the names under which quota counts devices, by DeviceClass.
        sources: what is counted of the devices of a class in place of their number.
        excluded: beginnings of names of resources that are not counted.
        transformations: for a resource, whether it is kept, and which amounts come of one unit.
        ignores_undeclared: whether resources that a ClusterQueue does not cover are not looked at.
        feature_gates: those that it switches on or off.
    """

    is_known: bool = False
    frameworks: frozenset[str]
    manages_all: bool = False
    namespaces: JSON = field(default_factory=dict, hash=False)
    device_classes: Mapping[str, str] = field(default_factory=dict, hash=False)
    sources: Mapping[str, tuple[Source, ...]] = field(default_factory=dict, hash=False)
    excluded: tuple[str, ...] = ()
    transformations: Mapping[str, Transformation] = field(default_factory=dict, hash=False)
    ignores_undeclared: bool = False
    feature_gates: Mapping[str, bool] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is counted of the devices of a driver: a counter, or a capacity.

    Args:
        resource: the name of quota that it counts for.
        driver: the driver of the devices.
        counter, capacity: the name of either, "" for the other.
        selector: an expression that takes the devices that count, "" for all.
    """

    resource: str
    driver: str
    counter: str = ""
    capacity: str = ""
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Transformation:
    """What a resource is counted as: thousandths of other resources for one unit, and itself where it `is_kept`.

    `times` is the resource whose amount multiplies the outputs; "" for none.
    """

    outputs: Mapping[str, int]
    is_kept: bool = True
    times: str = ""


def configuration(subject: Subject) -> Configuration:
    """The Configuration, to be asked for with `Subject.once`."""
    assumed = subject.assumptions
    written = assumed.kueue_configuration
    if not written:
        held = subject.cluster.peek(CONFIG_MAP, CONFIGURATION.namespace, CONFIGURATION.name)
        written = text(get(held, ("data", FILE)))
    return _read(written, assumed.kueue)


@lru_cache(maxsize=16)
def _read(written: str, release: Release) -> Configuration:
    given = _loaded(written)
    resources = mapping(given.get("resources"))
    frameworks = items(get(given, ("integrations", "frameworks")))
    mappings = [mapping(each) for each in items(resources.get("deviceClassMappings"))]
    named: dict[str, str] = {}
    for each in mappings:
        for name in items(each.get("deviceClassNames")):
            named.setdefault(text(name), text(each.get("name")))
    return Configuration(
        is_known=bool(given),
        frameworks=frozenset(map(text, frameworks)) if frameworks else defaults(release),
        manages_all=given.get("manageJobsWithoutQueueName") is True,
        namespaces=given.get("managedJobsNamespaceSelector") or _NAMESPACES,
        device_classes=named,
        sources=_sources(mappings),
        excluded=tuple(map(text, items(resources.get("excludeResourcePrefixes")))),
        transformations=dict(_transformations(resources)),
        ignores_undeclared=resources.get("quotaCheckStrategy") == "IgnoreUndeclared",
        feature_gates={
            name: value for name, value in mapping(given.get("featureGates")).items() if isinstance(value, bool)
        },
    )


def defaults(release: Release = DEFAULT) -> frozenset[str]:
    """The kinds that the manifests of a release integrate."""
    off = (*_ALPHA, *(_TRAINING if release >= TRAINING_OFF else ()))
    return frozenset(name for name in KINDS.values() if name.rpartition("/")[2] not in off)


_NAMESPACES: Final = {
    "matchExpressions": [{"key": NAME_LABEL, "operator": "NotIn", "values": ["kube-system", "kueue-system"]}]
}


def _loaded(written: str) -> Mapping[str, JSON]:
    try:
        documents = yamlfile.load(written)
    except InputError:  # Kueue does not start with it; what it ran with before nobody knows
        return {}
    return mapping(documents[0].value) if documents else {}


def _sources(mappings: Iterable[Mapping[str, JSON]]) -> Mapping[str, tuple[Source, ...]]:
    """The sources of each class. A class has capacities under its first name, and counters under several."""
    made: dict[str, list[Source]] = {}
    for each in mappings:
        for name in map(text, items(each.get("deviceClassNames"))):
            for source in map(mapping, items(each.get("sources"))):
                counter, capacity = mapping(source.get("counter")), mapping(source.get("capacity"))
                of = counter or capacity
                made.setdefault(name, []).append(
                    Source(
                        resource=text(each.get("name")),
                        driver=text(of.get("driver")),
                        counter=text(counter.get("name")),
                        capacity=text(capacity.get("name")),
                        selector=text(get(of, ("deviceSelector", "cel", "expression"))),
                    )
                )
    return {name: tuple(sources) for name, sources in made.items()}


def _transformations(resources: Mapping[str, JSON]) -> Iterator[tuple[str, Transformation]]:
    for each in map(mapping, items(resources.get("transformations"))):
        outputs = {name: quantity.read(value) for name, value in mapping(each.get("outputs")).items()}
        known = {name: amount.milli_value() for name, amount in outputs.items() if amount is not None}
        is_kept = each.get("strategy") != "Replace"
        yield text(each.get("input")), Transformation(known, is_kept, text(each.get("multiplyBy")))
