"""The processes that commands start: launchers at any place, their numbers, and no result for unknown commands."""

from __future__ import annotations

import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import all_rows
from webhook.deadline import Deadline
from webhook.facts.command_lines import command as launching
from webhook.facts.command_lines.command import LaunchedProgram
from webhook.facts.command_lines.launchers import read_launcher_catalogue
from webhook.schema import decode, kubernetes_type


def launch(container: dict) -> LaunchedProgram:
    return launching.launch_of_json(decode(container, kubernetes_type("core.v1.Container")).value)


NOTHING = LaunchedProgram(by="")._asdict()


def said(command: object, **rest: object) -> dict:
    found = launch({"command": command, **rest})._asdict()
    return {name: value for name, value in found.items() if value != NOTHING[name]}


def script(text: str, **rest: object) -> dict:
    return said(["bash", "-c", text], **rest)


def torchrun(**words: object) -> dict:
    return {"by": "torchrun", "whole": True, **words}


def mpirun(**words: object) -> dict:
    return {"by": "mpirun", "whole": True, **words}


@all_rows(
    ("command", "expected"),
    [
        (["torchrun", "t.py"], torchrun()),
        (["torchrun", "--nproc_per_node=8", "t.py"], torchrun(processes=8, per_node="8")),
        (["torchrun", "--nproc-per-node", "4", "--nnodes", "2"], torchrun(processes=4, per_node="4", nodes="2")),
        (["torchrun", "--nproc_per_node=auto", "t.py"], torchrun(per_node="auto")),
        (["torchrun", "--nproc-per-node", "gpu", "t.py"], torchrun(per_node="gpu")),
        (["torchrun", "--nnodes=1:4", "-m", "pkg"], torchrun(nodes="1:4")),
        (
            ["torchrun", "--node_rank=$(RANK)", "--rdzv-backend", "c10d", "a"],
            torchrun(node_rank="$(RANK)", rendezvous="c10d"),
        ),
        (
            ["/opt/conda/bin/torchrun", "--standalone", "--nproc_per_node", "2", "t.py"],
            torchrun(processes=2, per_node="2", address="localhost"),
        ),
        # words after the program are arguments of the program
        (["torchrun", "t.py", "--nproc_per_node", "4"], torchrun()),
        (["torchrun", "--", "t.py"], torchrun()),
        (["torchrun", "-t", "3", "t.py", "--nnodes", "2"], torchrun()),
        # after an unknown option, a word may be its value or the program
        (["torchrun", "--new", "x", "--nproc_per_node=4"], {"by": "torchrun"}),
        (["torchrun", "--new", "--nproc_per_node=4", "t.py"], torchrun(processes=4, per_node="4")),
        (["torchrun", "--new=x", "--nproc_per_node=4", "t.py"], torchrun(processes=4, per_node="4")),
        (["torchrun", "--nproc_per_node=4", "--new", "t.py"], {"by": "torchrun", "processes": 4, "per_node": "4"}),
        (["torchrun", "--nproc_per_node"], {"by": "torchrun"}),
        (["torchrun", "--nproc_per_node=", "t.py"], torchrun()),
        (["torchrun", "--nproc_per_node=1", "--nproc_per_node=2", "t.py"], torchrun(per_node="?")),
        (["torchrun", "--nproc_per_node=2", "--nproc-per-node", "2", "t.py"], torchrun(processes=2, per_node="2")),
        # placeholders
        (["torchrun", "$ARGS", "t.py"], {"by": "torchrun"}),
        (["torchrun", "--nproc_per_node=$N", "t.py"], torchrun(per_node="$N")),
        (["torchrun", "--nproc_per_node={{ n }}", "t.py"], torchrun(per_node="{{ n }}")),
        (["torchrun", "--nnodes=$(WORLD_SIZE)", "t.py"], torchrun(nodes="$(WORLD_SIZE)")),
        # as a module
        (["python", "-m", "torch.distributed.run", "--nnodes=2", "t.py"], torchrun(nodes="2")),
        (["python3.11", "-u", "-X", "dev", "-mtorch.distributed.launch", "--use_env", "t.py"], torchrun()),
        (["python", "/usr/bin/torchrun", "--nproc_per_node=2", "t.py"], torchrun(processes=2, per_node="2")),
        (["python", "-m", "torch.distributed.launch", "--nproc_per_node=$GPUS", "t.py"], torchrun(per_node="$GPUS")),
        # others
        (["accelerate", "launch", "--num_processes", "8", "t.py"], {"by": "accelerate", "processes": 8, "whole": True}),
        (
            [
                "accelerate",
                "launch",
                "--multi_gpu",
                "--num_processes=16",
                "--num-machines",
                "2",
                "--fsdp_new",
                "1",
                "t.py",
            ],
            {"by": "accelerate", "processes": 8, "nodes": "2", "whole": True},
        ),
        (
            ["accelerate", "launch", "--num_processes=3", "--num_machines=2", "t.py"],
            {"by": "accelerate", "nodes": "2", "whole": True},
        ),
        (
            ["accelerate", "launch", "--num_processes=3", "--num_machines=0", "t.py"],
            {"by": "accelerate", "nodes": "0", "whole": True},
        ),
        (["accelerate", "launch", "--num_processes=8", "$ARGS"], {"by": "accelerate"}),
        (
            ["accelerate", "launch", "--config_file", "c.yaml", "--num_processes=8", "t.py"],
            {"by": "accelerate", "hosts": True, "whole": True},
        ),
        (
            ["python", "-m", "accelerate.commands.launch", "--num_processes=2", "t.py"],
            {"by": "accelerate", "processes": 2, "whole": True},
        ),
        (["accelerate", "config"], {}),
        (
            ["deepspeed", "--num_gpus", "4", "t.py", "--deepspeed"],
            {"by": "deepspeed", "processes": 4, "per_node": "4", "whole": True},
        ),
        (
            ["deepspeed", "--include", "worker-0:0,1", "--num_gpus=4", "t.py"],
            {"by": "deepspeed", "per_node": "4", "hosts": True, "whole": True},
        ),
        (["horovodrun", "-np", "4", "python", "t.py"], {"by": "horovodrun", "ranks": 4, "hosts": True, "whole": True}),
        (
            ["horovodrun", "-np", "4", "--hostfile", "/etc/mpi/hostfile", "python", "t.py"],
            {"by": "horovodrun", "ranks": 4, "whole": True},
        ),
        (
            ["horovodrun", "-np", "4", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "python", "t.py"],
            {"by": "horovodrun", "ranks": 4, "hosts": True, "whole": True},
        ),
        # none
        (["python", "train.py", "-n", "3"], {"by": "python", "whole": True}),
        (["python3", "-u", "-W", "ignore", "/opt/train.py"], {"by": "python", "whole": True}),
        (["python", "-m", "train"], {}),
        (["python", "-m"], {}),
        (["python", "-c", "import torchrun"], {"is_inline": True}),
        (["sh", "-c", "nvidia-smi && python -c 'import torch'; python - <<E\nimport os\nE"], {"is_inline": True}),
        (["sh", "-c", "python -c 'import torch'; torchrun t.py"], torchrun()),
        (["python"], {}),
        (["python", "train"], {}),
        (["srun", "python", "train.py"], {}),
        (["./run.sh"], {}),
        (["bash", "run.sh", "-c", "torchrun t.py"], {}),
        (["torchrun t.py"], {}),
        ([1, None, ["torchrun"]], {}),
        ([], {}),
        ("torchrun", {}),
        (None, {}),
    ],
)
def test_commands_determine_how_processes_start(command: object, expected: dict) -> None:
    assert said(command) == expected


