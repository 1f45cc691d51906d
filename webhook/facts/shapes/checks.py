"""The checks of the types of fields, of unknown fields, and of selectors."""

from __future__ import annotations

from typing import Final

from webhook.facts.kinds import CRON_JOB, JOB, TRAIN_JOB, TRAINING_RUNTIMES
from webhook.facts.shapes.job_specs import check_spec_of_job
from webhook.facts.shapes.manifest_shape import (
    NAMED_KINDS,
    SECRET,
    check_data_of_secret,
    check_fields_of_object,
    check_fields_of_pod,
    check_names_of_object,
)
from webhook.facts.shapes.object_shape import (
    POD_KIND,
    check_field_types_of_object,
    check_field_types_of_pod_template,
    check_values_of_trainer_object,
    check_values_of_volcano_object,
)
from webhook.facts.shapes.pods_in_files import (
    WEBHOOKS_OF_AUDITS,
    WORKLOADS,
    check_pod_in_file,
    check_pods_of_workload,
)
from webhook.facts.shapes.selectors import (
    INGRESS,
    SELECTING_KINDS,
    SERVICES,
    WORKLOADS_OF_AUDITS,
    check_labels_of_template,
    check_port_numbers,
    check_ports_are_distinct,
    check_ports_of_ingress,
    check_ports_of_probes,
    check_ports_of_services,
    check_selector_of_job,
)
from webhook.facts.subject import Check
from webhook.facts.train_job_pods.types import INSTALLED
from webhook.facts.volcano_objects.types import KINDS as VOLCANO
from webhook.facts.volcano_objects.types import NAMESPACE_LOOKUP

CHECKS: Final = (
    Check(group="pod-template-shape", run=check_field_types_of_pod_template, kinds=POD_KIND),
    Check(group="object-shape", run=check_field_types_of_object),
    Check(
        group="object-shape",
        run=check_values_of_trainer_object,
        kinds=TRAINING_RUNTIMES | {TRAIN_JOB},
        lookups=INSTALLED,
    ),
    Check(group="object-shape", run=check_values_of_volcano_object, kinds=VOLCANO, lookups=(NAMESPACE_LOOKUP,)),
    Check(group="object-shape", run=check_labels_of_template, kinds=SELECTING_KINDS),
    Check(group="object-shape", run=check_selector_of_job, kinds=frozenset((JOB, CRON_JOB))),
    Check(group="object-shape", run=check_spec_of_job, kinds=frozenset((JOB, CRON_JOB))),
    Check(group="manifest-shape", run=check_fields_of_pod, kinds=POD_KIND),
    Check(group="manifest-shape", run=check_pod_in_file, kinds=POD_KIND),
    Check(group="manifest-shape", run=check_ports_of_probes, kinds=POD_KIND),
    Check(group="manifest-shape", run=check_fields_of_object),
    Check(group="manifest-shape", run=check_data_of_secret, kinds=SECRET),
    Check(group="manifest-shape", run=check_names_of_object, kinds=NAMED_KINDS),
    Check(
        group="manifest-shape",
        run=check_pods_of_workload,
        kinds=WORKLOADS,
        lookups_of_audits=WEBHOOKS_OF_AUDITS,
    ),
    Check(group="manifest-shape", run=check_port_numbers, kinds=frozenset((("", "Service"),))),
    Check(group="manifest-shape", run=check_ports_are_distinct, kinds=frozenset((("", "Service"),))),
    Check(group="manifest-shape", run=check_ports_of_ingress, kinds=INGRESS, lookups=(SERVICES,)),
    Check(
        group="manifest-shape",
        run=check_ports_of_services,
        kinds=SELECTING_KINDS - {JOB},
        lookups=(SERVICES,),
        lookups_of_audits=WORKLOADS_OF_AUDITS,
    ),
)
