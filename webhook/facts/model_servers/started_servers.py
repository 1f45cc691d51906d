"""Which model server a container starts, with its arguments.

The command or the entrypoint of a well-known image shows the server. If a command starts several servers, or is not a
valid shell script, the server is not known. A wrapper program may start the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.images import parse_image_name
from webhook.facts.command_lines.command import StartedPrograms, programs_started_by
from webhook.facts.command_lines.launchers import (
    LauncherCatalogue,
    LauncherStart,
    catalogue_of_rows,
    read_launcher_catalogue,
)
from webhook.facts.command_lines.shell import read_shell_call
from webhook.facts.gpu.visible_devices import CUDA, HIP, ROCR
from webhook.facts.model_servers.arguments import Arguments, FlagTable, RemovedFlag, read_arguments
from webhook.typed.pods import Container
from webhook.yamltext import yamlfile

FILE: Final = Path(__file__).with_name("servers.yaml")
VLLM: Final = "vLLM"
SGLANG: Final = "SGLang"
TGI: Final = "TGI"
TENSORRT_LLM: Final = "trtllm-serve"
LMDEPLOY: Final = "LMDeploy"
LLAMA: Final = "llama-server"
TRITON: Final = "Triton"
NIM: Final = "NIM"
RAY: Final = "Ray"
DYNAMO_FRONTEND: Final = "Dynamo's frontend"
_VLLM_IMAGES: Final = re.compile(r"vllm/vllm-openai(-rocm|-xpu)?")
_RELEASE: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?(?:[.+-].*)?")
_MOST_SERVERS: Final = 4
"""The largest number of servers that are read in one container."""
_RUNS_PARAMETERS: Final = re.compile(r'(?:^|[;&\n])[ \t]*(?:exec[ \t]+)?"\$@"[ \t\n;]*\Z')
_RAY_ADDRESS: Final = "RAY_ADDRESS"
"""The variable by which a program joins a Ray cluster."""
_RAY_START: Final = re.compile(r"\bray\s+start\b")
_RAY_CLUSTER: Final = re.compile(r"\bray[_-]?[a-z]*\.sh\b|--ray[_-](?:cluster[_-]size|address|init)", re.ASCII)
_SHELL_FILE: Final = re.compile(r"\.sh\b")
_RAY_SCRIPT: Final = re.compile(r"\bmulti-node-serving\.sh\b")
"""The script in vLLM's images that starts Ray; examples of LeaderWorkerSet and KServe run the script."""
_DYNAMO: Final = re.compile(r"\bdynamo\.(vllm|sglang|trtllm)\b")
_OTHER_COMMANDS: Final = frozenset(("disaggregated", "disaggregated_mpi_worker", "grpc", "mm_embedding_serve"))
"""Commands of trtllm-serve that do not start the HTTP server of one language model."""
_NIM_IMAGE: Final = re.compile(r"nvcr\.io/nim/.+")
_LLAMA_IMAGE: Final = re.compile(r"ghcr\.io/(ggml-org|ggerganov)/llama\.cpp:server.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCatalogue:
    """The content of servers.yaml: the programs, the flags and the images of each server."""

    programs: LauncherCatalogue
    flags: Mapping[str, FlagTable]
    images: Mapping[str, re.Pattern[str]]


@cache
def read_server_catalogue() -> ServerCatalogue:
    """Return the shipped catalogue, which is read on first use."""
    (document,) = yamlfile.read(FILE)
    rows, launchers = document.value["servers"], read_launcher_catalogue()
    return ServerCatalogue(
        programs=catalogue_of_rows(
            [{key: row[key] for key in ("name", "programs", "modules", "verb") if key in row} for row in rows],
            launchers.wrappers,
            launchers.others,
            (CUDA, HIP, ROCR),
        ),
        flags={row["name"]: _flag_table_of_row(row) for row in rows},
        images={row["name"]: re.compile("|".join(row["images"])) for row in rows if row["images"]},
    )


def _flag_table_of_row(row: JSON) -> FlagTable:
    return FlagTable(
        meanings={spelling: meaning for meaning, spellings in row["flags"].items() for spelling in spellings},
        switches=re.compile(row["switches"]),
        bare=re.compile(row["bare"]) if "bare" in row else None,
        positional_words=row.get("positional_words", 0),
        beginnings=row["beginnings"],
        underscores=row.get("underscores", False),
        any_value=row.get("any_value", False),
        also=tuple(row.get("also", ())),
        valued=tuple(row.get("valued", ())),
        of_modules=tuple(row.get("of_modules", ())),
        mistakes=row.get("mistakes", {}),
        removed={
            name: RemovedFlag(_release_of_text(release), fix)
            for release, flags in row.get("removed", {}).items()
            for name, fix in flags.items()
        },
    )


def _release_of_text(text: str) -> tuple[int, int, int]:
    first, second, third = map(int, text.split("."))
    return first, second, third


@dataclass(frozen=True, kw_only=True)
class StartedServer:
    """A server that a container starts.

    Args:
        name: the name of the server in messages, such as `vLLM`.
        arguments: the arguments of the server.
        variables: the container's variables with known values.
        is_in_script: whether a shell reads the command.
        by_image: whether the entrypoint of the image starts the server.
        is_of_dynamo: whether Dynamo starts the server, which then answers no HTTP requests itself.
    """

    name: str
    arguments: Arguments
    variables: Mapping[str, str] = field(default_factory=dict)
    is_in_script: bool = False
    by_image: bool = False
    is_of_dynamo: bool = False


def started_server(container: Container, *, is_whole: bool = False) -> StartedServer | None:
    """Return the server that a container starts; None if there is no server, several servers, or an unknown server."""
    servers = started_servers(container, is_whole=is_whole)
    return servers[0] if len(servers) == 1 else None


def started_servers(container: Container, *, is_whole: bool = False) -> Sequence[StartedServer]:
    """Return the servers that a container starts, in order. A script may start several servers one after the other, at
    the same time, or in different branches. The result is empty if one of the servers is not known, or if there are
    more than four.

    Args:
        container: the container.
        is_whole: whether no controller adds arguments to the container.
    """
    catalogue = read_server_catalogue()
    by_image = _server_of_image(container) if not container.command else ""
    words = container.words
    if by_image:
        table = catalogue.flags.get(by_image)
        program = next((name for name, row in catalogue.programs.programs.items() if row.name == by_image), "")
        verb = catalogue.programs.programs[program].verb if program else ""
        words = [*filter(None, (program, verb)), *words]
        if table is None:
            return (StartedServer(name=by_image, arguments=Arguments(), variables=_known_variables(container)),)
    deadline = container.reading.deadline
    started = programs_started_by(words, container.environment, catalogue.programs, deadline)
    starts = _starts_of_servers(started)
    if not starts and (parameters := _parameters_that_script_runs(words, container)):
        words = parameters
        started = programs_started_by(words, container.environment, catalogue.programs, deadline)
        starts = _starts_of_servers(started)
    if len(starts) > _MOST_SERVERS:
        return ()
    servers = [
        _server_of_start(start, started, words, container, is_whole=is_whole, by_image=bool(by_image))
        for start in starts
    ]
    known = [server for server in servers if server is not None]
    return known if len(known) == len(servers) else ()


def _starts_of_servers(started: StartedPrograms) -> Sequence[LauncherStart]:
    """Return the servers that a command starts. If the command starts workers of Dynamo and its frontend, return only
    the workers.
    """
    starts = [start for start in started.starts if start.launcher is not None and start.launcher.name != RAY]
    workers = [start for start in starts if start.launcher and start.launcher.name != DYNAMO_FRONTEND]
    return workers or starts


def _server_of_start(
    start: LauncherStart,
    started: StartedPrograms,
    words: Sequence[str],
    container: Container,
    *,
    is_whole: bool,
    by_image: bool,
) -> StartedServer | None:
    """Return the server of one command; None if the program runs without its server, as `lmdeploy chat` does."""
    assert start.launcher is not None
    name, arguments = start.launcher.name, _with_parameters_of_script(start.arguments, words, is_whole=is_whole)
    if name == LMDEPLOY:
        if arguments[:1] != ("api_server",):
            return None
        arguments = arguments[1:]
    if name == TENSORRT_LLM and arguments[:1]:
        if arguments[0] in _OTHER_COMMANDS:
            return None
        arguments = arguments[1:] if arguments[0] == "serve" else arguments
    is_of_dynamo = container.mentions("dynamo.") and container.runs(_DYNAMO)
    flags, deadline = read_server_catalogue().flags[name], container.reading.deadline
    table = flags if is_of_dynamo else flags.of_programs
    return StartedServer(
        name=name,
        arguments=read_arguments(arguments, table, deadline, is_in_script=start.is_in_script),
        variables={**started.variables, **start.variables},
        is_in_script=start.is_in_script,
        by_image=by_image,
        is_of_dynamo=is_of_dynamo,
    )


def _with_parameters_of_script(
    arguments: Sequence[str], words: Sequence[str], *, is_whole: bool = False
) -> Sequence[str]:
    """Return arguments with `"$@"` replaced by the words after the script of `sh -c`, as the shell does. If `"$@"`
    occurs several times, the arguments stay unchanged, because the number of words could grow without a bound.
    Without words after the script, `"$@"` is empty, unless a controller may add words.
    """
    call = read_shell_call(words)
    if arguments.count("$@") != 1 or call is None or call.is_file or not (call.rest or is_whole):
        return arguments
    return [each for word in arguments for each in (call.rest[1:] if word == "$@" else (word,))]


def _parameters_that_script_runs(words: Sequence[str], container: Container) -> Sequence[str]:
    """Return the parameters of a `sh -c` script that ends with a command such as `exec "$@"`; otherwise ()."""
    call = read_shell_call(words)
    if call is None or call.is_file or len(call.rest) < 2:
        return ()
    container.charge_search(call.script)
    return call.rest[1:] if _RUNS_PARAMETERS.search(call.script) else ()


def starts_ray(container: Container) -> bool:
    """Return whether the command of a container runs `ray start`, or vLLM's script that runs `ray start`."""
    if container.runs(_RAY_SCRIPT):
        return True
    if not container.runs(_RAY_START):
        return False
    programs = read_server_catalogue().programs
    started = programs_started_by(container.words, container.environment, programs, container.reading.deadline)
    return any(start.launcher is not None and start.launcher.name == RAY for start in started.starts)


def may_start_ray(container: Container, *, is_of_group: bool) -> bool:
    """Return whether a container names a Ray cluster, starts Ray, or runs a script that may start Ray.

    In a pod of a group, any script file may join the pods to a Ray cluster.
    """
    if _RAY_ADDRESS in container.environment.names:
        return True
    if not (container.mentions("ray") or container.mentions(".sh")):
        return False
    if starts_ray(container) or container.runs(_RAY_CLUSTER):
        return True
    return is_of_group and container.runs(_SHELL_FILE)


def _known_variables(container: Container) -> Mapping[str, str]:
    return {name: value for name, value in container.environment.by_name().items() if value is not None}


def release_of_vllm(container: Container) -> tuple[int, int, int] | None:
    """Return the release of vLLM in an image that the vLLM project publishes; None if the release is not known."""
    container.charge_search(container.image)
    image = parse_image_name(container.image)
    match = _RELEASE.fullmatch(image.tag) if _VLLM_IMAGES.fullmatch(image.short_name) else None
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


def _server_of_image(container: Container) -> str:
    """Return the server that the entrypoint of an image starts; "" if the server is not known."""
    container.charge_search(container.image)
    name = parse_image_name(container.image).short_name
    if _NIM_IMAGE.fullmatch(name):
        return NIM
    if _LLAMA_IMAGE.fullmatch(container.image):
        return LLAMA
    images = read_server_catalogue().images
    return next((server for server, pattern in images.items() if pattern.fullmatch(name)), "")
