"""Reads the launcher in the command of a container, and the numbers of processes and nodes that the launcher gets.

Commands are read, never run. A number is not known if only a shell can compute the value, if a script has several
launchers, or if an option is unknown. The programs and their options are data: launchers.yaml. torchrun also
accepts a range of nodes. Each launcher has a different option for the number of nodes (OPTIONS).

Source: pytorch/pytorch@010929fd torch/distributed/run.py parse_min_max_nnodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final, NamedTuple, TypeAlias

from webhook.apimachinery.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.command_lines.launchers import (
    LauncherCatalogue,
    LauncherRow,
    LauncherStart,
    commands_started_by,
    read_launcher_catalogue,
)
from webhook.facts.command_lines.shell import ReadingBudget, ScriptVariables
from webhook.facts.subject import Subject
from webhook.text.caches import IdentityKey, TwoGenerationCache
from webhook.typed import fields
from webhook.typed.environment import Environment
from webhook.typed.pods import Container
from webhook.typed.view import ReadingContext as ReadingOf
from webhook.typed.view import Typed
from webhook.yamltext.placeholders import is_placeholder

PYTHON: Final = "python"
SEVERAL: Final = "several"
MPI: Final = ("mpirun", "horovodrun")
"""Launchers that start processes on hosts from a hostfile or an option."""
OWN_HOSTS: Final = "/etc/mpi/hostfile"
"""The path at which the Training Operator and the MPI Operator mount the hostfile of a job (configMountPath)."""
OPTIONS: Final = {
    "torchrun": ("--nnodes", "--node_rank"),
    "accelerate": ("--num_machines", "--machine_rank"),
    "deepspeed": ("--num_nodes", "--node_rank"),
}
"""Maps a launcher to its options for the number of nodes and for the rank of a node."""
_KUBELET: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_RESERVED: Final = re.compile(r"WORLD_SIZE|RANK|MASTER_(ADDR|PORT)|PET_[A-Z_]+")
"""Variables that the Training Operator appends to a container's variables. The last value of a variable counts, so the
operator's values count.
"""
_PER_NODE: Final = re.compile(r"(?i)ppr:([0-9]{1,9}):node(:.*)?")
_OVERSUBSCRIBE: Final = re.compile(r"(?i)(?<!no)(?<!no_)oversubscribe")
_UNSURE: Final = re.compile(r"[$`?]")
_TOLD: Final = re.compile(r"--?hostfile[ =]/etc/mpi/hostfile\b")
_HOSTFILES: Final = frozenset(("hostfile", "machinefile", "default-hostfile", "rankfile", "rf"))
_HOSTS: Final = re.compile(r"(?i)hostfile|_mca_|hydra")
"""Texts in a script that may change the hosts or slots of mpirun."""
_TEXT: Final = frozenset((str,))
_LAUNCH_BYTES: Final = 2 << 10
_LONGEST_KEPT: Final = 16 * 1024
"""The most characters of a command line that is cached. Longer command lines are rare, and users choose the length."""
_Env: TypeAlias = tuple[tuple[str, str | None], ...]
_NODES: Final = re.compile(r"([0-9]{1,9})(?::([0-9]{1,9}))?", re.ASCII)


class LaunchedProgram(NamedTuple):
    """The programs that a command starts.

    Args:
        by: the launcher; `python` for one program without a launcher, `several` for several launchers, "" for no
            program.
        processes: the number of processes on each node; None if the command sets no number, or if the script computes
            the number when it runs.
        per_node: the number of processes on each node as written; `?` if the script computes the number.
        nodes: the number of nodes as written; `?` if the script computes the number.
        node_rank: the rank of the node, as written.
        rendezvous: how nodes find each other, as written: `static`, `c10d` …
        address: where nodes find each other, as written; `localhost` for a single node.
        ranks: the number of processes of all nodes; None in the same cases as `processes`.
        hosts: whether the command names hosts that are not from the hostfile of the job.
        named_hosts: the hosts that the command lists instead of a hostfile, as written: `${MPI_HOST}`.
        oversubscribed: whether mpirun may start more processes than there are slots.
        whole: whether every option is known. If so, an option that the command lacks is not set.
        is_inline: whether the command starts only a Python program that is written in the command itself.
    """

    by: str
    processes: int | None = None
    per_node: str = ""
    nodes: str = ""
    node_rank: str = ""
    rendezvous: str = ""
    address: str = ""
    ranks: int | None = None
    hosts: bool = False
    named_hosts: str = ""
    oversubscribed: bool = False
    whole: bool = False
    is_inline: bool = False


_NOTHING: Final = LaunchedProgram(by="")


class _CommandLine(NamedTuple):
    """A command line with its environment."""

    words: tuple[str, ...]
    env: _Env

    def length_of_texts(self) -> int:
        env = sum([len(name) + len(value or "") for name, value in self.env])
        return sum(map(len, self.words)) + env

    def memory_bytes(self) -> int:
        """Return how many bytes the command and its result need in memory; the result may repeat some texts."""
        texts = (*self.words, *(text for pair in self.env for text in pair if text))
        return _LAUNCH_BYTES + 2 * sum(map(getsizeof, texts))


class _ContainerCommand(Typed):
    """The command and the arguments of a container, unchanged."""

    command = fields.Values()
    args = fields.Values()

    def certain_words(self) -> tuple[str, ...]:
        """Return the words of command and args; () if the container has no command, or if a word is not a text."""
        words = [*self.command, *self.args]
        return tuple(filter(None, words)) if _TEXT.issuperset(map(type, words)) else ()


def launch_of_container(container: Container) -> LaunchedProgram:
    """Return what the command of a container starts; no program if a word of the command is not a text."""
    words = _ContainerCommand(container.json, container.at, container.reading).certain_words()
    return _launch_of_words(words, container.environment, container.reading.deadline) if words else _NOTHING


def may_start_launcher(container: Container) -> bool:
    """Return whether the command of a container may start a launcher. This fast test excludes most commands.
    A command that starts a launcher contains the name of the launcher, or a shell, `eval` or a variable, which may
    start the launcher.
    """
    return container.runs(read_launcher_catalogue().names)


def cached_launch_of_container(container: Container, subject: Subject) -> LaunchedProgram:
    """Return what the command of a container starts, computed once a request."""
    if not (container.command or container.args):
        return _NOTHING
    return subject.cluster.once(
        (launch_of_container, IdentityKey(container.json)), lambda: launch_of_container(container)
    )


def launch_of_json(container: JSON, deadline: Deadline | None = None) -> LaunchedProgram:
    """Return the result of `launch_of_container` for the JSON of a container."""
    return launch_of_container(Container.of(container, (), ReadingOf(deadline or Deadline())))


def cached_launch_of_json(container: JSON, subject: Subject) -> LaunchedProgram:
    """Return the result of `cached_launch_of_container` for the JSON of a container."""
    return cached_launch_of_container(Container.of(container, (), ReadingOf(subject.deadline)), subject)


def _launch_of_words(argv: tuple[str, ...], env: Environment, until: Deadline) -> LaunchedProgram:
    """Return what these words start. The environment may have hundreds of variables, and is read only if needed."""
    until.spend(len(env.values))
    if "$" not in "".join(filter(None, (*argv, *env.values))):
        said = _cached_launch(_CommandLine(argv, ()), until)
        if said.by not in MPI:
            return said
    until.spend(len(env.values))
    return _cached_launch(_CommandLine(argv, env.pairs()), until)


def _cached_launch(command_line: _CommandLine, until: Deadline) -> LaunchedProgram:
    """Return what a command line starts. The result is cached, because `/mutate` and `/validate` need the same result,
    and because roles of a job often have the same command.
    """
    if command_line.length_of_texts() > _LONGEST_KEPT:
        return _follow_command_line(command_line, until)
    started = _KEPT.get(command_line, None)
    if started is None:
        started = _follow_command_line(command_line, until)
        _KEPT.put(command_line, started, command_line.memory_bytes())
    return started


def _follow_command_line(command_line: _CommandLine, until: Deadline) -> LaunchedProgram:
    reading = ReadingBudget(until)
    words, env = until.items_with_clock_checks(command_line.words), command_line.env
    try:
        known = _certain_variables(env, reading)
        started = list(
            commands_started_by(
                [_with_expanded_variables(word, known, reading) for word in words],
                ScriptVariables(known, reading),
                read_launcher_catalogue(),
            )
        )
    except ValueError:
        started = []
    programs = [start for start in started if not start.is_inline]
    if started and not programs:
        return LaunchedProgram(by="", is_inline=True)
    launchers = [start for start in started if start.launcher is not None]
    if len(launchers) > 1:
        return LaunchedProgram(by=SEVERAL)
    if launchers:
        said = _launched_program_of_start(
            launchers[0], " ".join(each or "" for variable in env for each in variable), until
        )
        return said._replace(
            hosts=said.hosts or (said.by in MPI and any(map(_is_script_that_changes_hosts, command_line.words)))
        )
    return LaunchedProgram(by=PYTHON, whole=True) if len(programs) == 1 else _NOTHING


_KEPT: Final[TwoGenerationCache[_CommandLine, LaunchedProgram | None]] = TwoGenerationCache(2 << 20)


def _is_script_that_changes_hosts(word: str) -> bool:
    """Return whether a word is a script that names hosts which are not from the hostfile of the job."""
    is_script = any(each in word for each in "\n;&")
    return is_script and _HOSTS.search(_TOLD.sub("", word)) is not None


def _certain_variables(env: Sequence[tuple[str, str | None]], reading: ReadingBudget) -> dict[str, str]:
    """Return the environment variables with known values. If a name occurs twice, the last value counts."""
    known: dict[str, str] = {}
    for name, value in reading.deadline.items_with_clock_checks(env):
        known.pop(name, None)
        if name and value is not None and not _RESERVED.fullmatch(name):
            known[name] = _with_expanded_variables(value, known, reading)
    return {name: value for name, value in known.items() if not is_placeholder(value)}


def _with_expanded_variables(word: str, known: Mapping[str, str], reading: ReadingBudget) -> str:
    """Expand a word as the kubelet does: `$(NAME)` becomes the value if NAME is known, and `$$` becomes `$`."""
    if "$" not in word:
        return word

    def value_of_reference(match: re.Match[str]) -> str:
        value = "$" if match[0] == "$$" else known.get(match[1], match[0])
        reading.take(len(value))
        return value

    return _KUBELET.sub(value_of_reference, word)


@dataclass(frozen=True, slots=True)
class StartedPrograms:
    """The programs of a catalogue that a command starts, in order, and the variables with known values."""

    starts: tuple[LauncherStart, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


def programs_started_by(
    words: Sequence[str], environment: Environment, catalogue: LauncherCatalogue, deadline: Deadline
) -> StartedPrograms:
    """Return the programs of a catalogue that these words start; no program if a script in the words is invalid."""
    reading = ReadingBudget(deadline)
    try:
        known = _certain_variables(environment.pairs(), reading)
        paced = deadline.charge_for_items(words)
        expanded = [_with_expanded_variables(word, known, reading) if "$" in word else word for word in paced]
        starts = commands_started_by(expanded, ScriptVariables(known, reading), catalogue)
        return StartedPrograms(tuple(start for start in starts if start.launcher is not None), known)
    except ValueError:
        return StartedPrograms()


def _launched_program_of_start(start: LauncherStart, env: str, deadline: Deadline) -> LaunchedProgram:
    launcher = start.launcher
    assert launcher is not None
    options, whole = _options_before_program(launcher, start.arguments, deadline)
    per_node, nodes = options.get("processes", ""), options.get("nodes", "")
    ranks = None if ":" in start.arguments else _whole_number(options.get("ranks", ""))
    policy = options.get("map-by", "")
    if not per_node and (match := _PER_NODE.fullmatch(policy)):
        per_node = match[1]
    processes = _whole_number(per_node)
    if launcher.name == "accelerate":
        processes, ranks = _processes_per_machine(ranks, nodes, whole=whole and "hosts" not in options), None
    return LaunchedProgram(
        by=launcher.name,
        processes=None if launcher.name == "deepspeed" and "hosts" in options else processes,
        per_node=per_node,
        nodes=nodes,
        node_rank=options.get("node-rank", ""),
        rendezvous=options.get("rendezvous", ""),
        address="localhost" if "standalone" in options else options.get("address", ""),
        ranks=ranks,
        hosts="hosts" in options or _uses_other_hostfile(launcher.name, options),
        named_hosts=_hosts_named_by_options(launcher.name, options),
        oversubscribed=launcher.name in MPI
        and _OVERSUBSCRIBE.search(" ".join((*options, policy, options.get("mca", ""), env))) is not None,
        whole=whole,
    )


def _processes_per_machine(total: int | None, nodes: str, *, whole: bool) -> int | None:
    """Return how many of all processes run on each machine. Without an option, accelerate uses one machine."""
    machines = _whole_number(nodes) if nodes else 1 if whole else None
    return None if total is None or not machines or total % machines else total // machines


def _hosts_named_by_options(name: str, options: Mapping[str, str]) -> str:
    """Return the hosts of mpirun's --host; "" with a hostfile, because --host then only selects hosts of the file."""
    if name != "mpirun" or not _HOSTFILES.isdisjoint(options):
        return ""
    return options.get("host", options.get("H", ""))


