"""The checks of values that are not of the types of their fields."""

from __future__ import annotations

from typing import Final

from webhook.facts.check import Check
from webhook.facts.kinds import TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.shapes.object_shape import (
    check_field_types_of_object,
    check_values_of_trainer_object,
    check_values_of_volcano_object,
)
from webhook.facts.shapes.pod_template_shape import POD, check_field_types_of_pod_template
from webhook.facts.train_job_pods.lookups import INSTALLED
from webhook.facts.volcano_objects.kinds import KINDS as VOLCANO
from webhook.facts.volcano_objects.kinds import OF_NAMESPACES

CHECKS: Final = (
    Check(group="pod-template-shape", run=check_field_types_of_pod_template, kinds=POD),
    Check(group="object-shape", run=check_field_types_of_object),
    Check(
        group="object-shape",
        run=check_values_of_trainer_object,
        kinds=TRAINING_RUNTIMES | {TRAIN_JOB},
        lookups=(INSTALLED,),
    ),
    Check(group="object-shape", run=check_values_of_volcano_object, kinds=VOLCANO, lookups=(OF_NAMESPACES,)),
)
