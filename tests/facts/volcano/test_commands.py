"""The inputs of commands of a Job's tasks, and the plugin that provides each."""

from __future__ import annotations

from collections.abc import Mapping

from tests.facts.subjects import subject
from webhook.apimachinery.attributes import JSON
from webhook.facts.subject import Subject
from webhook.facts.volcano.commands import read_commands
from webhook.facts.volcano.job_commands import warn_of_setup_missing_for_commands, warn_of_tasks_with_plugin_roles
from webhook.facts.volcano.sent_job import read_job
from webhook.facts.volcano_objects.types import Job

MPIRUN = "mpirun --hostfile /etc/volcano/worker.host -np 2 train"


def task(called: str, script: str = "", replicas: int = 1, pod: Mapping[str, JSON] | None = None, **more: JSON) -> JSON:
    command = {"command": ["bash", "-c", script]} if script else {}
    container = {"name": "main", "image": "x", **command, **more}
    return {"name": called, "replicas": replicas, "template": {"spec": {"containers": [container], **(pod or {})}}}


def job(plugins: JSON, *tasks: JSON, kind: str = "Job", **spec: JSON) -> tuple[Job, Subject]:
    held = {"tasks": list(tasks), "plugins": plugins, **spec}
    group = "flow" if kind == "JobTemplate" else "batch"
    inner = {"jobTemplate": {"spec": held}} if kind == "CronJob" else held
    obj = {"apiVersion": f"{group}.volcano.sh/v1alpha1", "kind": kind, "metadata": {"name": "j"}, "spec": inner}
    about = subject(obj)
    return about.once(read_job), about


def told(asked: tuple[Job, Subject]) -> list[str]:
    problems = [*warn_of_tasks_with_plugin_roles(asked[0]), *warn_of_setup_missing_for_commands(*asked)]
    return [f"{each.code.partition('/')[2]} {each.path.partition('tasks')[2].partition('.')[0]}" for each in problems]


def read_by(script: str, **more: JSON) -> tuple[str, ...]:
    (command,) = read_commands(*job({}, task("a", script, **more)))
    return command.reads


def test_a_command_reads_variables_that_it_does_not_set() -> None:
    rows = {
        "three spellings of a variable": (read_by("a $ONE ${TWO} $(THREE) $ONE"), ("ONE", "TWO", "THREE")),
        "parts of a value": (read_by("a ${ONE%%,*} ${TWO#x}"), ("ONE", "TWO")),
        "variables with a default or an alternative": (
            read_by("a ${ONE:-1} ${TWO-1} ${THREE:=1} ${FOUR:+1} ${FIVE?no}"),
            (),
        ),
        "a minus after a name": (read_by("a $ONE-1"), ("ONE",)),
        "set before": (read_by("ONE=1; export TWO=2; a $ONE $TWO"), ()),
        "set by a loop and by read": (read_by("for ONE in a b; do read -r TWO; a $ONE $TWO; done"), ()),
        "not a variable": (read_by("a $$ONE \\$TWO $lower $1"), ()),
        "a script that may set them": (read_by("source env.sh; a $ONE"), ()),
        "a script by its short name": (read_by("cd x && . ./env.sh; a $ONE"), ()),
        "a folder is not a script": (read_by("cd ./x; a $ONE"), ("ONE",)),
        "set in the container": (read_by("a $ONE", env=[{"name": "ONE", "value": "1"}]), ()),
        "perhaps set by a ConfigMap": (read_by("a $ONE", envFrom=[{"configMapRef": {"name": "c"}}]), ()),
    }
    assert {name: pair for name, pair in rows.items() if pair[0] != pair[1]} == {}


