"""The groups of rules about TrainJobs and runtimes, typed views of these kinds, and the objects
that facts about runtimes read.

Before an object is read, train_job_and_runtime_fields.py drops the fields that the release does not have.

Source: kubeflow/trainer pkg/apis/trainer/v1alpha1, branches release-2.0 to release-2.3, and 8c0f5059bd51.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.cluster import controllers
from webhook.cluster.interest import Interest, ObjectScope, interest_in_fields
from webhook.cluster.site_params import CONFIG_MAP, OWN_NAMESPACE, SITE
from webhook.facts.kinds import TRAINER
from webhook.facts.view import NAMESPACES
from webhook.rules.rule import RuleGroup
from webhook.typed.fields import Labels, Names, OptionalNumber, Part, Parts, Raw, Text, Texts, Truth
from webhook.typed.job_sets import JobSetTemplate
from webhook.typed.objects import Object
from webhook.typed.pods import PodClaim, PodTemplate, Resources, Variable
from webhook.typed.view import Typed

TRAIN_JOB: Final = RuleGroup(
    "train-job",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="kubeflow/trainer@8c0f5059bd51 pkg/webhooks, pkg/runtime/framework/plugins and manifests/base/crds",
    fails="create",
    refused_on_updates="pkg/webhooks/trainjob_webhook.go ValidateUpdate",
    updates_of=("TrainJob",),
)
"""What the API server, Kubeflow Trainer and its plugins refuse in TrainJobs."""
TRAIN_JOB_ADVICE: Final = RuleGroup(
    "train-job",
    refused_by="nothing",
    source="kubeflow/trainer@8c0f5059bd51 pkg/webhooks, pkg/runtime/framework/plugins and manifests/base/crds",
    level="warn",
    fails="silent",
)
TRAINING_RUNTIME: Final = RuleGroup(
    "training-runtime",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source=(
        "kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, pkg/runtime/framework/plugins and "
        "manifests/base/crds"
    ),
    fails="create",
)
"""Rules for runtimes. Some rules are also reported for TrainJobs that use the runtime."""
TRAINING_RUNTIME_ADVICE: Final = RuleGroup(
    "training-runtime",
    refused_by="nothing",
    source=(
        "kubeflow/trainer@8c0f5059bd51 pkg/webhooks/trainingruntime_webhook.go, pkg/runtime/framework/plugins and "
        "manifests/base/crds"
    ),
    level="warn",
    fails="silent",
)
TRAIN_JOB_CHANGES: Final = RuleGroup(
    "train-job-changes",
    refused_by="Trainer's webhook or the rules of its CustomResourceDefinition",
    source="kubeflow/trainer@8c0f5059bd51 manifests/base/crds and pkg/runtime/framework/plugins/jobset/jobset.go",
    fails="create",
    refused_on_updates="pkg/webhooks/trainjob_webhook.go ValidateUpdate, manifests/base/crds, the rules about oldSelf",
)
CLUSTER_RUNTIME: Final = GroupVersionKind(TRAINER, "v1alpha1", "ClusterTrainingRuntime")
RUNTIME: Final = GroupVersionKind(TRAINER, "v1alpha1", "TrainingRuntime")
INSTALLED_RELEASE: Final = Interest(
    CONFIG_MAP, frozenset(("data",)), scope=ObjectScope(namespace=OWN_NAMESPACE, name="trainer")
)
"""The param of policies/trainer, which names the installed release of Trainer."""
INSTALLED: Final = (INSTALLED_RELEASE, SITE)
"""The settings that may name the installed release of Trainer: the param of the policy, and the settings of the
site.
"""
RUNTIMES: Final = (
    *(interest_in_fields(each, "metadata.labels", "spec") for each in (CLUSTER_RUNTIME, RUNTIME)),
    NAMESPACES,
    *INSTALLED,
    controllers.TRAINER.deployment_interest,
)
"""The objects that facts about runtimes read. Facts about the pods of TrainJobs also read these objects."""
PLUGINS: Final = ("torch", "mpi", "flux", "jax", "xgboost")
"""The plugins of Trainer that mlPolicy of a runtime can name."""
SUPPORT: Final = "trainer.kubeflow.org/support"
"""The label of runtimes that will be removed."""


class RuntimeRef(Typed):
    """The runtime that a TrainJob names."""

    api_group = Text(TRAINER)
    kind = Text("ClusterTrainingRuntime")
    name = Text()

    def refers_to(self, other: RuntimeRef) -> bool:
        """Return whether two references name the same runtime."""
        return (self.api_group, self.kind, self.name) == (other.api_group, other.kind, other.name)


class Trainer(Typed):
    """The settings of the nodes that train. Until 2.1, numProcPerNode may be a word."""

    image = Text()
    command = Texts()
    args = Texts()
    env = Parts(Variable)
    env_names = Names(name="env")
    num_nodes = OptionalNumber()
    num_proc_per_node = Raw()
    resources_per_node = Part(Resources)
    resource_claims_per_node = Parts(PodClaim)


class InitializerSource(Typed):
    """The source from which an initializer loads a dataset or a model."""

    storage_uri = Text()


class Initializer(Typed):
    """The sources that are loaded before the training."""

    dataset = Part(InitializerSource)
    model = Part(InitializerSource)


class PatchedRuntimeSpec(Typed):
    """The part of a runtime's spec that a patch may change."""

    template = Part(JobSetTemplate)