def _uses_other_hostfile(name: str, options: Mapping[str, str]) -> bool:
    """Return whether the launcher does not use the hostfile of the job. mpirun finds this file without an option;
    horovodrun needs an option.
    """
    default = OWN_HOSTS if name == "mpirun" else ""
    return name in MPI and options.get("hostfile", default) != OWN_HOSTS


def _options_before_program(
    launcher: LauncherRow, words: Sequence[str], deadline: Deadline
) -> tuple[dict[str, str], bool]:
    """Return the options before the program, by name and by meaning, and whether all options are known. An option with
    two different values has the value `?`.
    """
    values: dict[str, list[str]] = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        deadline.spend(1)
        name, equals, value = words[at].lstrip("-").partition("=")
        name, at = name.replace("_", "-"), at + 1
        count = launcher.count_values_of_option(name)
        if count is None and not equals and at < len(words) and not words[at].startswith("-"):
            return _joined_values(values), False
        if count and not equals:
            value, at = " ".join(words[at : at + count]), at + count
        for key in {name, launcher.meaning(name)} - {""}:
            _add_option_value(values.setdefault(key, [value]), key, value)
    is_known = at >= len(words) or words[at] == "--" or not _UNSURE.search(words[at])
    return _joined_values(values), is_known and at <= len(words)


def _add_option_value(said: list[str], key: str, now: str) -> None:
    """Add a later value of an option. A different value makes the option unknown, unless the option may occur twice."""
    if said != [now]:
        if key == "mca":
            said.append(now)
        else:
            said[:] = ["?"]


def _joined_values(values: Mapping[str, list[str]]) -> dict[str, str]:
    return {key: " ".join(said) for key, said in values.items()}


def _whole_number(words: str) -> int | None:
    return int(words) if re.fullmatch(r"[0-9]{1,9}", words) else None


def node_count_range_of_launch(launch: LaunchedProgram) -> tuple[int, int] | None:
    """Return the least and the most nodes that a command sets; None if the command sets no number."""
    match = _NODES.fullmatch(launch.nodes) if launch.by in OPTIONS else None
    return None if match is None else (int(match[1]), int(match[2] or match[1]))