def test_a_plugin_sets_the_variables_that_a_command_reads() -> None:
    mine = {"volumeMounts": [{"name": "v", "mountPath": "/etc/volcano/"}]}
    keys = {"volumes": [{"name": "k", "secret": {"secretName": "keys"}}]}
    scratch = {"volumes": [{"name": "k", "emptyDir": {}}]}
    index, rank, worker = task("a", "t $VC_TASK_INDEX"), "torchrun --node_rank=$RANK t.py", task("worker", replicas=2)
    mpi = task("master", "mpirun --host $MPI_HOST t")
    rows = {
        "an index": (job({"env": []}, index), []),
        "a plugin without arguments, which the API server drops": (job({"env": None}, index), ["plugin-variable [0]"]),
        "no index": (job({}, index), ["plugin-variable [0]"]),
        "a rank": (job({"pytorch": []}, task("master", rank), worker), []),
        "the rank of a third task": (
            job({"pytorch": []}, task("master"), worker, task("log", rank)),
            ["plugin-variable [2]"],
        ),
        "RANK without a launcher": (job({}, task("a", "sort --by=$RANK")), []),
        "no master, which another rule reports": (job({"pytorch": []}, task("worker", rank)), []),
        "TF_CONFIG": (job({"tensorflow": []}, task("ps", "t $TF_CONFIG"), worker), []),
        "hosts that mpi lists": (job({"mpi": []}, mpi, worker), []),
        "hosts of workers with another name": (job({"mpi": []}, mpi, task("node")), ["plugin-variable [0]"]),
        "hosts that svc lists": (job({"svc": []}, task("a", "t $VC_B_C_HOSTS $VC_A_NUM"), task("b-c")), []),
        "hosts of svc, which ray switches on": (job({"ray": []}, task("head", "t $VC_HEAD_HOSTS")), []),
        "hosts that svc does not inject": (
            job({"svc": ["--inject-hosts-env=0"]}, task("a", "t $VC_A_HOSTS")),
            ["plugin-variable [0]"],
        ),
        "hosts without svc": (job({"env": []}, task("a", "t $VC_A_HOSTS")), ["plugin-variable [0]"]),
        "hosts of a task that does not exist": (
            job({"svc": []}, task("a", "t $VC_ZEBRA_HOSTS")),
            ["plugin-variable [0]"],
        ),
        "files of hosts": (job({"svc": []}, task("a", "t /etc/volcano/b_c.host"), task("b-c")), []),
        "the file of a task that does not exist": (
            job({"svc": []}, task("a", "t /etc/volcano/zebra.host")),
            ["host-file [0]"],
        ),
        "a file of a volume": (job({}, task("a", "t /etc/volcano/zebra.host", **mine)), []),
        "a file that no plugin writes": (job({}, task("a", "t /etc/volcano/a.host")), ["host-file [0]"]),
        "mpirun without SSH keys": (job({"svc": []}, task("a", MPIRUN), worker), ["ssh-keys [0]"]),
        "mpirun with its own keys": (job({"svc": []}, task("a", MPIRUN, pod=keys), worker), []),
        "mpirun with scratch space": (job({"svc": []}, task("a", MPIRUN, pod=scratch), worker), ["ssh-keys [0]"]),
        "mpirun with another agent": (job({"svc": []}, task("a", f"{MPIRUN} --mca plm_rsh_agent k"), worker), []),
        "mpirun on hosts outside the Job": (job({"svc": []}, task("a", "mpirun --host one,two t"), worker), []),
        "mpirun in one pod": (job({"svc": []}, task("worker", MPIRUN)), []),
        "a task without pods": (job({}, task("a", "t $VC_TASK_INDEX", 0)), []),
        "a name that is filled in later": (job({"svc": []}, task("${A}"), task("b", "t $VC_A_HOSTS")), []),
    }
    assert {name: found for name, (asked, codes) in rows.items() if (found := told(asked)) != codes} == {}


def test_templates_of_all_job_kinds_get_the_same_checks() -> None:
    said = {kind: told(job({}, task("a", "t $VC_TASK_INDEX"), kind=kind)) for kind in ("Job", "CronJob", "JobTemplate")}
    assert set(map(tuple, said.values())) == {("plugin-variable [0]",)}


def test_a_gang_is_as_large_as_its_training() -> None:
    torchrun = "torchrun --nnodes=%s --master_addr=a t.py"
    rows = {
        "a gang of all pods": (job({}, task("a", torchrun % 4, 4)), []),
        "a gang of some pods": (job({}, task("a", torchrun % 4, 4), minAvailable=2), ["partial-gang "]),
        "a gang of as many pods as an elastic training needs": (
            job({}, task("a", torchrun % "2:4", 4), minAvailable=2),
            [],
        ),
        "more nodes than pods, which another rule reports": (
            job({}, task("a", torchrun % 9, 4), minAvailable=2),
            [],
        ),
    }
    assert {name: found for name, (asked, codes) in rows.items() if (found := told(asked)) != codes} == {}


def test_roles_of_one_pod_and_containers_of_ray() -> None:
    ray, own = {"image": "rayproject/ray:2.9"}, {"name": "own", "image": "rayproject/ray"}
    start = "ulimit -n 9; ray start --head --block"
    rows = {
        "two heads": (job({"ray": []}, task("head", replicas=2, name="head")), ["plugin-one-pod [0]"]),
        "two chiefs": (job({"tensorflow": []}, task("chief", replicas=2)), ["plugin-one-pod [0]"]),
        "two masters of ranks for Ascend": (job({"hcclrank": []}, task("master", replicas=2)), []),
        "a container of another name": (job({"ray": []}, task("head", **ray)), ["ray-container [0]"]),
        "a container that starts Ray itself": (job({"ray": []}, task("head", start, **ray)), []),
        "an image that is not Ray's": (job({"ray": []}, task("head", image="example.com/array:1")), []),
        "a container that an argument names": (
            job({"ray": ["--headContainer=own"]}, task("head", **own), task("worker")),
            [],
        ),
        "a command that does not start Ray": (
            job({"ray": []}, task("head", "python t.py", name="head")),
            ["ray-command [0]"],
        ),
        "a command that starts Ray": (job({"ray": []}, task("head", start, name="head")), []),
        "a worker of another name": (
            job({"ray": []}, task("head", name="head"), task("worker", **own)),
            ["ray-container [1]"],
        ),
    }
    assert {name: found for name, (asked, codes) in rows.items() if (found := told(asked)) != codes} == {}
