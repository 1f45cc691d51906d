"""The shapes of the facts as CEL types, so that a misspelt field is found when a policy is loaded.

A field that can be null is dyn. Texts that are not there are "", lists that are not there are empty: no field is ever
absent. Types only; what each field means is said where it is computed, and tests hold the two to each other.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.cel.types import BOOL, DYN, INT, STRING, Structure, Type, list_of, map_of, object_type

_TEXTS = list_of(STRING)
_COUNTS = map_of(STRING, INT)


def _structure(name: str, /, **fields: Type) -> Structure:
    return Structure(f"claimgate.{name}", fields)


def _type(structure: Structure) -> Type:
    return object_type(structure.name)


_POD_SET = _structure(
    "PodSet",
    name=STRING,
    path=STRING,
    template=DYN,
    count=DYN,
    groups=INT,
    pods=DYN,
    change=STRING,
    changed=BOOL,
)

_RESOURCE = _structure(
    "GpuResource",
    name=STRING,
    path=STRING,
    vendor=STRING,
    kind=STRING,
    gpu=BOOL,
    limit=DYN,
    request=DYN,
    count=INT,
    whole=BOOL,
    equal=BOOL,
    nearest=STRING,
)
_CONTAINER = _structure(
    "GpuContainer",
    podSet=STRING,
    path=STRING,
    name=STRING,
    init=BOOL,
    restarts=BOOL,
    resources=list_of(_type(_RESOURCE)),
    vendors=_COUNTS,
    devices=INT,
    trainerCount=INT,
    trainerAmbiguous=BOOL,
    gpuImage=BOOL,
    visibleDevices=STRING,
    claims=INT,
)
_GPU_SET = _structure(
    "GpuPodSet",
    name=STRING,
    path=STRING,
    pods=DYN,
    devices=INT,
    total=DYN,
    vendors=_COUNTS,
    kinds=_TEXTS,
    runtimeClass=STRING,
    gpuRuntime=BOOL,
)
_GPU = _structure(
    "Gpu",
    containers=list_of(_type(_CONTAINER)),
    patches=list_of(_type(_CONTAINER)),
    podSets=list_of(_type(_GPU_SET)),
    vendors=_COUNTS,
    devices=DYN,
    missing=_TEXTS,
)

_SELECTOR = _structure("DeviceSelector", path=STRING, expression=STRING, problem=STRING, gated=STRING)
_DRA_NOTE = _structure("DeviceNote", what=STRING, path=STRING, found=STRING, expected=STRING, nearest=STRING)
_CONFIG = _structure(
    "DeviceConfig", path=STRING, driver=STRING, kind=STRING, requests=_TEXTS, notes=list_of(_type(_DRA_NOTE))
)
_ASKED: Mapping[str, Type] = {
    "name": STRING,
    "path": STRING,
    "kind": STRING,
    "deviceClass": STRING,
    "vendor": STRING,
    "deviceKind": STRING,
    "gpu": BOOL,
    "allocationMode": STRING,
    "count": INT,
    "adminAccess": BOOL,
    "selectors": list_of(_type(_SELECTOR)),
    "devices": DYN,
    "atLeast": INT,
    "choices": list_of(object_type("claimgate.DeviceRequest")),
    "classFound": BOOL,
    "classAbsent": BOOL,
    "nearestClass": STRING,
    "extendedResource": STRING,
}
_REQUEST = _structure("DeviceRequest", **_ASKED)
_CONSTRAINT = _structure(
    "DeviceConstraint", path=STRING, requests=_TEXTS, matchAttribute=STRING, distinctAttribute=STRING
)
_CLAIM = _structure(
    "PodClaim",
    podSet=STRING,
    pods=DYN,
    path=STRING,
    name=STRING,
    source=STRING,
    reference=STRING,
    kind=STRING,
    found=BOOL,
    absent=BOOL,
    promised=BOOL,
    nearest=STRING,
    elsewhere=_TEXTS,
    requests=list_of(_type(_REQUEST)),
    requestNames=_TEXTS,
    devices=DYN,
    atLeast=INT,
    gpu=BOOL,
    adminAccess=BOOL,
    users=_TEXTS,
    duplicate=BOOL,
)
_REFERENCE = _structure(
    "ClaimReference",
    podSet=STRING,
    container=STRING,
    path=STRING,
    name=STRING,
    request=STRING,
    declared=BOOL,
    resolved=BOOL,
    requestFound=BOOL,
    duplicate=BOOL,
    nearestRequest=STRING,
)
_DOUBLED = _structure("DoubledDevice", podSet=STRING, path=STRING, container=STRING, claim=STRING, resource=STRING)
_IMPLICIT = _structure(
    "ImplicitClass",
    podSet=STRING,
    path=STRING,
    name=STRING,
    deviceClass=STRING,
    classFound=BOOL,
    classAbsent=BOOL,
    nearestClass=STRING,
    extendedResource=STRING,
    limit=DYN,
    request=DYN,
)
_DRA = _structure(
    "Dra",
    claims=list_of(_type(_CLAIM)),
    references=list_of(_type(_REFERENCE)),
    doubled=list_of(_type(_DOUBLED)),
    implicit=list_of(_type(_IMPLICIT)),
    requests=list_of(_type(_REQUEST)),
    constraints=list_of(_type(_CONSTRAINT)),
    selectors=list_of(_type(_SELECTOR)),
    notes=list_of(_type(_DRA_NOTE)),
    configs=list_of(_type(_CONFIG)),
    adminAllowed=DYN,
    missing=_TEXTS,
)

_FAILURE = _structure("SelectorFailure", text=STRING, device=STRING)
_FIND = _structure(
    "DeviceFind",
    path=STRING,
    name=STRING,
    of=STRING,
    deviceClass=STRING,
    wanted=DYN,
    classed=DYN,
    selected=DYN,
    shared=BOOL,
    failures=list_of(_type(_FAILURE)),
)
_INVENTORY = _structure("Inventory", devices=INT, requests=list_of(_type(_FIND)), missing=_TEXTS)
_GROUP = _structure("PodGroupReference", podSet=STRING, path=STRING, name=STRING, found=BOOL)
_GROUP_CLAIM = _structure(
    "PodGroupClaim", path=STRING, group=STRING, name=STRING, source=STRING, groupName=STRING, groupSource=STRING
)
_POD_GROUP = _structure("PodGroup", groups=list_of(_type(_GROUP)), others=list_of(_type(_GROUP_CLAIM)), missing=_TEXTS)

_RUNTIME = _structure(
    "TrainerRuntime",
    kind=STRING,
    name=STRING,
    found=BOOL,
    absent=BOOL,
    nearest=STRING,
    deprecated=BOOL,
    plugin=STRING,
    spec=DYN,
)
_NODE_CLAIM = _structure(
    "NodeClaim",
    name=STRING,
    kind=STRING,
    reference=STRING,
    found=BOOL,
    devices=DYN,
    atLeast=INT,
    gpu=BOOL,
    lost=BOOL,
    otherDevice=BOOL,
)
_NODE = _structure(
    "TrainerNode",
    found=BOOL,
    job=STRING,
    container=DYN,
    resources=DYN,
    claims=list_of(_type(_NODE_CLAIM)),
)
_PROCESSES = _structure(
    "TrainerProcesses",
    perNode=STRING,
    count=DYN,
    reason=STRING,
    explicit=BOOL,
    gpus=INT,
    ambiguous=BOOL,
    podGpus=INT,
    runtimeGpus=INT,
)
_NAMES = _structure("TrainerNames", limit=INT, of=STRING, job=STRING, length=INT)
_SCHEDULING = _structure(
    "TrainerScheduling", by=STRING, queue=DYN, queueAt=STRING, priorityClasses=_TEXTS, members=INT, first=INT
)
_NOTE = _structure(
    "TrainerNote", what=STRING, path=STRING, text=STRING, job=STRING, container=STRING, by=STRING, at=STRING
)
_TRAINER = _structure(
    "Trainer",
    version=STRING,
    minor=INT,
    object=DYN,
    runtime=_type(_RUNTIME),
    nodes=INT,
    jobSet=DYN,
    node=_type(_NODE),
    processes=_type(_PROCESSES),
    names=_type(_NAMES),
    scheduling=_type(_SCHEDULING),
    notes=list_of(_type(_NOTE)),
    missing=_TEXTS,
)

_FIELD = _structure("UnknownField", path=STRING, releases=STRING, instead=STRING)
_ODD = _structure("OddValue", path=STRING, found=STRING, expected=STRING)
_LAUNCH = _structure(
    "Launch",
    by=STRING,
    processes=DYN,
    perNode=STRING,
    nodes=STRING,
    ranks=DYN,
    hosts=BOOL,
    oversubscribed=BOOL,
    whole=BOOL,
)
_MEMBER = _structure("TrainingContainer", name=STRING, path=STRING, image=STRING)
_ROLE = _structure(
    "TrainingRole",
    name=STRING,
    path=STRING,
    given=BOOL,
    replicas=DYN,
    restartPolicy=STRING,
    podRestartPolicy=STRING,
    containers=list_of(_type(_MEMBER)),
    open=BOOL,
    found=BOOL,
    shm=BOOL,
    gpuNamed=BOOL,
    gpus=INT,
    gpusOpen=BOOL,
    nullGpus=_TEXTS,
    claims=INT,
    env=_TEXTS,
    cpus=INT,
    launch=_type(_LAUNCH),
)
_TRAINING = _structure(
    "Training",
    release=STRING,
    minor=INT,
    object=DYN,
    old=DYN,
    changes=_TEXTS,
    plugin=STRING,
    fields=list_of(_type(_FIELD)),
    notes=list_of(_type(_NOTE)),
    roles=list_of(_type(_ROLE)),
    name=STRING,
    settings=map_of(STRING, DYN),
    unfilled=_TEXTS,
    odd=list_of(_type(_ODD)),
    open=BOOL,
    missing=_TEXTS,
)

_SANDBOX_REFERENCE = _structure(
    "SandboxReference", path=STRING, kind=STRING, name=STRING, found=BOOL, absent=BOOL, nearest=STRING, most=DYN
)
_SANDBOX_POOL = _structure("SandboxPool", name=STRING, lacks=_TEXTS)
_SANDBOX_NOTE = _structure("SandboxNote", what=STRING, path=STRING, text=STRING, certain=BOOL)
_SANDBOX = _structure(
    "Sandbox",
    references=list_of(_type(_SANDBOX_REFERENCE)),
    pools=list_of(_type(_SANDBOX_POOL)),
    notes=list_of(_type(_SANDBOX_NOTE)),
    missing=_TEXTS,
)

_PRIORITY = _structure("PodPriority", podSet=STRING, path=STRING, name=STRING, found=BOOL, absent=BOOL, nearest=STRING)
_PRIORITIES = _structure("Priorities", classes=list_of(_type(_PRIORITY)), missing=_TEXTS)
_RUNNING = _structure("Running", found=BOOL, active=_TEXTS, missing=_TEXTS)

ALL: tuple[Structure, ...] = (
    *(_POD_SET, _RESOURCE, _CONTAINER, _GPU_SET, _GPU),
    *(_SELECTOR, _DRA_NOTE, _CONFIG, _REQUEST, _CONSTRAINT, _CLAIM, _REFERENCE, _DOUBLED, _IMPLICIT, _DRA),
    *(_GROUP, _GROUP_CLAIM, _POD_GROUP, _FAILURE, _FIND, _INVENTORY),
    *(_RUNTIME, _NODE_CLAIM, _NODE, _PROCESSES, _NAMES, _SCHEDULING, _NOTE, _TRAINER),
    *(_FIELD, _ODD, _LAUNCH, _MEMBER, _ROLE, _TRAINING),
    *(_SANDBOX_REFERENCE, _SANDBOX_POOL, _SANDBOX_NOTE, _SANDBOX),
    *(_PRIORITY, _PRIORITIES, _RUNNING),
)
TYPES: Mapping[str, Type] = {
    "podSets": list_of(_type(_POD_SET)),
    "gpu": _type(_GPU),
    "dra": _type(_DRA),
    "podGroup": _type(_POD_GROUP),
    "inventory": _type(_INVENTORY),
    "trainer": _type(_TRAINER),
    "training": _type(_TRAINING),
    "sandbox": _type(_SANDBOX),
    "priorities": _type(_PRIORITIES),
    "running": _type(_RUNNING),
}
