"""What a container's command says of processes: which launcher it runs, and the numbers among the launcher's options.

Commands are read, never run. Where a shell would have to work something out, where several launchers stand in one
script, or where an option is not known, nothing is said: a number here is a number that the launcher will see. Which
programs and options there are is data, launchers.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final, NamedTuple, TypeAlias

from webhook.attributes import JSON
from webhook.deadline import Deadline
from webhook.facts.command_lines.launchers import Launcher
from webhook.facts.command_lines.shell import Reading, Variables
from webhook.facts.command_lines.wrappers import Start, commands_started_by
from webhook.facts.subject import Subject
from webhook.placeholders import is_placeholder
from webhook.same import Same
from webhook.typed import fields
from webhook.typed.environment import Environment
from webhook.typed.pods import Container
from webhook.typed.view import Reading as ReadingOf
from webhook.typed.view import Typed
from webhook.user_cache import UserCache

PYTHON: Final = "python"
SEVERAL: Final = "several"
MPI: Final = ("mpirun", "horovodrun")
"""Launchers that start their processes on the hosts that they are given."""
OWN_HOSTS: Final = "/etc/mpi/hostfile"
"""Where both operators mount the hostfile of a job: configMountPath of their controllers."""

_KUBELET: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
_RESERVED: Final = re.compile(r"WORLD_SIZE|RANK|MASTER_(ADDR|PORT)|PET_[A-Z_]+")
"""Variables that the Training Operator appends to a container's own, so that its values count."""
_PER_NODE: Final = re.compile(r"(?i)ppr:([0-9]{1,9}):node(:.*)?")
_OVERSUBSCRIBE: Final = re.compile(r"(?i)(?<!no)(?<!no_)oversubscribe")
_UNSURE: Final = re.compile(r"[$`?]")
_TOLD: Final = re.compile(r"--?hostfile[ =]/etc/mpi/hostfile\b")
_HOSTFILES: Final = frozenset(("hostfile", "machinefile", "default-hostfile", "rankfile", "rf"))
_HOSTS: Final = re.compile(r"(?i)hostfile|_mca_|hydra")
"""What a script says when it changes which hosts or slots mpirun has."""


class Launch(NamedTuple):
    """What a command starts.

    Args:
        by: the launcher, `python` for one program without any, `several` or "".
        processes: on each node; None where only a running script could tell.
        per_node: the same as written, `?` for what the script works out.
        nodes: their number as written, `?` for what the script works out.
        node_rank: which of the nodes each pod is, as written.
        rendezvous: how nodes find each other, as written: `static`, `c10d` …
        address: where nodes find each other, as written; `localhost` for one node alone.
        ranks: processes in all; None where only a running script could tell.
        hosts: whether it names hosts of its own.
        named_hosts: those that it lists instead, as written: `${MPI_HOST}`.
        oversubscribed: whether mpirun may start more processes than there are slots.
        whole: whether every option is understood, so that what is not there was not given.

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


_NOTHING: Final = Launch(by="")
_LAUNCH_BYTES: Final = 2 << 10
_LONGEST_KEPT: Final = 16 * 1024
"""Characters of a command line that is kept: users choose them, and long ones are rare."""


_Env: TypeAlias = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A command line with its environment; until when it may be followed makes no difference to the answer."""

    words: tuple[str, ...]
    env: _Env
    deadline: Deadline = field(compare=False)

    def length(self) -> int:
        """Return the number of characters of all texts together."""
        env = sum([len(name) + len(value or "") for name, value in self.env])
        return sum(map(len, self.words)) + env

    def bytes(self) -> int:
        """Return how many bytes the command takes in memory with its answer, which may repeat some of its texts."""
        texts = (*self.words, *(text for pair in self.env for text in pair if text))
        return _LAUNCH_BYTES + 2 * sum(map(getsizeof, texts))


