"""Random objects just below a size bound of the event loop, as an attacker would draw them.

A body above 64 KB goes to a worker at once, and one up to 16 KB starts on the loop. Most bodies here are a little
smaller than one of these bounds. The number chooses sizes, letters, users, namespaces and fields.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial

from tests.bench.bounds.reviews import JSON, container, gpus, pod, review, template

Chance = random.Random
BOUNDS = (15_900, 65_000)
ODD = "é世\u0301\u202e\U0001f600ß\u0130"


def _word(chance: Chance, most: int = 12) -> str:
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz-._/0", k=chance.randint(1, most)))


def _until(size: int, make: Callable[[int], JSON]) -> list[JSON]:
    """Return as many items as fit into this many bytes of JSON."""
    made: list[JSON] = []
    left = size
    while left > 0:
        made.append(make(len(made)))
        left -= len(json.dumps(made[-1], separators=(",", ":"))) + 1
    return made


def _labels(chance: Chance, size: int) -> JSON:
    pairs = {f"{_word(chance)}{i}": _word(chance, 30) for i in range(size // 35)}
    return pod(
        metadata={"labels": pairs, "annotations": dict(reversed(pairs.items()))} if size < 0 else {"labels": pairs}
    )


def _unicode(chance: Chance, size: int) -> JSON:
    texts = _until(size, lambda i: {"name": "".join(chance.choices(ODD, k=20)) + str(i), "value": ODD * 3})
    return pod({"containers": [container("".join(chance.choices(ODD, k=9)), env=texts)]})


def _quantities(chance: Chance, size: int) -> JSON:
    numbers = (
        "1e999999",
        "9" * chance.randint(1, 900),
        "0." + "0" * chance.randint(1, 300) + "1m",
        "-1Ei",
        "1E",
        1e308,
    )
    limits = {f"example.com/{_word(chance)}{i}": chance.choice(numbers) for i in range(max(1, size // 250))}
    return pod({"containers": [container("main", resources={"limits": limits, "requests": limits})]})


def _env(chance: Chance, size: int) -> JSON:
    made = _until(size, lambda i: {"name": f"V{i % 50}", "value": f"$(V{chance.randrange(9 + i)})$$(V{i})$(V{i}"})
    return pod({"containers": [container("main", env=made, command=["sh", "-c", "$(V1) $(V2)"])]})


def _affinity(chance: Chance, size: int) -> JSON:
    operators = ("In", "NotIn", "Exists", "Gt", "Lt", "in")
    terms = _until(
        size,
        lambda i: {
            "matchExpressions": [
                {"key": _word(chance), "operator": chance.choice(operators), "values": [str(i)] * chance.randint(0, 9)}
            ]
        },
    )
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod({"affinity": {"nodeAffinity": required}, "containers": [container("main", resources=gpus(8))]})


def _topology(chance: Chance, size: int) -> JSON:
    spread = _until(
        size,
        lambda i: {
            "maxSkew": chance.randint(-1, 3),
            "topologyKey": _word(chance),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": f"k{i % 7}", "operator": "In", "values": [_word(chance)]}]},
        },
    )
    return pod({"topologySpreadConstraints": spread, "containers": [container("main", resources=gpus(1))]})


def _tolerations(chance: Chance, size: int) -> JSON:
    made = _until(size, lambda i: {"key": f"k{chance.randrange(9 + i)}", "operator": "Exists", "effect": _word(chance)})
    volumes = _until(size // 9, lambda i: {"name": f"v{i % 20}", "emptyDir": {"medium": "Memory"}})
    return pod({"tolerations": made[: len(made) // 2], "volumes": volumes})


def _claim(chance: Chance, size: int) -> JSON:
    functions = (
        "semver('{}')==semver('1.2.3')",
        "quantity('{}')==quantity('1')",
        "device.driver.matches('{}+')",
        "'{}'<'b'",
    )

    def request(i: int) -> JSON:
        count = chance.randint(1, 8)
        cel = [{"cel": {"expression": chance.choice(functions).format(_word(chance, 40))}} for _ in range(count)]
        one = {"name": f"r{i % 40}", "deviceClassName": "gpu.nvidia.com", "selectors": cel}
        return {"name": f"r{i % 40}", "firstAvailable": [one] * 3} if i % 3 else {"name": f"r{i}", "exactly": one}

    requests = _until(size, request)
    constraints = [
        {"requests": [f"r{j}" for j in range(30)], "matchAttribute": f"a.b/{_word(chance)}"} for _ in range(30)
    ]
    spec = {"devices": {"requests": requests, "constraints": constraints}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": _word(chance)},
        "spec": spec,
    }


def _slice(chance: Chance, size: int) -> JSON:
    versions = ({"version": "9" * 200 + ".1.1"}, {"string": _word(chance, 60)}, {"int": 1 << 70}, {"bool": "x"})
    devices = _until(size, lambda i: {"name": f"d{i % 99}", "attributes": {_word(chance): chance.choice(versions)}})
    spec = {"driver": "a.b", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": devices}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def _volcano(chance: Chance, size: int) -> JSON:
    def task(i: int) -> JSON:
        depends = {"name": [f"t{chance.randrange(i + 1)}" for _ in range(chance.randint(0, 3))]}
        made = template({"containers": [container("main", resources=gpus(i % 9))]})
        return {"name": f"t{i}", "replicas": chance.randint(0, 10**6), "dependsOn": depends, "template": made}

    spec = {"minAvailable": 3, "queue": _word(chance), "plugins": {"svc": ["--x"] * 9}, "tasks": _until(size, task)}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}, "spec": spec}


def _jobset(chance: Chance, size: int) -> JSON:
    def job(i: int) -> JSON:
        spec = {"parallelism": chance.randint(0, 10**5), "completions": 3, "template": template({"restartPolicy": "x"})}
        depends = [{"name": f"j{chance.randrange(i + 1)}", "status": "Ready"} for _ in range(chance.randint(0, 3))]
        return {"name": f"j{i}", "replicas": chance.randint(0, 10**6), "dependsOn": depends, "template": {"spec": spec}}

    metadata = {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": _word(chance)}}
    spec = {"replicatedJobs": _until(size, job), "failurePolicy": {"rules": [{"action": "x"}] * 20}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": spec}


def _ray(chance: Chance, size: int) -> JSON:
    def group(i: int) -> JSON:
        params = {_word(chance): _word(chance) for _ in range(5)}
        made = template(
            {"containers": [container("ray", resources=gpus(i % 5), args=["ray start --num-gpus=" + "9" * 40])]}
        )
        return {"groupName": f"g{i % 60}", "replicas": 1, "minReplicas": 9, "rayStartParams": params, "template": made}

    spec = {"headGroupSpec": group(0), "workerGroupSpecs": _until(size, group)}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r"}, "spec": spec}


def _train_job(chance: Chance, size: int) -> JSON:
    overrides = _until(
        size, lambda i: {"targetJobs": [{"name": _word(chance)}], "spec": {"nodeSelector": {_word(chance): str(i)}}}
    )
    spec = {
        "runtimeRef": {"name": "torch-distributed"},
        "podTemplateOverrides": overrides,
        "trainer": {"numNodes": 10**9},
    }
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "t"}, "spec": spec}


def _faults(chance: Chance, size: int) -> JSON:
    """Return a Pod in which each container is wrong in many ways. A long name makes each message long."""
    name = _word(chance, 200) * chance.randint(1, 3)
    made = _until(
        size,
        lambda i: container(
            f"{name}{i}",
            resources={"limits": {"nvidia.com/gpu": "x" * 30, "nvidia.com/mig-1g.5gb": -i}, "requests": gpus(i)},
            env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}] * 2,
            ports=[{"containerPort": i}],
        ),
    )
    return pod({"containers": made, "initContainers": made[: len(made) // 4]})


def _shell(chance: Chance, size: int) -> JSON:
    words = (
        "torchrun",
        "--nproc_per_node=8",
        "$(",
        ")",
        "'",
        '"',
        "&&",
        "|",
        "\\",
        "mpirun -np 4",
        "deepspeed",
        "$((1",
        "<<E",
    )
    text = " ".join(chance.choices(words, k=size // 7))
    return pod({"containers": [container("main", command=["bash", "-c"], args=[text], resources=gpus(8))]})


def _script(chance: Chance, size: int) -> JSON:
    """Return a Pod with a valid shell script that starts programs which may be launchers."""
    words = (
        "torchrun",
        "--nproc_per_node=8",
        "--nnodes",
        "2",
        "&&",
        "||",
        ";",
        "mpirun",
        "-np",
        "4",
        "accelerate launch",
    )
    text = " ".join((*chance.choices(words, k=size // 9), _word(chance)))
    return pod({"containers": [container("main", command=["sh", "-c"], args=[text], resources=gpus(8))]})


def _references(chance: Chance, size: int) -> JSON:
    claims = _until(
        size // 2, lambda i: {"name": f"c{i}", "resourceClaimTemplateName": f"template-{chance.randrange(200)}"}
    )
    used = _until(size // 2, lambda i: {"name": f"c{chance.randrange(9 + i)}", "request": f"gpu{i % 3}"})
    return pod({"resourceClaims": claims, "containers": [container("main", resources={"claims": used})]})


def _tiny(chance: Chance, size: int) -> JSON:
    """Return a Pod with as many containers as fit. The mutations patch each container."""
    return pod(
        {"containers": _until(size, lambda i: {"name": f"c{i}", "resources": {"limits": {"nvidia.com/gpu": 1}}})}
    )


MAKERS: dict[str, Callable[[Chance, int], JSON]] = {
    "labels": _labels, "unicode": _unicode, "quantities": _quantities, "env": _env, "node affinity": _affinity,
    "topology spread": _topology, "tolerations": _tolerations, "claims with CEL": _claim, "slices": _slice,
    "Volcano Jobs": _volcano, "JobSets": _jobset, "RayClusters": _ray, "TrainJobs": _train_job,
    "faulty containers": _faults, "shell": _shell, "scripts": _script, "references to claims": _references, "tiny containers": _tiny,
}  # fmt: skip


def _user(chance: Chance) -> JSON:
    name = chance.choice(("mallory", "system:serviceaccount:attackers:a-{}", "system:serviceaccount:attackers:a-{}"))
    return {"username": name.format(chance.randrange(500)), "groups": ["system:authenticated"]}


def near(name: str, number: int) -> bytes:
    """Return a review of an object just below one of the bounds: mostly a creation, sometimes an update or a
    deletion.
    """
    chance = Chance(f"{name} {number}")
    size = int(chance.choice(BOUNDS) * chance.uniform(0.75, 0.93))
    made, kind = MAKERS[name](chance, size), chance.randrange(6)
    rest: JSON = {"userInfo": _user(chance), "dryRun": kind == 1, "namespace": f"attackers-{chance.randrange(5)}"}
    if kind == 2:
        return review(made, old=MAKERS[name](chance, size // 9), **rest)
    if kind == 3:
        return review(made, **{**rest, "operation": "DELETE", "object": None, "oldObject": made})
    return review(made, **rest)


def all_of_them(number: int) -> bytes:
    return near(Chance(number).choice(tuple(MAKERS)), number)


def bytes_of_objects(number: int) -> bytes:
    """Return a body with unusual JSON: repeated keys, lone surrogates, numbers of thousands of digits, or deep
    lists.
    """
    chance = Chance(number)
    size = int(chance.choice(BOUNDS) * 0.9)
    digits = "9" * chance.randint(300, 4000)
    depth = chance.randint(2, 180)
    piece = chance.choice((
        '"labels":{"a":"b"},',
        f'"x{number}":"\\ud800\\udfff\\udc00",',
        f'"n":-{digits},"m":{digits}.{digits}e-{digits[:3]},',
        f'"d":{"[" * depth}{"]" * depth},',
        f'"m":{"{" + chr(34) + "a" + chr(34) + ":"}' * 1 + '{"a":1}' + "},",
        '"\\u0061nnotations":{"\\u0000":"\\u0000"},',
    ))  # fmt: skip
    whole = review(pod(metadata={"HERE": 1}))
    return whole.replace(b'"HERE":1', (piece * (size // len(piece))).encode() + b'"z":1')


def slow_doubles(number: int) -> bytes:
    """Return a body with numbers near the largest and the smallest double. They are decoded hundreds of times more
    slowly than others.
    """
    chance = Chance(number)
    size = int(chance.choice((8_100, *BOUNDS)) * chance.uniform(0.75, 0.93))
    forms = ("1e308", "17976931348623157e292", "{}e-31{}", "{}.{}E-31{}", "1.{}e+308", "-1e308")
    numbers = [chance.choice(forms).format(*chance.choices("1234567", k=3)) for _ in range(size // 8)]
    text = ",".join(numbers)[: size - 1].rpartition(",")[0]
    return review(pod(metadata={"HERE": 1})).replace(b'"HERE":1', f'"x":[{text}]'.encode())


def unknown_names(number: int) -> bytes:
    """Return a small review with an unknown kind, group, user and operation, which become names in logs and metrics."""
    chance = Chance(number)
    word = partial(_word, chance)
    made = {"apiVersion": f"{word()}/{word()}", "kind": "Pod", "metadata": {"name": word(3000), "namespace": word()}}
    kind = {"group": word(60), "version": word(), "kind": word(200)}
    rest: JSON = {
        "kind": kind,
        "requestKind": kind,
        "subResource": word(),
        "operation": chance.choice(("CONNECT", word())),
    }
    rest |= {"resource": {"group": word(), "version": word(), "resource": chance.choice(("pods", word()))}}
    return review(made, **rest, userInfo={"username": word(4000), "groups": [word()] * 900}, namespace=word(200))


VARIED: dict[str, Callable[[int], bytes]] = {
    **{f"near: {name}": partial(near, name) for name in MAKERS},
    "near: any of these": all_of_them,
    "near: odd JSON": bytes_of_objects,
    "near: doubles that are slow to read": slow_doubles,
    "near: unknown names": unknown_names,
}
MAY_BE_REFUSED = ("near: odd JSON", "near: unknown names")
