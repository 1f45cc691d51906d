"""Checks of pods in files: mounts and volumes, images, variables that list folders, and the fields of Jobs.

The API server refuses most of these pods before it calls webhooks, so recorded reviews are not checked. Templates of
custom kinds are checked only where no controller adds to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import structs

from webhook.apimachinery.attributes import GroupVersionKind
from webhook.apimachinery.images import parse_image_name
from webhook.apimachinery.paths import path_as_text
from webhook.cluster.interest import interest_in_fields
from webhook.facts.command_lines.shell import read_shell_call
from webhook.facts.kinds import CRON_JOB, JOB, STATEFUL_SET
from webhook.facts.pods.checks import template_problems
from webhook.facts.pods.node_selection import is_selected
from webhook.facts.pods.pod_sets import is_part_of_template
from webhook.facts.pods.pod_template import problems_in_files
from webhook.facts.shapes.manifest_shape import MANIFEST_SHAPE, is_to_replace, names_in_text
from webhook.facts.subject import Subject
from webhook.patch.schema import is_builtin
from webhook.rules.problem import MissingObject, Problem
from webhook.text.similar_names import nearest_name
from webhook.text.wording import did_you_mean
from webhook.typed.collections import Items
from webhook.typed.environment import has_source
from webhook.typed.fields import Part, Parts
from webhook.typed.jobs import CronJob, Job, JobSpec
from webhook.typed.objects import Object
from webhook.typed.pods import Container, LabelSelector, Pod, PodSpec, PodTemplate, Variable
from webhook.typed.view import Typed
from webhook.typed.volumes import VolumeMount
from webhook.yamltext.placeholders import is_placeholder, is_placeholder_for_non_text

MOUNT_PATH: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/mount-path",
    title="Two volumes are mounted at one path",
    why="The API server refuses the object, because one mount would hide the other.",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="ValidateVolumeMounts",
    level="warn",
)
"""In templates of custom kinds, `pod-template/mount-path` reports two mounts at one path."""
VOLUME_EXISTS: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/volume-exists",
    title="A container mounts a volume that its pod does not have",
    why="The API server refuses the object, because each mount needs a volume with its name.",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="ValidateVolumeMounts",
    level="warn",
)
RESTART_POLICY: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/restart-policy",
    title="The kind does not allow this restartPolicy",
    why=(
        "Pods of a Deployment, StatefulSet, DaemonSet or ReplicaSet always restart. Pods of a Job end, so the API "
        "server refuses Always, the default."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/apps/validation/validation.go",
    function="ValidatePodTemplateSpecForReplicaSet",
    level="warn",
)
IMAGE_NAME: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/image-name",
    title="An image name has capital letters, or a comment follows it without a blank",
    why=(
        "No registry has the image. The kubelet refuses the name, or reads its first part as the host of a registry. "
        "In YAML, a comment begins with # only after a blank."
    ),
    refused_by="the kubelet, or the pull of the image",
    source="github.com/distribution/reference v0.6.0 normalize.go",
    function="ParseNormalizedNamed",
    level="warn",
    fails="start",
)
_EXPANSION: Final = (
    "https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/"
)
PATH_VARIABLE: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/path-variable",
    title="PATH keeps the text $PATH, so the programs of the image are not found",
    why=(
        "Kubernetes replaces only `$(NAME)`, and only variables of the Pod. The value replaces the PATH of the image, "
        "with directories such as /usr/bin."
    ),
    refused_by="the container runtime, which does not find the command",
    source=_EXPANSION,
    level="warn",
    fails="start",
)
LIBRARY_PATH: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/library-path",
    title="The variable keeps the text of its own name, so the value of the image is lost",
    why=(
        "Kubernetes replaces only `$(NAME)`, and only variables of the Pod. The container works if the image does not "
        "set the variable."
    ),
    source=_EXPANSION,
    level="advice",
    fails="silent",
)
COMPLETION_INDEX: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/completion-index",
    title="A Job that is not Indexed reads JOB_COMPLETION_INDEX",
    why=(
        "Kubernetes sets JOB_COMPLETION_INDEX only in the pods of an Indexed Job. In other pods the reference stays a "
        "text, and a shell reads an empty value."
    ),
    refused_by="nothing; the pods have no index",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode",
    level="warn",
    fails="start",
)
ONLY_READ: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/volume-only-read",
    title="No container can write to the emptyDir",
    why="An emptyDir is empty when the pod starts. If all its mounts are readOnly, the volume stays empty.",
    refused_by="nothing; the containers see an empty folder",
    source="https://kubernetes.io/docs/concepts/storage/volumes/#emptydir",
    level="warn",
    fails="silent",
)
HOME_FOLDER: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/home-folder",
    title="A volume is mounted at a folder that begins with ~",
    why=(
        "Only a shell replaces ~ with a home. The kubelet adds / to the path, so the volume appears in a folder with "
        "the name ~, and the program writes to another folder."
    ),
    refused_by="nothing; the files of the program are not in the volume",
    source="k8s.io/kubernetes v1.36 pkg/kubelet/kubelet_pods.go",
    function="makeMounts",
    level="warn",
    fails="silent",
)
_HOME: Final = "~"
VARIABLE_SOURCE: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/variable-source",
    title="A variable reads a field or an amount that it cannot read",
    why=(
        "Variables can read only the amounts of CPUs, memory, ephemeral storage and huge pages, and a few fields of "
        "the pod. A device plugin sets the variables for its devices."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateEnvVarValueFrom",
    level="warn",
)
MISSING_PROGRAM: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/missing-program",
    title="A command needs a program that its image does not have",
    why=(
        "The images of Ollama and busybox have few programs. A loop that waits until a missing program succeeds never "
        "ends, and a probe by a missing program always fails."
    ),
    refused_by="the shell or the container runtime, which does not find the program",
    source="ollama/ollama Dockerfile; https://busybox.net/downloads/BusyBox.html",
    issues=("https://github.com/ollama/ollama/issues/9781",),
    level="warn",
    fails="start",
)
CONTAINER_NAME: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/container-name",
    title="Two containers of a pod have the same name",
    why="The API server refuses the object, because names are unique over all containers and init containers of a pod.",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateContainers, validateInitContainers",
    level="warn",
)
"""In templates of custom kinds, `pod-template/name` reports two containers with one name."""
POD_VALUE: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/pod-value",
    title="The API server refuses a value of the pod or of its template",
    why=(
        "The API server checks names, ports, labels, probes, mounts, affinity and tolerations. These checks are for "
        "Pods and for the pod templates of Deployments, Jobs and other built-in kinds."
    ),
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="ValidatePodTemplateSpec",
    level="warn",
)
"""In templates of custom kinds, the rules of the group pod-template report the values."""
NO_IMAGE: Final = MANIFEST_SHAPE.rule(
    "manifest-shape/no-image",
    title="A container of a workload has no image",
    why="The API server refuses the workload, because each container in its pod template needs an image.",
    source="k8s.io/kubernetes v1.36 pkg/apis/core/validation/validation.go",
    function="validateContainerCommon",
    level="warn",
)
"""In other kinds, rules such as `training-job/image-required` report a missing image."""
_IMAGE_TRIGGERS: Final = "image.openshift.io/triggers"
"""The annotation that lets OpenShift set the images of a workload."""
_BLANK_IMAGE: Final = "` `"
"""The image of a template for which OpenShift sets the image. The API server accepts this image in a template, but not
in a Pod (k8s.io/kubernetes v1.36 validation.go, validateContainerCommon)."""
_TO_FILL_IN: Final = re.compile(
    r"(?i:your|user|name|example|registry|account|project|image|repo|replace|change)|(^|/)[A-Z]+([_-][A-Z]+)*(/|$)"
    r"|\w \w"
)
"""The name of an image that a person or a program fills in, such as `YOUR_REGISTRY/app`, `yourName/app` or `Filled By
Configuration`. No name of an image has a blank."""
_REFERENCE: Final = re.compile(r"\$\$?(\w{1,40})|\$\$?[{(](\w{1,40})[})]")
"""Matches a reference to a variable, such as the earlier value of the variable itself: `$PATH`, `${PATH}` or `$(PATH)`.
"""
_PATH_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables that list folders, and that images set."""
_USUAL_FOLDERS: Final = frozenset(("/bin", "/usr/bin"))
_USUAL_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SETS_PATH: Final = re.compile(r"\bPATH=|profile\b|\.bashrc\b|--login\b|sh -[a-z]{0,3}l")
"""Matches a command that sets PATH, or a shell that reads a profile, which can set PATH."""
_SHELL: Final = re.compile(r"/(?:[\w.]+/){0,4}(?:ba|da|a|z)?sh")
_OF_ENVIRONMENT: Final = re.compile(r"conda|miniforge|mamba|venv|/envs?/")
"""Matches the folder of an environment of Python, which has its own interpreter."""
_INDEX: Final = "JOB_COMPLETION_INDEX"
_READS_INDEX: Final = re.compile(rf"(?<![$\\])\$(?:{_INDEX}\b|\{{{_INDEX}\}}|\({_INDEX}\))")
"""Matches `$JOB_COMPLETION_INDEX`, `${JOB_COMPLETION_INDEX}` and `$(JOB_COMPLETION_INDEX)`."""
_HANDLES_NO_INDEX: Final = re.compile(rf"{_INDEX}(?:[:+?-]|=)|-[nzv] \"?\$?\{{?{_INDEX}")
"""Matches a shell command that sets the index, has a default for the index, or tests whether the index is set."""
_WITHOUT_INDEX: Final = ("", "NonIndexed")
_AMOUNT: Final = re.compile("(?:limits|requests)[.](?:cpu|memory|ephemeral-storage|hugepages-.*)")
_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
"""The fields of the pod that a variable can read."""
_OLD_FIELD: Final = "spec.host"
"""The name of spec.nodeName in old clients. The API server replaces this name."""
_LABELS_OR_ANNOTATIONS: Final = re.compile(r"metadata[.](?:labels|annotations)(\['.+'\])?")
"""Matches all labels or annotations, or one of them. A variable can read only one label or annotation."""
_OLLAMA: Final = "ollama/ollama"
_ABSENT_PROGRAMS: Final = {
    _OLLAMA: frozenset(("curl", "jq", "nc", "python", "python3", "wget")),
    "busybox": frozenset(("bash", "curl", "git", "jq", "kubectl", "python", "python3")),
}
"""Images of Docker Hub, and usual programs that they do not have."""
_CENTOS_TAG: Final = "rocm"
"""A text in the tags of Ollama's images that contained the programs of CentOS."""
_DOCKER_HUB: Final = ("", "docker.io", "index.docker.io")
_WAITS_FOR: Final = re.compile(r"\b(?:until|while +!) +(?:\[+ +)?\"?(?:\w+=)?\"?(?:\$\( ?|`)?([a-z0-9]+)(?= )")
"""Matches a shell loop that waits until a program succeeds. The group is the program."""
_GETS_PROGRAM: Final = re.compile(r"apt-get|apk |chmod|ln -s|PATH=|command -v|which |type |\(\) *\{")
"""Signs of a script that installs, defines or looks for a program."""
_ENDS_LOOP: Final = re.compile(r"\b(?:break|exit|return|kill)\b|timeout ")
_ONE_PROGRAM: Final = re.compile(r"(?:/usr/bin/)?([a-z0-9]+) [^|;&\n]*(?:\|\| ?exit 1)?")
"""Matches a script that only runs one program. The group is the program."""
_PROGRAM_FOLDERS: Final = ("/bin", "/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/sbin", "/usr/local", "/usr")
_EMPTY_DIR: Final = "emptyDir"
_HUGE_PAGES: Final = "HugePages"
_RAY_GROUP: Final = "ray.io"
"""The group of kinds with containers that run a login shell, which sets PATH."""
WORKLOADS: Final = frozenset(
    (
        *(("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        JOB,
        CRON_JOB,
        ("", "ReplicationController"),
    )
)
"""Kinds with a pod template that the API server checks. Controllers of other kinds may add volumes to templates."""
_KINDS_OF_ENDING_PODS: Final = frozenset((JOB, CRON_JOB))
_ALWAYS: Final = "Always"
_POLICIES_OF_JOBS: Final = ("OnFailure", "Never")
"""The values of restartPolicy in a whole Job. A patch of a Job rarely sets restartPolicy."""
_OF_JENKINS: Final = ("workspace-volume",)
"""The volume that Jenkins adds to each Pod of an agent. Users often keep such a Pod beside a Jenkinsfile."""
_VOLUMES: Final = "volumes"
_NO_VOLUME: Final = "is not the name of a volume of the pod"


class _WorkloadSpec(Typed):
    """The spec of a workload, with the claims of a StatefulSet."""

    template = Part(PodTemplate)
    volume_claim_templates = Parts(Object)


class _Workload(Object):
    """An object of a kind in `WORKLOADS` that is not CronJob."""

    spec = Part(_WorkloadSpec)


class _PodWebhook(Typed):
    """admissionregistration.k8s.io MutatingWebhook."""

    object_selector = Part(LabelSelector)


class MutatingWebhookConfiguration(Object):
    """admissionregistration.k8s.io MutatingWebhookConfiguration, without the rules, which a controller may write."""

    gvk = GroupVersionKind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration")
    webhooks = Parts(_PodWebhook)


WEBHOOKS_OF_AUDITS: Final = (interest_in_fields(MutatingWebhookConfiguration.gvk, "webhooks"),)
_ASKING: Final = frozenset(("In", "Exists"))
"""Operators that only a label of the object meets."""


def check_pod_in_file(subject: Subject) -> Iterator[Problem]:
    """Report mistakes in a Pod or a pod template as a user wrote it."""
    template_of, pod = subject.template_of, subject.typed(Pod).spec
    if not subject.attributes.is_plain or subject.is_patch:
        return
    yield from _problems_of_image_names(pod)
    yield from _problems_of_variable_sources(pod)
    yield from _problems_of_missing_programs(pod)
    if template_of is None or template_of.group != _RAY_GROUP:
        yield from _problems_of_path_variables(pod)
    if template_of is None or is_builtin(template_of):
        yield from _values_that_kubernetes_refuses(subject, pod)
    if any("volumeMounts" in container.json for container in pod.all_containers()):
        yield from _problems_of_mounts_in_file(subject, pod)


def _problems_of_mounts_in_file(subject: Subject, pod: PodSpec) -> Iterator[Problem]:
    template_of = subject.template_of
    yield from _problems_of_home_folders(pod)
    if template_of is None or is_builtin(template_of):
        yield from _volumes_without_writer(subject)
    if template_of is None:
        yield from _problems_of_mounts(subject.typed(Pod), _OF_JENKINS, subject)


def check_pods_of_workload(subject: Subject) -> Iterator[Problem]:
    """Report mistakes in a workload's pod template, such as a restartPolicy that the workload's kind does not allow."""
    if not subject.attributes.is_plain:
        return
    if subject.group_kind == CRON_JOB:
        spec_of_cron_job = subject.typed(CronJob).spec
        job = spec_of_cron_job.job_template.spec
        pod = job.template.spec
        yield from (
            *_problems_of_mounts(job.template, (), subject),
            *_problems_of_restart_policy(subject, job.template),
        )
        yield from _problems_of_completion_index(job, subject)
        yield from _containers_without_image(subject, pod, is_whole=spec_of_cron_job.has("schedule"))
        return
    spec = subject.typed(_Workload).spec
    pod = spec.template.spec
    problems = _problems_of_mounts(spec.template, {each.name for each in spec.volume_claim_templates}, subject)
    yield from _consider_webhooks(problems, spec.template, subject) if subject.group_kind == STATEFUL_SET else problems
    yield from _problems_of_restart_policy(subject, spec.template)
    if subject.group_kind == JOB:
        yield from _problems_of_completion_index(subject.typed(Job).spec, subject)
        yield from _containers_without_image(subject, pod, is_whole=pod.restart_policy in _POLICIES_OF_JOBS)
    else:
        yield from _containers_without_image(subject, pod, is_whole=spec.has("selector"))


def _problems_of_mounts(template: PodTemplate, claims: Collection[str], subject: Subject) -> Iterator[Problem]:
    """Yield a problem for each mount with a misspelt volume name, and one problem for all other missing volumes.

    Nothing is reported if the file has only a part of the template. `claims` are the names of volumes that a controller
    adds.
    """
    pod = template.spec
    mounts = [mount for container in pod.all_containers() for mount in container.volume_mounts]
    if not mounts:
        return
    names = {*claims, *(volume.name for volume in pod.volumes)}
    missing: dict[str, VolumeMount] = {}
    for mount in mounts:
        if mount.name and mount.name not in names and not is_placeholder(mount.name):
            missing.setdefault(mount.name, mount)
    if not missing or is_part_of_template(template, subject) or any(map(is_placeholder, names)):
        return
    if _is_elsewhere(_VOLUMES, template, subject) or any(container.has(_VOLUMES) for container in pod.all_containers()):
        return
    others = []
    for name, mount in Items([*missing.items()], pod.reading.deadline):
        if near := nearest_name(name, Items([*names], pod.reading.deadline)):
            fix = did_you_mean(near, "")
            yield VOLUME_EXISTS.problem(mount.path("name"), _NO_VOLUME, fix, name, needs=_VOLUMES)
        else:
            others.append(name)
    if others:
        more = f" (likewise {names_in_text(others[1:])})" if others[1:] else ""
        path = missing[others[0]].path("name")
        fix = "add the volume, or remove the mount"
        yield VOLUME_EXISTS.problem(path, f"{_NO_VOLUME}{more}", fix, others[0], needs=_VOLUMES)


def _is_elsewhere(field: str, template: PodTemplate, subject: Subject) -> bool:
    """Return whether an object around the spec of the pod has a field that the spec should have, or the spec has the
    field with a misspelt name. `manifest-shape/unknown-field` reports this mistake.
    """
    outer: tuple[Typed, ...] = (template,)
    if subject.group_kind == CRON_JOB:
        whole = subject.typed(CronJob)
        outer = (*outer, whole, whole.spec, whole.spec.job_template, whole.spec.job_template.spec)
    elif template.at:
        outer = (*outer, subject.typed(_Workload), subject.typed(_Workload).spec)
    if any(each.has(field) for each in outer):
        return True
    return any(nearest_name(name, (field,)) for name in Items([*template.spec.json], subject.deadline))


def _consider_webhooks(problems: Iterator[Problem], template: PodTemplate, subject: Subject) -> Iterator[Problem]:
    """Yield the problems. A problem is marked as not known if a webhook in the files selects labels of the pods.

    The API server does not compare mounts and volumes of a StatefulSet. A webhook can add the volumes to its pods.
    """
    for problem in problems:
        if name := _webhooks_for_pods(template, subject):
            why = f"may add `{_VOLUMES}` to the pods"
            missing = MissingObject(kind=MutatingWebhookConfiguration.gvk.kind, name=name, why=why, is_absent=False)
            yield structs.replace(problem, missing=(missing,))
        else:
            yield problem


def _webhooks_for_pods(template: PodTemplate, subject: Subject) -> str:
    """Return the name of a webhook configuration in the files that asks for labels of the pods; "" without one."""
    others = subject.cluster.cluster.objects_in_other_files(MutatingWebhookConfiguration.gvk)
    for each in map(MutatingWebhookConfiguration.of, Items([*others], subject.deadline)):
        for webhook in each.webhooks:
            selector = webhook.object_selector
            asks = selector.match_labels or any(wanted.operator in _ASKING for wanted in selector.match_expressions)
            if asks and is_selected(template.metadata.labels, selector):
                return each.metadata.name
    return ""


def _problems_of_completion_index(job: JobSpec, subject: Subject) -> Iterator[Problem]:
    """Yield a problem for each container that reads the index of its pod, if the Job is not Indexed.

    Nothing is reported if the file has only a part of the template.
    """
    if job.completion_mode not in _WITHOUT_INDEX or job.is_omitted("completionMode"):
        return
    if is_part_of_template(job.template, subject):
        return
    for container in job.template.spec.all_containers():
        if container.env_from or _INDEX in container.environment.names:
            continue
        words = [
            *((container.path("command", number), word) for number, word in enumerate(container.command)),
            *((container.path("args", number), word) for number, word in enumerate(container.args)),
        ]
        if any(_HANDLES_NO_INDEX.search(word) for _, word in words):
            continue
        texts = [*((variable.path("value"), variable.value) for variable in container.env), *words]
        read = next(((at, match) for at, text in texts if (match := _READS_INDEX.search(text))), None)
        if read is not None:
            message = "is not set, because the Job is not Indexed"
            completions = "" if job.has("completions") else " and completions"
            fix = f"set completionMode: Indexed{completions} in the spec of the Job"
            yield COMPLETION_INDEX.problem(read[0], message, fix, read[1][0], needs="completionMode")


def _problems_of_restart_policy(subject: Subject, template: PodTemplate) -> Iterator[Problem]:
    """Yield a problem for a restartPolicy that the kind does not allow. Nothing is reported if the file has only a part
    of the template.
    """
    pod = template.spec
    policy = pod.restart_policy
    is_ending = subject.group_kind in _KINDS_OF_ENDING_PODS
    is_allowed = (policy or _ALWAYS) != _ALWAYS if is_ending else policy in ("", _ALWAYS)
    if (
        is_allowed
        or is_placeholder(policy)
        or pod.is_omitted("restartPolicy")
        or is_part_of_template(template, subject)
        or _is_elsewhere("restartPolicy", template, subject)
    ):
        return
    kind, path = subject.attributes.kind.kind, pod.path("restartPolicy")
    if is_ending:
        message = f"must be OnFailure or Never in a {kind}; Always is also the default"
        yield RESTART_POLICY.problem(path, message, "set OnFailure or Never", _ALWAYS, needs="restartPolicy")
    else:
        message = f"must be Always in a {kind}, because the pods of this kind always restart"
        yield RESTART_POLICY.problem(path, message, "remove the field, or use a Job for pods that end", policy)


def _problems_of_image_names(pod: PodSpec) -> Iterator[Problem]:
    """Yield a problem for each image name with a capital letter or #. The host of a registry may have capital letters.
    Several # mark a text that a program replaces, such as `#{TAG}#`.
    """
    for container in pod.all_containers():
        name = parse_image_name(container.image).repository
        if container.image.count("#") == 1 and not is_placeholder(container.image):
            message = "has a # in its name, so no node can pull the image"
            fix = "write a blank before #, where a comment begins, or remove #"
            yield IMAGE_NAME.problem(container.path("image"), message, fix, container.image)
        elif name != name.lower() and not _is_image_to_fill_in(container.image, name):
            message = "has capital letters in its name, so no node can pull the image"
            fix = "write the name in lower-case letters, as the registry has it"
            yield IMAGE_NAME.problem(container.path("image"), message, fix, container.image)


def _is_image_to_fill_in(image: str, name: str) -> bool:
    """Return whether a person or a program writes the image, or a file documents the field with `String`."""
    is_open = is_placeholder(image) or is_placeholder_for_non_text(name)
    return is_open or _TO_FILL_IN.search(name) is not None


def _problems_of_path_variables(pod: PodSpec) -> Iterator[Problem]:
    """Yield variables that list folders and refer to their own value in the image. Kubernetes does not know this value.

    If the image is a placeholder, a program fills in the template. The program may replace the reference too.
    """
    for container in pod.all_containers():
        names = container.environment.names
        if container.env_from or is_placeholder(container.image):
            continue
        for name in _PATH_VARIABLES:
            if names.count(name) != 1:
                continue
            variable = container.env[names.index(name)]
            parts = variable.value.split(":")
            own = next((part for part in parts if _refers_to(part, name)), "")
            if not own:
                continue
            others = [part for part in parts if part != own]
            if name != "PATH":
                message = "stays a text because Kubernetes does not replace it, so the value of the image is lost"
                fix = "write the folders of the image too, or export the variable in a shell in command"
                yield LIBRARY_PATH.problem(variable.path("value"), message, fix, own)
            elif not _finds_programs(container, others):
                message = "stays a text because Kubernetes does not replace it, so PATH lacks folders such as /usr/bin"
                fix = f"write the PATH of the image instead, often {_USUAL_PATH}"
                yield PATH_VARIABLE.problem(variable.path("value"), message, fix, own)


def _problems_of_variable_sources(pod: PodSpec) -> Iterator[Problem]:
    """Yield variables with a source that validateEnvVarValueFrom refuses. A part of a container is not checked."""
    for container in pod.all_containers():
        if not container.is_part and has_source(container.json.get("env"), pod.reading.deadline):
            for variable in container.env:
                if variable.has("valueFrom"):
                    yield from _problems_of_source(variable)


def _problems_of_source(variable: Variable) -> Iterator[Problem]:
    source = variable.value_from
    amount, field = source.resource_field_ref, source.field_ref
    if source.json and variable.value and not is_placeholder(variable.value):
        message = "must not be set beside `value`, so the API server refuses the object or its pods"
        yield VARIABLE_SOURCE.problem(source.at, message, "remove value or valueFrom")
    name = amount.resource
    if name and not _AMOUNT.fullmatch(name) and not is_placeholder(name):
        message = (
            "cannot be read by a variable, which reads only cpu, memory, ephemeral-storage and huge pages, "
            "so the API server refuses the object or its pods"
        )
        yield VARIABLE_SOURCE.problem(amount.path("resource"), message, "write the amount in the field value", name)
    if fix := _fix_of_field(field.field_path):
        message = "is not a field that a variable can read, so the API server refuses the object or its pods"
        yield VARIABLE_SOURCE.problem(field.path("fieldPath"), message, fix, field.field_path)


def _fix_of_field(path: str) -> str:
    """Return the fix for a field that a variable cannot read; "" for other fields."""
    of_map = _LABELS_OR_ANNOTATIONS.fullmatch(path)
    if path in ("", *_FIELDS, _OLD_FIELD) or (of_map and of_map[1]) or is_placeholder(path):
        return ""
    if path.startswith(("metadata.labels", "metadata.annotations")):
        return "name one label or annotation, such as metadata.labels['app']"
    return did_you_mean(
        nearest_name(path, _FIELDS), "name a field such as metadata.name, spec.nodeName or status.podIP"
    )


def _problems_of_missing_programs(pod: PodSpec) -> Iterator[Problem]:
    """Yield a problem for each command, hook and probe that needs a program which the image does not have."""
    for container in pod.all_containers():
        host, repository, tag, _ = parse_image_name(container.image)
        image = repository.removeprefix("library/")
        absent = _ABSENT_PROGRAMS.get(image) if host in _DOCKER_HUB and _CENTOS_TAG not in tag else None
        paths = [mount.mount_path.rstrip("/") for mount in container.volume_mounts] if absent else []
        if not absent or "PATH" in container.environment.names or not {*_PROGRAM_FOLDERS}.isdisjoint(paths):
            continue
        absent = absent.difference(map(_name_of_program, paths))  # a mount may be the program
        hook = container.lifecycle.post_start.exec
        places = [
            *(container.path("command", index) for index in range(len(container.command))),
            *(container.path("args", index) for index in range(len(container.args))),
        ]
        of_hook = [hook.path("command", index) for index in range(len(hook.command))]
        for words, at in ((container.words if container.command else (), places), (hook.command, of_hook)):
            name, index = _needed_program(container, words, _awaited_program)
            if name in absent:
                message = f"is not in image {image}, so the {'loop never ends' if index else 'container cannot start'}"
                other = ", or wait with `ollama list`" if index and image == _OLLAMA else ""
                yield MISSING_PROGRAM.problem(at[index], message, f"use an image with `{name}`{other}", name)
        for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
            name, index = _needed_program(container, probe.exec.command, _only_program)
            if name in absent:
                message, fix = f"is not in image {image}, so the probe always fails", f"use an image with `{name}`"
                fix = f"probe with httpGet, or {fix}"
                yield MISSING_PROGRAM.problem(probe.exec.path("command", index), message, fix, name)


def _needed_program(
    container: Container, words: Sequence[str], program_of_script: Callable[[str], str]
) -> tuple[str, int]:
    """Return the program that must exist, and the index of its word in the command; the program is "" if unknown.

    A command without a shell needs its first word. `program_of_script` returns the program that a script of a shell
    needs, or "".
    """
    call = read_shell_call(words)
    if call is None or call.is_file:
        return (_name_of_program(words[0]) if words and call is None else "", 0)
    container.charge_search(call.script)
    return program_of_script(call.script), len(call.beginning)


def _awaited_program(script: str) -> str:
    """Return the program that an endless loop of a script waits for; "" without this loop."""
    match = _WAITS_FOR.search(script)
    return "" if match is None or _GETS_PROGRAM.search(script) or _ENDS_LOOP.search(script) else match[1]


def _only_program(script: str) -> str:
    match = _ONE_PROGRAM.fullmatch(script.strip())
    return "" if match is None else match[1]


def _name_of_program(word: str) -> str:
    folder, _, name = word.rpartition("/")
    return name if folder in ("", *_PROGRAM_FOLDERS) else ""


def _refers_to(part: str, name: str) -> bool:
    reference = _REFERENCE.fullmatch(part)
    return reference is not None and name in reference.groups()


def _finds_programs(container: Container, folders: Sequence[str]) -> bool:
    """Return whether a container may find its programs without the image's PATH. The folders may contain the usual
    programs or a variable, the command may set PATH, or the command may name a program by its full path. A program such
    as `python` may be in the folder of its environment, for example /opt/conda/bin.
    """
    if any(folder.rstrip("/") in _USUAL_FOLDERS or "$" in folder for folder in folders) or container.runs(_SETS_PATH):
        return True
    program = container.command[0] if container.command else ""
    if program and not program.startswith("/"):
        return not _SHELL.fullmatch(f"/{program}") and any(map(_OF_ENVIRONMENT.search, folders))
    return bool(program) and not _SHELL.fullmatch(program)


def _problems_of_home_folders(pod: PodSpec) -> Iterator[Problem]:
    """Yield one problem for all mounts at ~ or below ~, which only a shell replaces with a folder."""
    problems = [*_mounts_below_home(pod)]
    for first in problems[:1]:
        yield structs.replace(first, also=tuple(other.path for other in problems[1:]))


def _mounts_below_home(pod: PodSpec) -> Iterator[Problem]:
    for container in pod.all_containers():
        for mount in container.volume_mounts:
            first, _, below = mount.mount_path.rstrip("/").partition("/")
            if first == _HOME:
                folder = f"/{below}" if below else ""
                message = f"stays a text, so the volume appears in /{_HOME}{folder}"
                fix = f"write the whole path of the folder, for example /root{folder}"
                yield HOME_FOLDER.problem(mount.path("mountPath"), message, fix, mount.mount_path)


def _volumes_without_writer(subject: Subject) -> Iterator[Problem]:
    """Yield a problem for each emptyDir with only readOnly mounts. A volume that an annotation names is left out,
    because a controller may add a container that writes. In a part of a template, a container may get more mounts.
    """
    pod = subject.typed(Pod).spec
    volumes = [each for each in pod.volumes if each.source == _EMPTY_DIR]
    containers = [*pod.all_containers()]
    if (
        not volumes
        or is_part_of_template(subject.typed(Pod), subject)
        or any(each.is_omitted("volumeMounts") for each in containers)
    ):
        return
    mounts = [mount for container in containers for mount in container.volume_mounts]
    if any(is_placeholder(mount.name) for mount in mounts):
        return
    mounted, written = {each.name for each in mounts}, {each.name for each in mounts if not each.read_only}
    annotations = "\n".join(subject.metadata.annotations.values())
    for volume in volumes:
        if volume.name not in mounted or volume.name in written or volume.empty_dir.medium.startswith(_HUGE_PAGES):
            continue
        if volume.name not in annotations:
            message = "is an emptyDir that every container mounts with readOnly, so the volume stays empty"
            fix = "remove readOnly from the mount that writes, or use the volume that has the files"
            yield ONLY_READ.problem(volume.at, message, fix, volume.name, needs=_VOLUMES)


def _mounts_at_one_path(subject: Subject) -> Iterator[Problem]:
    for container in subject.typed(Pod).spec.all_containers():
        for mount, is_repeated in container.mounts_with_repetition():
            if is_repeated and not is_placeholder(mount.mount_path):
                message = "is also the path of a mount before this one in the container, which the API server refuses"
                fix = "mount each volume at a different path"
                yield MOUNT_PATH.problem(mount.path("mountPath"), message, fix, mount.mount_path)


def _values_that_kubernetes_refuses(subject: Subject, pod: PodSpec) -> Iterator[Problem]:
    """Yield a problem for each value that the API server refuses. If the file has only a part of the template, only
    repeated names and paths are reported.
    """
    repeated = [*_containers_with_one_name(pod), *_mounts_at_one_path(subject)]
    yield from repeated
    if not is_part_of_template(subject.typed(Pod), subject):
        reported = {*(problem.path for problem in repeated), *_keys_of_other_terms(pod)}
        for problem in (*template_problems(subject), *problems_in_files(pod, POD_VALUE)):
            is_set_later = problem.found == _BLANK_IMAGE and subject.template_of is not None
            if problem.path not in reported and not is_to_replace(problem.found) and not is_set_later:
                yield structs.replace(problem, code=POD_VALUE.id)


def _keys_of_other_terms(pod: PodSpec) -> Iterator[str]:
    """Yield the path of the topologyKey of each required affinity term in the form of a preferred term, and of each
    preferred term in the form of a required term. `manifest-shape/unknown-field` reports the wrong form.
    """
    for affinity in (pod.affinity.pod_affinity, pod.affinity.pod_anti_affinity):
        for term in affinity.required:
            if term.has("podAffinityTerm"):
                yield path_as_text(term.path("topologyKey"))
        for preferred in affinity.preferred:
            if preferred.has("topologyKey"):
                yield path_as_text(preferred.pod_affinity_term.path("topologyKey"))


def _containers_with_one_name(pod: PodSpec) -> Iterator[Problem]:
    """Yield a problem for each container with the name of a container before, unless both are parts of a container."""
    first_of_name: dict[str, Container] = {}
    for container in pod.all_containers():
        if not container.name or is_placeholder(container.name):
            continue
        first = first_of_name.setdefault(container.name, container)
        if first is not container and not (first.is_part and container.is_part):
            message = "is already the name of another container of the pod, so the API server refuses the object"
            fix = "give each container its own name, or remove one of the two containers"
            yield CONTAINER_NAME.problem(container.path("name"), message, fix, container.name)


def _containers_without_image(subject: Subject, pod: PodSpec, *, is_whole: bool) -> Iterator[Problem]:
    """Yield a problem for each container without an image, if the workload is whole and another container has an image.
    Otherwise the file may have a patch, which names only the fields that it changes.

    `manifest-shape/container-name` reports a container with the name of a container that has an image.
    """
    containers = Items([*pod.all_containers()], subject.deadline)
    names = {container.name for container in containers if container.image}
    if not is_whole or not names or _IMAGE_TRIGGERS in subject.metadata.annotations:
        return
    for container in containers:
        if not (container.image or container.is_omitted("image")) and container.name not in names:
            message = f"has no value, so the API server refuses the {subject.group_kind[1]}"
            yield NO_IMAGE.problem(container.path("image"), message, "set the image of the container", needs="image")