class _Command(Typed):
    """The command and the arguments of a container, as they are written."""

    command = fields.Values()
    args = fields.Values()

    def words(self) -> tuple[str, ...]:
        """Return the words; none where only the image knows them, or where one is no text."""
        words = [*self.command, *self.args]
        return tuple(filter(None, words)) if all(isinstance(word, str) for word in words) else ()


def launch_of(container: Container) -> Launch:
    """Return what the command of a container starts; a word that is no text is unknown."""
    words = _Command(container.json, container.at, container.reading).words()
    return _launch_of_words(words, container.environment, container.reading.deadline) if words else _NOTHING


def launched_by(container: Container, subject: Subject) -> Launch:
    """Return what the command of a container starts, found out once a request: many checks ask."""
    if not (container.command or container.args):
        return _NOTHING
    return subject.cluster.once((launch_of, Same(container.json)), lambda: launch_of(container))


def launch_of_json(container: JSON, deadline: Deadline | None = None) -> Launch:
    """Do as `launch_of`, with the JSON of a container."""
    return launch_of(Container.of(container, (), ReadingOf(deadline or Deadline())))


def launched_by_json(container: JSON, subject: Subject) -> Launch:
    """Do as `launched_by`, with the JSON of a container."""
    return launched_by(Container.of(container, (), ReadingOf(subject.deadline)), subject)


def _launch_of_words(argv: tuple[str, ...], env: Environment, until: Deadline) -> Launch:
    """Return what some words start; variables, of which there may be hundreds, are followed if they make a
    difference.
    """
    until.spend(len(env.values))
    if "$" not in "".join(filter(None, (*argv, *env.values))):
        said = _launch(_Asked(argv, (), until))
        if said.by not in MPI:
            return said
    return _launch(_Asked(argv, env.pairs(), until))


def _launch(asked: _Asked) -> Launch:
    """Return what a command line starts, from a cache: the roles of a job mostly have one command, and both
    phases ask.
    """
    if asked.length() > _LONGEST_KEPT:
        return _read(asked)
    started = _KEPT.get(asked, None)
    if started is None:
        started = _read(asked)
        _KEPT.put(asked, started, asked.bytes())
    return started


def _read(asked: _Asked) -> Launch:
    reading = Reading(asked.deadline)
    words, env = asked.deadline.paced(asked.words), asked.env
    try:
        known = _environment(env, reading)
        started = list(
            commands_started_by([_expanded(word, known, reading) for word in words], Variables(known, reading))
        )
    except ValueError:
        started = []
    launchers = [start for start in started if start.launcher is not None]
    if len(launchers) > 1:
        return Launch(by=SEVERAL)
    if launchers:
        said = _described(launchers[0], " ".join(each or "" for variable in env for each in variable), asked.deadline)
        return said._replace(hosts=said.hosts or (said.by in MPI and any(map(_changes_hosts, asked.words))))
    return Launch(by=PYTHON, whole=True) if len(started) == 1 else _NOTHING


_KEPT: Final[UserCache[_Asked, Launch | None]] = UserCache(2 << 20)


def _changes_hosts(word: str) -> bool:
    """Return whether a word is a script that has more to say of hosts than where the job's own are."""
    is_script = any(each in word for each in "\n;&")
    return is_script and _HOSTS.search(_TOLD.sub("", word)) is not None


def _environment(env: Sequence[tuple[str, str | None]], reading: Reading) -> dict[str, str]:
    """Return the variables of a container whose values stand in it; the last one of a name counts."""
    known: dict[str, str] = {}
    for name, value in reading.deadline.paced(env):
        known.pop(name, None)
        if name and value is not None and not _RESERVED.fullmatch(name):
            known[name] = _expanded(value, known, reading)
    return {name: value for name, value in known.items() if not is_placeholder(value)}