@all_rows(
    ("command", "expected"),
    [
        (["mpirun", "-np", "8", "./a"], mpirun(ranks=8)),
        (["mpirun", "-n", "8", "./a", "-n", "100"], mpirun(ranks=8)),
        (["mpirun", "./a", "-n", "100", "-np", "3"], mpirun()),
        (["/opt/amazon/openmpi/bin/mpirun", "--np", "8", "-N", "4", "a"], mpirun(ranks=8, processes=4, per_node="4")),
        (["mpiexec", "-n", "8", "-ppn", "2", "./a"], mpirun(ranks=8, processes=2, per_node="2")),
        (["mpirun", "--map-by", "ppr:2:node", "-np", "8", "a"], mpirun(ranks=8, processes=2, per_node="2")),
        (["mpirun", "--map-by", "ppr:2:node:pe=4", "-np", "8", "a"], mpirun(ranks=8, processes=2, per_node="2")),
        (["mpirun", "--map-by", "ppr:2:socket", "-np", "8", "a"], mpirun(ranks=8)),
        (
            ["mpirun", "-npernode", "4", "--map-by", "ppr:4:node", "-np", "72", "a"],
            mpirun(ranks=72, processes=4, per_node="4"),
        ),
        (["mpirun", "-np", "8", "-n", "3", "./a"], mpirun()),
        (["mpirun", "-np", "2", "a", ":", "-np", "3", "b"], mpirun()),
        (["mpirun", "-np", "$N", "a"], mpirun()),
        (["mpirun", "-np4", "a"], {"by": "mpirun"}),
        (
            [
                "mpirun",
                "--allow-run-as-root",
                "-np",
                "2",
                "-bind-to",
                "none",
                "-map-by",
                "slot",
                "-x",
                "PATH",
                "-mca",
                "pml",
                "ob1",
                "python",
                "t.py",
            ],
            mpirun(ranks=2),
        ),
        # more ranks than slots
        (["mpirun", "--oversubscribe", "-np", "8", "a"], mpirun(ranks=8, oversubscribed=True)),
        (["mpirun", "--nooversubscribe", "-np", "8", "a"], mpirun(ranks=8)),
        (["mpirun", "--map-by", "slot:OVERSUBSCRIBE", "-np", "8", "a"], mpirun(ranks=8, oversubscribed=True)),
        (["mpirun", "--map-by", "node:NOOVERSUBSCRIBE", "-np", "8", "a"], mpirun(ranks=8)),
        (
            ["mpirun", "--mca", "btl", "tcp", "--mca", "rmaps_base_oversubscribe", "1", "-np", "8", "a"],
            mpirun(ranks=8, oversubscribed=True),
        ),
        # hosts that the command names
        (["mpirun", "-np", "8", "-H", "a:8", "a"], mpirun(ranks=8, hosts=True, named_hosts="a:8")),
        (["mpirun", "-np", "8", "--hostfile", "/data/hosts", "a"], mpirun(ranks=8, hosts=True)),
        (["mpirun", "-np", "8", "--hostfile", "/etc/mpi/hostfile", "a"], mpirun(ranks=8)),
        (["mpirun", "-np", "8", "-f", "/data/hosts", "a"], mpirun(ranks=8, hosts=True)),
        # if a launcher starts another, the outer one counts
        (["mpirun", "-np", "2", "torchrun", "--nproc_per_node=8", "t.py"], mpirun(ranks=2)),
    ],
)
def test_the_ranks_of_mpirun_are_read(command: list[str], expected: dict) -> None:
    assert said(command) == expected


