"""Rules for the queue that a pod, or a workload of another project, names for its PodGroup.

Source: volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup.
"""

from __future__ import annotations

from typing import Final

from webhook.facts.volcano.groups import VOLCANO_POD
from webhook.facts.volcano.referenced_queue import QueueRules

POD_QUEUE_EXISTS: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-exists",
    title="The queue that a workload of another project names exists.",
    why="Volcano's webhook refuses the PodGroup that is made of the workload, and the pods wait for it.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
POD_QUEUE_OPEN: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-open",
    title="The queue that a workload of another project names is open.",
    why="Volcano's webhook refuses the PodGroup that is made of the workload, and the pods wait for it.",
    source="volcano-sh/volcano@ed72c7c815a9 pkg/controllers/podgroup",
)
POD_QUEUE_LEAF: Final = VOLCANO_POD.rule(
    "volcano-pod/queue-leaf",
    title="The queue that a workload of another project names has no queues below it.",
    why=(
        "Volcano takes the PodGroup and places no pod of it. With the hierarchy of the capacity plugin, one gang in a "
        "queue with children stops the scheduler for everybody."
    ),
    refused_by="nobody; the scheduler stops",
    source="https://github.com/volcano-sh/volcano/issues/4227",
    severity="high",
)
POD_CAPABILITY: Final = VOLCANO_POD.rule(
    "volcano-pod/capability",
    title="The queue of a training job may give what its gang needs.",
    why=(
        "The operator writes minResources of a schedulingPolicy into the PodGroup, which is let in when they are "
        "within the capability of the queue. Above that it waits for ever."
    ),
    refused_by="nobody; the gang stays pending",
    source="https://github.com/volcano-sh/volcano/issues/3220",
    severity="high",
    issues=(
        "https://github.com/volcano-sh/volcano/issues/452",
        "https://github.com/volcano-sh/volcano/issues/1863",
    ),
)
OF_PODS: Final = QueueRules(POD_QUEUE_EXISTS, POD_QUEUE_OPEN, POD_QUEUE_LEAF, POD_CAPABILITY)
