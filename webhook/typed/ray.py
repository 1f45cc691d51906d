"""The kinds of KubeRay, with the fields that checks read."""

from __future__ import annotations

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.typed.collections import Items
from webhook.typed.fields import OptionalNumber, Part, Parts, Raw, Text, Truth, ValueMap
from webhook.typed.objects import Object
from webhook.typed.pods import PodTemplate
from webhook.typed.view import Typed


class StartParams(Typed):
    """The parameters of `ray start`."""

    num_gpus = Text(name="num-gpus")


class Group(Typed):
    """ray.io HeadGroupSpec and WorkerGroupSpec."""

    group_name = Text()
    max_replicas = OptionalNumber()
    min_replicas = OptionalNumber()
    priority = OptionalNumber()
    replicas = OptionalNumber()
    ray_start_params = Part(StartParams)
    resources = ValueMap()
    template = Part(PodTemplate)


class UpgradeStrategy(Typed):
    """ray.io RayClusterUpgradeStrategy."""

    type = Text()


class AuthOptions(Typed):
    """ray.io AuthOptions."""

    enable_k8s_token_auth = Truth(name="enableK8sTokenAuth")
    mode = Text()


class RayClusterSpec(Typed):
    """ray.io RayClusterSpec."""

    enable_in_tree_autoscaling = Truth()
    auth_options = Part(AuthOptions)
    head_group_spec = Part(Group)
    ray_version = Text()
    upgrade_strategy = Part(UpgradeStrategy)
    worker_group_specs = Parts(Group)

    def groups(self) -> Items[Group]:
        """Return the group of the head, then the groups of the workers."""
        return self.charged_list([self.head_group_spec, *self.worker_group_specs])


class RayCluster(Object):
    """ray.io RayCluster."""

    gvk = GroupVersionKind("ray.io", "v1", "RayCluster")
    spec = Part(RayClusterSpec)


class RayJobSpec(Typed):
    """ray.io RayJobSpec; `entrypoint` is a command line for a shell."""

    backoff_limit = OptionalNumber()
    cluster_selector = ValueMap()
    entrypoint = Text()
    entrypoint_num_cpus = Raw()
    entrypoint_num_gpus = OptionalNumber()
    entrypoint_resources = Raw()
    ray_cluster_spec = Part(RayClusterSpec)
    shutdown_after_job_finishes = Truth()
    submission_mode = Text()
    submitter_pod_template = Part(PodTemplate)
    suspend = Truth()
    ttl_seconds_after_finished = OptionalNumber()

    @property
    def has_cluster(self) -> bool:
        """Return whether the object sets any field of its own cluster."""
        return bool(self.ray_cluster_spec.json)

    @property
    def has_default_submitter(self) -> bool:
        """Return whether KubeRay submits the job from a pod of its own default template."""
        return not self.has("submitterPodTemplate") and self.submission_mode in ("", "K8sJobMode")

    @property
    def requests_resources(self) -> bool:
        """Return whether the entrypoint requests resources. Such an entrypoint may run outside the head."""
        requested = (self.entrypoint_num_cpus, self.json.get("entrypointNumGpus"), self.entrypoint_resources)
        return requested != (None, None, None)


class RayJob(Object):
    """ray.io RayJob."""

    gvk = GroupVersionKind("ray.io", "v1", "RayJob")
    spec = Part(RayJobSpec)


class RayServiceSpec(Typed):
    """ray.io RayServiceSpec; `serve_config_v2` is YAML in a text."""

    serve_config_v2 = Text(name="serveConfigV2")
    ray_cluster_config = Part(RayClusterSpec)
    upgrade_strategy = Part(UpgradeStrategy)


class RayService(Object):
    """ray.io RayService."""

    gvk = GroupVersionKind("ray.io", "v1", "RayService")
    spec = Part(RayServiceSpec)


class RayCronJobSpec(Typed):
    """ray.io RayCronJobSpec."""

    job_template = Part(RayJobSpec)


class RayCronJob(Object):
    """ray.io RayCronJob."""

    gvk = GroupVersionKind("ray.io", "v1", "RayCronJob")
    spec = Part(RayCronJobSpec)
