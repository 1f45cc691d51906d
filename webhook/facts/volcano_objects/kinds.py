"""The kinds of Volcano, and the objects that checks look up in the cluster. Knows no rule.

Source: volcano-sh/volcano@ed72c7c815a9, volcano-sh/apis@536f121.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.attributes import NAMESPACE, GroupVersionKind
from webhook.cluster.interest import interest_in_fields
from webhook.paths import FieldPath

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
"""The path of a Job's spec in each kind that has one."""
KINDS: Final = frozenset((JOB, CRON_JOB, JOB_TEMPLATE, JOB_FLOW, QUEUE, POD_GROUP, HYPER_NODE))
SCHEDULER: Final = "volcano"
"""The name of Volcano's scheduler without `--scheduler-name`."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
"""The scheduler of a pod that names none."""
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""The annotation that names a queue: of a namespace, a pod or its owner."""
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""The annotation of a pod that names its PodGroup: the only one that the scheduler reads."""
TASK: Final = "volcano.sh/task-spec"
"""The annotation, or the label, of a pod that names its task."""
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"

QUEUES: Final = GroupVersionKind(SCHEDULING, "v1beta1", "Queue")
POD_GROUPS: Final = GroupVersionKind(SCHEDULING, "v1beta1", "PodGroup")
HYPER_NODES: Final = GroupVersionKind(TOPOLOGY, "v1alpha1", "HyperNode")
JOB_TEMPLATES: Final = GroupVersionKind(FLOW, "v1alpha1", "JobTemplate")
_ANNOTATIONS: Final = tuple(f'metadata.annotations["{key}"]' for key in (HIERARCHY, HIERARCHY_WEIGHTS))
OF_QUEUES: Final = interest_in_fields(QUEUES, *_ANNOTATIONS, "spec", "status.state", "status.allocated")
OF_NAMESPACES: Final = interest_in_fields(NAMESPACE, "metadata.labels", f'metadata.annotations["{QUEUE_NAME}"]')
OF_HYPER_NODES: Final = interest_in_fields(HYPER_NODES, "spec.tier", "spec.tierName")
OF_POD_GROUPS: Final = interest_in_fields(POD_GROUPS)
OF_JOB_TEMPLATES: Final = interest_in_fields(JOB_TEMPLATES, "spec")
