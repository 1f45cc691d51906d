"""The kinds of Volcano with the fields that checks read, and the objects that checks look up in the cluster.

Source: volcano-sh/volcano@ed72c7c815a9 installer/helm/chart/volcano/crd/bases and charts/jobflow/crd/bases;
volcano-sh/apis@536f121.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final

from webhook.apimachinery.attributes import NAMESPACE, GroupVersionKind
from webhook.apimachinery.paths import FieldPath
from webhook.cluster.interest import interest_in_fields
from webhook.facts.volcano_objects.plugins import PLUGINS, ParsedFlags
from webhook.typed.collections import Entries
from webhook.typed.fields import (
    Amount,
    Amounts,
    Number,
    NumberMap,
    OptionalNumber,
    Part,
    Parts,
    Quantities,
    Raw,
    Text,
    TextListMap,
    Texts,
)
from webhook.typed.objects import Object
from webhook.typed.pods import PodSpec, PodTemplate
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeClaimSpec

BATCH: Final = "batch.volcano.sh"
FLOW: Final = "flow.volcano.sh"
SCHEDULING: Final = "scheduling.volcano.sh"
TOPOLOGY: Final = "topology.volcano.sh"
JOB: Final = (BATCH, "Job")
CRON_JOB: Final = (BATCH, "CronJob")
JOB_TEMPLATE: Final = (FLOW, "JobTemplate")
JOB_FLOW: Final = (FLOW, "JobFlow")
QUEUE: Final = (SCHEDULING, "Queue")
POD_GROUP: Final = (SCHEDULING, "PodGroup")
HYPER_NODE: Final = (TOPOLOGY, "HyperNode")
SPECS: Final[Mapping[tuple[str, str], FieldPath]] = {
    JOB: ("spec",),
    CRON_JOB: ("spec", "jobTemplate", "spec"),
    JOB_TEMPLATE: ("spec",),
}
"""The path of the spec of a Job, in each kind that contains such a spec."""
KINDS: Final = frozenset((JOB, CRON_JOB, JOB_TEMPLATE, JOB_FLOW, QUEUE, POD_GROUP, HYPER_NODE))
SCHEDULER: Final = "volcano"
"""The default name of Volcano's scheduler; `--scheduler-name` sets another name."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
"""The scheduler of a pod that names no scheduler."""
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""The annotation that names a queue. A namespace, a pod or the owner of a pod may have the annotation."""
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""The annotation by which a pod names its PodGroup. The scheduler reads no other annotation for this."""
TASK: Final = "volcano.sh/task-spec"
"""The annotation or label by which a pod names its task."""
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"

QUEUES: Final = GroupVersionKind(SCHEDULING, "v1beta1", "Queue")
POD_GROUPS: Final = GroupVersionKind(SCHEDULING, "v1beta1", "PodGroup")
HYPER_NODES: Final = GroupVersionKind(TOPOLOGY, "v1alpha1", "HyperNode")
JOB_TEMPLATES: Final = GroupVersionKind(FLOW, "v1alpha1", "JobTemplate")
_ANNOTATIONS: Final = tuple(f'metadata.annotations["{key}"]' for key in (HIERARCHY, HIERARCHY_WEIGHTS))
QUEUE_LOOKUP: Final = interest_in_fields(QUEUES, *_ANNOTATIONS, "spec", "status.state", "status.allocated")
NAMESPACE_LOOKUP: Final = interest_in_fields(NAMESPACE, "metadata.labels", f'metadata.annotations["{QUEUE_NAME}"]')
HYPER_NODE_LOOKUP: Final = interest_in_fields(HYPER_NODES, "spec.tier", "spec.tierName")
POD_GROUP_LOOKUP: Final = interest_in_fields(POD_GROUPS)
JOB_TEMPLATE_LOOKUP: Final = interest_in_fields(JOB_TEMPLATES, "spec")

ROOT: Final = "root"
"""The queue above all other queues. Volcano creates this queue."""


class LifecyclePolicy(Typed):
    """The action after an event, or after a container exited with a code."""

    action = Text()
    event = Text()
    events = Texts()
    exit_code = OptionalNumber()

    @property
    def distinct_events(self) -> list[str]:
        """Return the events of the policy, without repetitions."""
        return list(dict.fromkeys((*self.events, *((self.event,) if self.event else ()))))


