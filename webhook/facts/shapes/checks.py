"""The checks of values that are not of the types of their fields."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.shapes.object_shape import decode_object, validate_trainer, validate_volcano
from webhook.facts.shapes.pod_template_shape import POD, decode_pod_template
from webhook.facts.train_job_pods.lookups import INSTALLED
from webhook.facts.volcano_objects.kinds import KINDS as VOLCANO
from webhook.facts.volcano_objects.kinds import OF_NAMESPACES

CHECKS: Final = (
    Check(group="pod-template-shape", run=decode_pod_template, kinds=POD),
    Check(group="object-shape", run=decode_object),
    Check(group="object-shape", run=validate_trainer, kinds=TRAINING_RUNTIMES | {TRAIN_JOB}, lookups=(INSTALLED,)),
    Check(group="object-shape", run=validate_volcano, kinds=VOLCANO, lookups=(OF_NAMESPACES,)),
)