@all_rows(
    ("text", "expected"),
    [
        ("torchrun --nproc_per_node 2 t.py", torchrun(processes=2, per_node="2")),
        (
            "cd /x; pip install torchrun && /opt/bin/torchrun --nproc_per_node=2 t.py 2>&1 | tee log",
            torchrun(processes=2, per_node="2"),
        ),
        ("torchrun \\\n  --nproc_per_node=2 \\\n  t.py", torchrun(processes=2, per_node="2")),
        (
            "# torchrun --nproc_per_node=9\ntorchrun --nproc_per_node=2 t.py # --nnodes=3",
            torchrun(processes=2, per_node="2"),
        ),
        (
            "cat > t.py <<'EOF'\nimport torchrun --nproc_per_node=9\nEOF\ntorchrun --nproc_per_node=2 t.py",
            torchrun(processes=2, per_node="2"),
        ),
        ("echo torchrun; which mpirun; [ -x /bin/torchrun ]; torchrun t.py", torchrun()),
        ("if true; then torchrun --nnodes=2 t.py; fi", torchrun(nodes="2")),
        ("N=4; torchrun --nproc_per_node=$N t.py", torchrun(processes=4, per_node="4")),
        ("N=$(nvidia-smi -L | wc -l); torchrun --nproc_per_node=$N t.py", torchrun(per_node="?")),
        ("torchrun --nproc_per_node=$(nvidia-smi -L | wc -l) t.py", torchrun(per_node="$(nvidia-smi -L | wc -l)")),
        ("torchrun --nproc_per_node=${GPUS:-8} t.py", torchrun(per_node="${GPUS:-8}")),
        ("torchrun --nnodes=$WORLD_SIZE t.py", torchrun(nodes="$WORLD_SIZE")),
        ('torchrun "--nnodes=${WORLD_SIZE}" t.py', torchrun(nodes="${WORLD_SIZE}")),
        ("WORLD_SIZE=$((WORLD_SIZE / 8)); torchrun --nnodes=$WORLD_SIZE t.py", torchrun(nodes="?")),
        ("ARGS='--nproc_per_node 8 --nnodes 2'; torchrun $ARGS t.py", torchrun(processes=8, per_node="8", nodes="2")),
        ("ARGS=(--nproc_per_node 8); torchrun ${ARGS[@]} t.py", {"by": "torchrun"}),
        ("torchrun $ARGS t.py", {"by": "torchrun"}),
        ("torchrun --nproc_per_node=2 a.py; torchrun --nproc_per_node=4 b.py", {"by": "several"}),
        ("mpirun -np 2 a && mpirun -np 4 b", {"by": "several"}),
        ("if a; then torchrun x.py; else mpirun y; fi", {"by": "several"}),
        ("python prepare.py && torchrun t.py", torchrun()),
        ("pip install x && python t.py", {"by": "python", "whole": True}),
        ("python a.py && python b.py", {}),
        ("exec env A=1 torchrun --nnodes=2 t.py", torchrun(nodes="2")),
        ("sudo -E mpirun -np 2 a", mpirun(ranks=2)),
        ("date; mpirun --hostfile /etc/mpi/hostfile -np 2 a", mpirun(ranks=2)),
        ("sed -i s/slots=1/slots=8/ /etc/mpi/hostfile; mpirun -np 2 a", mpirun(ranks=2, hosts=True)),
        ("export OMPI_MCA_orte_default_hostfile=/x\nmpirun -np 2 a", mpirun(ranks=2, hosts=True)),
        ("cat /etc/mpi/hostfile && torchrun t.py", torchrun()),
        ("nsys profile -o out --stats=true torchrun --nnodes=2 t.py", torchrun(nodes="2")),
        ("./tool --launcher torchrun --nnodes=2", {}),
        ("./tool -- torchrun --nnodes=2 t.py", torchrun(nodes="2")),
        ("bash -ec 'torchrun --nnodes=2 t.py'", torchrun(nodes="2")),
        ('N=2; bash -o pipefail -c "torchrun --nnodes=$N t.py"', torchrun(nodes="2")),
        ("eval torchrun --nnodes=2 t.py", torchrun(nodes="2")),
        ("timeout 1h torchrun t.py", torchrun()),
        ("echo 'not closed; torchrun t.py", {}),
        ("bash -c " * 3 + "torchrun", {}),
        ("\n\n", {}),
    ],
)
def test_scripts_determine_how_processes_start(text: str, expected: dict) -> None:
    assert script(text) == expected