def _expanded(word: str, known: Mapping[str, str], reading: Reading) -> str:
    """Expand a word as the kubelet does: `$(NAME)` where NAME is known, `$$` for `$`."""
    if "$" not in word:
        return word

    def meant(match: re.Match[str]) -> str:
        value = "$" if match[0] == "$$" else known.get(match[1], match[0])
        reading.take(len(value))
        return value

    return _KUBELET.sub(meant, word)


def _described(start: Start, env: str, deadline: Deadline) -> Launch:
    launcher = start.launcher
    assert launcher is not None
    options, whole = _options(launcher, start.arguments, deadline)
    per_node, nodes = options.get("processes", ""), options.get("nodes", "")
    ranks = None if ":" in start.arguments else _number(options.get("ranks", ""))
    policy = options.get("map-by", "")
    if not per_node and (match := _PER_NODE.fullmatch(policy)):
        per_node = match[1]
    processes = _number(per_node)
    if launcher.name == "accelerate":
        processes, ranks = _processes_per_machine(ranks, nodes, whole=whole and "hosts" not in options), None
    return Launch(
        by=launcher.name,
        processes=None if launcher.name == "deepspeed" and "hosts" in options else processes,
        per_node=per_node,
        nodes=nodes,
        node_rank=options.get("node-rank", ""),
        rendezvous=options.get("rendezvous", ""),
        address="localhost" if "standalone" in options else options.get("address", ""),
        ranks=ranks,
        hosts="hosts" in options or _other_hosts(launcher.name, options),
        named_hosts=_named_hosts(launcher.name, options),
        oversubscribed=launcher.name in MPI
        and _OVERSUBSCRIBE.search(" ".join((*options, policy, options.get("mca", ""), env))) is not None,
        whole=whole,
    )


def _processes_per_machine(total: int | None, nodes: str, *, whole: bool) -> int | None:
    """Return how many of all processes run on each machine; one machine where accelerate is told nothing."""
    machines = _number(nodes) if nodes else 1 if whole else None
    return None if total is None or not machines or total % machines else total // machines


def _named_hosts(name: str, options: Mapping[str, str]) -> str:
    """Return the hosts that are all that mpirun gets: beside a hostfile they only choose among its own."""
    if name != "mpirun" or not _HOSTFILES.isdisjoint(options):
        return ""
    return options.get("host", options.get("H", ""))


def _other_hosts(name: str, options: Mapping[str, str]) -> bool:
    """Return whether the hostfile is not the job's own: mpirun finds that by itself, horovodrun has to be told
    of it.
    """
    default = OWN_HOSTS if name == "mpirun" else ""
    return name in MPI and options.get("hostfile", default) != OWN_HOSTS


def _options(launcher: Launcher, words: Sequence[str], deadline: Deadline) -> tuple[dict[str, str], bool]:
    """Return the options before the program, by their names and by what they mean; and whether all were understood.

    What is said twice and differs is `?`.
    """
    values: dict[str, list[str]] = {}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        deadline.spend(1)
        name, equals, value = words[at].lstrip("-").partition("=")
        name, at = name.replace("_", "-"), at + 1
        count = launcher.takes(name)
        if count is None and not equals and at < len(words) and not words[at].startswith("-"):
            return _joined(values), False
        if count and not equals:
            value, at = " ".join(words[at : at + count]), at + count
        for key in {name, launcher.meaning(name)} - {""}:
            _add(values.setdefault(key, [value]), key, value)
    is_known = at >= len(words) or words[at] == "--" or not _UNSURE.search(words[at])
    return _joined(values), is_known and at <= len(words)


def _add(said: list[str], key: str, now: str) -> None:
    """Add an option's later value to its first; a different one makes it unknown, unless the option may be repeated."""
    if said != [now]:
        if key == "mca":
            said.append(now)
        else:
            said[:] = ["?"]


def _joined(values: Mapping[str, list[str]]) -> dict[str, str]:
    return {key: " ".join(said) for key, said in values.items()}


def _number(words: str) -> int | None:
    return int(words) if re.fullmatch(r"[0-9]{1,9}", words) else None