class RuntimePatch(Typed):
    """A patch of the runtime by one manager, since 2.2."""

    manager = Text()
    training_runtime_spec = Part(PatchedRuntimeSpec)


class TargetJob(Typed):
    """A replicated job that an override changes."""

    name = Text()


class PodTemplateOverride(PodTemplate):
    """An override of the pod templates of some replicated jobs, in 2.1."""

    target_jobs = Parts(TargetJob)


class PodSpecOverride(Typed):
    """An override of the pod specs of some replicated jobs, in 2.0: a PodSpec and the names of these jobs."""

    target_jobs = Parts(TargetJob)


class TrainJobSpec(Typed):
    """The spec of a TrainJob."""

    runtime_ref = Part(RuntimeRef)
    initializer = Part(Initializer)
    trainer = Part(Trainer)
    annotations = Labels()
    runtime_patches = Parts(RuntimePatch)
    pod_template_overrides = Parts(PodTemplateOverride)
    pod_spec_overrides = Parts(PodSpecOverride)
    suspend = Truth()
    managed_by = Text("trainer.kubeflow.org/trainjob-controller")


class TrainJob(Object):
    """trainer.kubeflow.org TrainJob."""

    gvk = GroupVersionKind(TRAINER, "v1alpha1", "TrainJob")
    spec = Part(TrainJobSpec)


class InjectionTarget(Typed):
    """Containers of a replicated job that also get the variables of torch."""

    job_name = Text()
    container_names = Texts()


class EnvInjection(Typed):
    """The containers that get the variables of torch."""

    targets = Parts(InjectionTarget)


class TorchPolicy(Typed):
    """The settings of the torch plugin."""

    num_proc_per_node = Raw()
    elastic_policy = Raw()
    env_injection = Part(EnvInjection)


class MPIPolicy(Typed):
    """The settings of the MPI plugin."""

    num_proc_per_node = OptionalNumber()
    mpi_implementation = Text("OpenMPI")
    run_launcher_as_node = Truth()
    ssh_auth_mount_path = Text("/root/.ssh")


class FluxPolicy(Typed):
    """The settings of the flux plugin."""

    num_proc_per_node = OptionalNumber()


class MLPolicy(Typed):
    """The plugin and the number of nodes of a runtime."""

    num_nodes = OptionalNumber()
    torch = Part(TorchPolicy)
    mpi = Part(MPIPolicy)
    flux = Part(FluxPolicy)

    @property
    def plugins(self) -> list[str]:
        """Return the plugins that the policy names; a valid policy has at most one."""
        return [name for name in PLUGINS if self.json.get(name) is not None]

    @cached_property
    def plugin(self) -> str:
        """Return the plugin of the policy; `plain` without a plugin, `none` without a policy."""
        return "none" if not self else next(iter(self.plugins), "plain")


class PodGroupPolicy(Typed):
    """The gang scheduler of the pods of a TrainJob."""

    volcano = Part(Typed)
    coscheduling = Part(Typed)

    @property
    def schedulers(self) -> list[str]:
        """Return the gang schedulers that the policy names: `volcano` and `coscheduling`."""
        return [*(["volcano"] if self.volcano else []), *(["coscheduling"] if self.coscheduling else [])]


class RuntimeSpec(Typed):
    """The spec of a runtime."""

    ml_policy = Part(MLPolicy)
    pod_group_policy = Part(PodGroupPolicy)
    template = Part(JobSetTemplate)


class TrainingRuntime(Object):
    """trainer.kubeflow.org TrainingRuntime."""

    gvk = RUNTIME
    spec = Part(RuntimeSpec)

    @property
    def is_deprecated(self) -> bool:
        """Return whether a label marks the runtime as deprecated."""
        return self.metadata.labels.get(SUPPORT) == "deprecated"


class ClusterTrainingRuntime(TrainingRuntime):
    """trainer.kubeflow.org ClusterTrainingRuntime."""

    gvk = CLUSTER_RUNTIME