@pytest.mark.parametrize(
    "shell",
    [
        ["sh", "-c"],
        ["/bin/bash", "-lc"],
        ["bash", "-euxo", "pipefail", "-c"],
        ["bash", "-c", "-x"],
        ["bash", "+x", "-c", "--"],
        ["bash", "--rcfile", "x", "-c"],
        ["tini", "--", "bash", "-c"],
        ["/entrypoint.sh", "bash", "-c"],
    ],
)
def test_shells_are_known_by_their_options(shell: list[str]) -> None:
    assert said(shell, args=["torchrun --nnodes=2 t.py", "--nnodes=9"]) == torchrun(nodes="2")


def test_args_continue_the_command_or_the_entrypoint() -> None:
    assert said(["mpirun"], args=["-np", "4", "a"]) == mpirun(ranks=4)
    assert said(None, args=["torchrun", "--nnodes=2", "t.py"]) == torchrun(nodes="2")
    assert said(["bash", "-c"], args=["torchrun", "--nnodes=2"]) == torchrun()


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ([{"name": "N", "value": "8"}], "8"),
        ([{"name": "M", "value": "8"}, {"name": "N", "value": "$(M)"}], "8"),
        ([{"name": "N", "value": "8"}, {"name": "N", "value": "4"}], "4"),
        ([{"name": "N", "value": "8"}, {"name": "N", "valueFrom": {}}], "$(N)"),
        ([{"name": "N", "value": "{{ n }}"}], "$(N)"),
        ([{"name": "N", "value": 8}, None, "x", {"value": "1"}], "$(N)"),
        ("N", "$(N)"),
        (None, "$(N)"),
    ],
)
def test_the_kubelet_fills_in_variables_of_the_container(env: object, expected: str) -> None:
    assert launch({"command": ["torchrun", "--nproc_per_node=$(N)", "t.py"], "env": env}).per_node == expected