class NetworkTopology(Typed):
    """How far apart in the network the pods of a gang may be."""

    mode = Text()
    highest_tier_allowed = OptionalNumber()
    highest_tier_name = Text()

    @property
    def hard_highest_tier(self) -> int | None:
        """Return the number of the highest tier that a hard topology allows; None for a soft topology, or without a
        number.
        """
        return None if self.mode == "soft" else self.highest_tier_allowed


class PartitionPolicy(Typed):
    """The partitions of a task: parts of one size that are placed together."""

    total_partitions = Number()
    partition_size = Number()
    min_partitions = Number()
    network_topology = Part(NetworkTopology)


class DependsOn(Typed):
    """The tasks that a task waits for. `iteration` says whether the task waits for all of these tasks, or for any."""

    names = Texts(name="name")
    iteration = Text()


class Task(Typed):
    """One task of a Job: pods of one template."""

    name = Text()
    replicas = Number()
    explicit_min_available = OptionalNumber(name="minAvailable")
    template = Part(PodTemplate)
    policies = Parts(LifecyclePolicy)
    topology_policy = Text()
    depends_on = Part(DependsOn)
    partition_policy = Part(PartitionPolicy)

    @property
    def index(self) -> int:
        """Return the index of the task."""
        return int(self.at[-1])

    @property
    def min_available(self) -> int:
        """Return how many pods of the task the gang needs."""
        return self.replicas if self.explicit_min_available is None else self.explicit_min_available

    @property
    def waits_for_any(self) -> bool:
        """Return whether the task waits for any one of the named tasks, instead of all."""
        return len(self.depends_on.names) > 1 and self.depends_on.iteration == "any"

    @property
    def pod_spec(self) -> PodSpec:
        """Return the spec of the task's pods."""
        return self.template.spec


class JobVolume(Typed):
    """A volume that all containers of a Job mount."""

    mount_path = Text()
    volume_claim_name = Text()
    volume_claim = Part(VolumeClaimSpec)


class JobSpec(Typed):
    """The spec of a Job or of a template of Jobs."""

    scheduler_name = Text()
    min_available = Number()
    volumes = Parts(JobVolume)
    tasks = Parts(Task)
    policies = Parts(LifecyclePolicy)
    plugins = TextListMap()
    queue = Text()
    priority_class_name = Text()
    min_success = OptionalNumber()
    network_topology = Part(NetworkTopology)

    @cached_property
    def pod_count(self) -> int:
        """Return the number of pods of all tasks."""
        return sum(task.replicas for task in self.tasks)

    @cached_property
    def needed_pod_count(self) -> int:
        """Return the sum of minAvailable of all tasks."""
        return sum(task.min_available for task in self.tasks)

    @cached_property
    def tasks_by_name(self) -> dict[str, Task]:
        """Return the first task of each name."""
        return {task.name: task for task in reversed([*self.tasks])}

    @cached_property
    def plugin_flags(self) -> dict[str, ParsedFlags]:
        """Return the parsed arguments of each plugin that is known."""
        return {
            name: PLUGINS[name].parse_arguments(arguments)
            for name, arguments in self.plugins.items()
            if name in PLUGINS
        }

    def tasks_by_role(self, plugin: str) -> Mapping[str, str]:
        """Return the task name for each role of a plugin, and the other arguments of the plugin by name.

        The plugin must be in PLUGINS and in the job.
        """
        return {**PLUGINS[plugin].tasks, **self.plugin_flags[plugin].values}

    @cached_property
    def has_no_placeholders(self) -> bool:
        """Return whether no number and no object in the spec is a placeholder."""
        return not any(path[: len(self.at)] == self.at for path in self.reading.omitted)


class Job(Object):
    """batch.volcano.sh Job."""

    gvk = GroupVersionKind(BATCH, "v1alpha1", "Job")
    spec = Part(JobSpec)


class JobTemplate(Object):
    """flow.volcano.sh JobTemplate."""

    gvk = JOB_TEMPLATES
    spec = Part(JobSpec)


