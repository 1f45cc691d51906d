"""Objects that are reviewed once before a server is ready.

The reviews build the types of fields, the tables that are read from files, and the compiler for selectors of devices.
So no review of a user waits for these parts.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.admission.fixtures import attributes_of_object
from webhook.apimachinery.attributes import JSON, Attributes

_POD: Final[dict[str, Any]] = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "main",
                "command": ["sh", "-c", "torchrun train.py"],
                "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
                "resources": {"limits": {"nvidia.com/gpu": 1}},
            }
        ],
    }
}
_SELECTOR: Final = {"cel": {"expression": "device.driver.matches('a')"}}


def _sample(api_version: str, kind: str, **spec: JSON) -> Attributes:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "warm-up", "namespace": "default"}}
    return attributes_of_object({**obj, "spec": spec})


SAMPLES: Final = (
    _sample("v1", "Pod", containers=[{"name": "main"}]),
    _sample(
        "resource.k8s.io/v1",
        "ResourceClaim",
        devices={"requests": [{"name": "a", "exactly": {"selectors": [_SELECTOR]}}]},
    ),
    _sample("batch/v1", "Job", template=_POD),
    _sample("batch.volcano.sh/v1alpha1", "Job", tasks=[{"name": "main", "replicas": 1, "template": _POD}]),
    _sample(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        replicatedJobs=[{"name": "main", "template": {"spec": {"template": _POD}}}],
    ),
    _sample(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        runtimeRef={"name": "torch-distributed"},
        trainer={"image": "main", "command": ["sh", "-c", "torchrun train.py"], "numNodes": 2},
    ),
    _sample("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": {"replicas": 1, "template": _POD}}),
)