def test_variables_that_the_operator_sets_are_not_read() -> None:
    env = [{"name": "WORLD_SIZE", "value": "2"}, {"name": "PET_NNODES", "value": "2"}]
    assert said(["torchrun", "--nnodes=$(WORLD_SIZE)", "t.py"], env=env) == torchrun(nodes="$(WORLD_SIZE)")
    assert script("torchrun --nnodes=$PET_NNODES t.py", env=env) == torchrun(nodes="$PET_NNODES")


def test_two_dollar_signs_are_one_dollar_sign() -> None:
    assert script("torchrun --nnodes=$$N t.py") == torchrun(nodes="$N")


def test_a_variable_may_let_ranks_share_slots() -> None:
    env = [{"name": "OMPI_MCA_rmaps_base_oversubscribe", "valueFrom": {}}]
    assert said(["mpirun", "-np", "8", "a"], env=env) == mpirun(ranks=8, oversubscribed=True)


def test_a_command_longer_than_the_kernel_limit_is_not_read() -> None:
    assert script("torchrun t.py" + " " * (128 * 1024)) == {}


def test_every_launcher_has_its_options() -> None:
    for launcher in (*read_launcher_catalogue().programs.values(), *read_launcher_catalogue().modules.values()):
        for option, meaning in launcher.meanings.items():
            assert launcher.count_values_of_option(option) == 1, option
            assert meaning in ("processes", "nodes", "node-rank", "rendezvous", "address", "ranks", "hosts")


OPTIONS = [option for launcher in read_launcher_catalogue().programs.values() for option in launcher.counts]
WORDS = st.sampled_from(
    [
        "torchrun",
        "mpirun",
        "accelerate",
        "launch",
        "python",
        "-m",
        "torch.distributed.run",
        "t.py",
        "2",
        "$X",
        "--",
        "=",
        "sh",
        "-c",
    ]
    + [f"--{option}" for option in OPTIONS[:12]]
)


@given(st.lists(WORDS, max_size=8), st.sampled_from([" ", "\n", ";", "'", '"', "\\", "$(", " | "]))
def test_every_random_command_has_a_launch_fact(found: list[str], joint: str) -> None:
    for container in ({"command": found}, {"command": ["sh", "-c", joint.join(found)]}):
        assert isinstance(launch(container), LaunchedProgram)


def test_a_cached_command_does_not_keep_the_deadline_of_its_review():
    class OfReview(Deadline):
        """A deadline that accepts weak references. They show whether something still refers to it."""

    deadline = OfReview()
    seen = weakref.ref(deadline)
    launching.launch_of_json({"command": ["torchrun", "--nproc-per-node=3", "kept.py"]}, deadline)
    del deadline
    assert seen() is None