class CronJobTemplate(Typed):
    """The template of the Jobs of a CronJob."""

    spec = Part(JobSpec)


class CronJobSpec(Typed):
    """The spec of a CronJob."""

    schedule = Text()
    time_zone = Text()
    starting_deadline_seconds = Number()
    job_template = Part(CronJobTemplate)


class CronJob(Object):
    """batch.volcano.sh CronJob."""

    gvk = GroupVersionKind(BATCH, "v1alpha1", "CronJob")
    spec = Part(CronJobSpec)


class FlowDependsOn(Typed):
    """The flows that a flow waits for."""

    targets = Texts()
    probe = Raw()


class Flow(Typed):
    """One Job of a JobFlow, by the name of its JobTemplate."""

    name = Text()
    depends_on = Part(FlowDependsOn)
    patch = Raw()


class JobFlowSpec(Typed):
    """The spec of a JobFlow."""

    flows = Parts(Flow)


class JobFlow(Object):
    """flow.volcano.sh JobFlow."""

    gvk = GroupVersionKind(FLOW, "v1alpha1", "JobFlow")
    spec = Part(JobFlowSpec)


class Guarantee(Typed):
    """The amounts that a queue always has."""

    resource = Quantities()
    written_resource = Amounts(name="resource")


class QueueSpec(Typed):
    """The spec of a Queue, with its amounts both as quantities and as written."""

    capability = Quantities()
    deserved = Quantities()
    guarantee = Part(Guarantee)
    parent = Text()
    written_capability = Amounts(name="capability")
    written_deserved = Amounts(name="deserved")

    def amounts_with_paths(self) -> Iterator[tuple[FieldPath, Entries[Amount]]]:
        """Yield all amounts as written, with their paths."""
        yield self.path("capability"), self.written_capability
        yield self.path("deserved"), self.written_deserved
        yield self.guarantee.path("resource"), self.guarantee.written_resource


class QueueStatus(Typed):
    """The status of a Queue. The state is "" until the controller has seen the queue."""

    state = Text()
    allocated = Quantities()


class Queue(Object):
    """scheduling.volcano.sh Queue."""

    gvk = QUEUES
    spec = Part(QueueSpec)
    status = Part(QueueStatus)

    @property
    def parent(self) -> str:
        """Return the name of the parent queue; "" for a queue below the root."""
        return "" if self.spec.parent == ROOT else self.spec.parent

    @property
    def state(self) -> str:
        """Return the queue's state: Open, Closed, Closing or Unknown; "" until the controller has seen the queue."""
        return self.status.state

    @property
    def running_pod_count(self) -> int:
        """Return how many pods run in the queue."""
        pods = self.status.allocated.get("pods")
        return pods.value() if pods else 0


class SubGroupPolicy(Typed):
    """Subgroups of a gang."""

    min_sub_groups = Number()
    match_label_keys = Texts()
    network_topology = Part(NetworkTopology)


class PodGroupSpec(Typed):
    """The spec of a PodGroup."""

    min_member = Number()
    min_task_member = NumberMap()
    min_resources = Amounts()
    queue = Text()
    network_topology = Part(NetworkTopology)
    sub_group_policy = Parts(SubGroupPolicy)


class PodGroup(Object):
    """scheduling.volcano.sh PodGroup."""

    gvk = POD_GROUPS
    spec = Part(PodGroupSpec)


class ExactMatch(Typed):
    """Selects one member by its name."""

    name = Text()


class RegexMatch(Typed):
    """Selects members by a pattern of their names."""

    pattern = Text()


class MemberSelector(Typed):
    """The nodes or HyperNodes that are members."""

    exact_match = Part(ExactMatch)
    regex_match = Part(RegexMatch)
    label_match = Raw()


class HyperNodeMember(Typed):
    """A member of a HyperNode."""

    type = Text()
    selector = Part(MemberSelector)


class HyperNodeSpec(Typed):
    """The spec of a HyperNode."""

    tier = OptionalNumber()
    tier_name = Text()
    members = Parts(HyperNodeMember)


class HyperNode(Object):
    """topology.volcano.sh HyperNode."""

    gvk = HYPER_NODES
    spec = Part(HyperNodeSpec)
