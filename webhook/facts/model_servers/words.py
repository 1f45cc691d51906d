"""Words of a command that the server reads differently than intended.

An item of `args` is one word. Only a shell expands `$NAME`; the kubelet expands `$(NAME)`. Words after the script of
`sh -c` are the parameters of the script.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise, takewhile
from typing import Final

from webhook.apimachinery.attributes import JSON
from webhook.apimachinery.paths import FieldPath
from webhook.deadline import Deadline
from webhook.facts.command_lines.shell import read_shell_call
from webhook.facts.model_servers.refused_arguments import problem_of_refused_arguments
from webhook.facts.model_servers.server_candidates import MODEL_SERVER
from webhook.facts.model_servers.started_servers import TGI, VLLM, StartedServer, release_of_vllm
from webhook.facts.model_servers.vllm import has_known_flags
from webhook.rules.problem import Problem
from webhook.text.wording import counted, some_of
from webhook.typed.pods import Container, PodSpec

JOINED_FLAG: Final = MODEL_SERVER.rule(
    "model-server/joined-flag",
    title="A flag and its value are in one item of args",
    why="One item of args is one argument. No flag contains a space, so the server does not know the argument.",
    refused_by="the server, when it starts",
    source="https://github.com/vllm-project/vllm/issues/22072",
)
NOT_EXPANDED: Final = MODEL_SERVER.rule(
    "model-server/not-expanded",
    title="An argument contains a variable that nothing expands",
    why="Kubernetes expands only $(NAME), if the container has the variable. Other text reaches the server unchanged.",
    refused_by="the server, when it starts",
    source="https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/",
)
COMMAND_IN_ONE_WORD: Final = MODEL_SERVER.rule(
    "model-server/command-in-one-word",
    title="A command and its arguments are in one item",
    why=(
        "The first item of a command is the name of a program. A shell without -c reads its first argument as the "
        "name of a file. No program and no file has this whole line as its name."
    ),
    refused_by="the container runtime or the shell, when the container starts",
    source="https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/",
)
WORDS_AFTER_SCRIPT: Final = MODEL_SERVER.rule(
    "model-server/words-after-script",
    title="Arguments after the script of a shell are lost",
    why="A shell reads the one argument after -c as its script. Later arguments become $0, $1 and so on.",
    source="POSIX.1-2024 sh",
    fails="silent",
)
COMMAND_TWICE: Final = MODEL_SERVER.rule(
    "model-server/command-twice",
    title="The arguments repeat the entrypoint of the image",
    why="The image already starts the server, which then reads its own name as an argument.",
    refused_by="the server, when it starts",
    source="vllm-project/vllm docker/Dockerfile",
)
UNKNOWN_FLAG: Final = MODEL_SERVER.rule(
    "model-server/unknown-flag",
    title="A model server does not know a flag",
    why="The server prints its flags and exits before it loads a model.",
    source="vllm-project/vllm vllm/engine/arg_utils.py; PyPI sglang 0.5.23 sglang/srt/server_args.py",
    level="advice",
    fails="start",
)
SWITCH_WITH_VALUE: Final = MODEL_SERVER.rule(
    "model-server/switch-with-value",
    title="A flag that accepts no value has a value",
    why="The server's parser refuses any value of this flag, also true and false.",
    refused_by="the server, when it starts",
    source="https://docs.python.org/3/library/argparse.html#action; vllm-project/vllm vllm/engine/arg_utils.py",
)
CLIENT_BEFORE_SERVER: Final = MODEL_SERVER.rule(
    "model-server/client-before-server",
    title="A command needs the server that the same script starts later",
    why="The command of Ollama's client fails if no server runs, so the script ends before it starts the server.",
    refused_by="Ollama's client, when the container starts",
    source="ollama/ollama cmd/cmd.go",
    function="checkServerHeartbeat",
)
_SHELL_VARIABLE: Final = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*(?:[:#%/+=?-][^{}]*)?\}")
_VARIABLE_INSIDE: Final = re.compile(r"(?<!\$)\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)|\A\$([A-Za-z_][A-Za-z0-9_]*)\Z")
"""A variable in a field where no shell runs. Tools such as envsubst and Flux replace it before a file is applied."""
_WITH_SCRIPTS: Final = frozenset(("command", "args", "annotations", "entrypoint"))
"""Fields that may be scripts. There, a variable does not show a template."""
_OF_RUNTIME: Final = frozenset(("HOSTNAME", "HOME", "PATH", "PWD", "USER"))
"""Variables that the container runtime, the image or a shell sets."""
_ESCAPED: Final = re.compile(r"\$\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
"""A variable that the kubelet does not expand, because $$ is its escape for $."""
_KUBELET_VARIABLE: Final = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_OF_OTHERS: Final = re.compile(
    r"_(?:SERVICE|PORT)(?:_|$)|^(?:LWS|JOB|RAY|KUBERNETES|GROVE|POD|MY|NODE|HOST)_|RANK|INDEX|WORLD|MASTER"
)
"""Names of variables that Services, controllers or webhooks may set."""
_SUBSTITUTION: Final = re.compile(r"\$\([A-Za-z0-9_.-]*[^A-Za-z0-9_.)-]|`[^`]")
"""The beginning of a shell's command substitution. $(NAME) is a variable instead, which the kubelet expands."""
_PROGRAMS: Final = frozenset(
    ("vllm", "sglang", "python", "python3", "text-generation-launcher", "trtllm-serve", "lmdeploy")
)
"""Programs that need arguments. A script that is only the name of such a program has lost its arguments."""
_NAMES_OF_SCRIPTS: Final = frozenset(("--", "_", "sh", "bash"))
"""The usual values of $0 of a script."""
_PARAMETERS: Final = re.compile(r"\$\{?[@*0-9]|\bshift\b|\bgetopts\b")
_SHELLS_AND_PYTHON: Final = frozenset(("python", "python3", "bash", "sh", "/bin/sh", "/bin/bash"))
_TWICE: Final = {
    VLLM: _SHELLS_AND_PYTHON | {"vllm", "serve"},
    TGI: _SHELLS_AND_PYTHON | {"text-generation-launcher"},
}
"""For each server, first arguments that repeat the entrypoint of its image or look like a command."""
_BEGINNINGS: Final = {
    **dict.fromkeys(("vllm", "sglang", "lmdeploy"), ("serve",)),
    **dict.fromkeys(("python", "python3"), ("-m",)),
    "-m": ("vllm.entrypoints.openai.api_server", "sglang.launch_server", "dynamo.vllm", "dynamo.sglang"),
}
"""The words that may follow a word at the beginning of a command."""
_HAS_BLANK_IN_PATH: Final = re.compile(r"[A-Za-z]:\\|/\S{1,200} \w[\w-]{0,200}/[\w/-]{0,200}(?:\s|\Z)")
"""The path of a program with a blank in the name of a folder, or a path of Windows, which often has blanks. A file that
a program runs, such as `app/main.py`, has a dot.
"""
_MOST_BEGINNING: Final = 8
_LONGEST_SHOWN: Final = 80
_MOST_NAMED: Final = 4
_OF_OLLAMA: Final = re.compile(r"(?:exec )?(?:/usr(?:/local)?)?(?:/bin/)?ollama ([a-z]+)(?: .*)?")
_CLIENT_OF_OLLAMA: Final = frozenset(("create", "pull", "push", "run", "show", "list", "ls", "ps", "cp", "rm", "stop"))
_OTHER_OPERATORS: Final = re.compile(r"\||<<|(?<![&>])&(?![&>])|[{}()]|\b(?:if|for|while|until|case|trap)\b")
"""Signs of a script in which commands do not simply follow each other."""
_ENDS_ON_ERROR: Final = re.compile(r"\s*set -[a-df-z]{0,9}e")
_OLLAMA_HOST: Final = "OLLAMA_HOST"
_OWN_ADDRESSES: Final = ("0.0.0.0", "127.0.0.1", "localhost", ":", "http://0.0.0.0", "http://127.0.0.1")  # noqa: S104
_OFF: Final = frozenset(("false", "0", "no", "off"))
"""Values with which people turn a switch off."""


def check_words_of_command(
    container: Container, server: StartedServer | None, path: FieldPath, obj: JSON
) -> Iterator[Problem]:
    """Report words that are read differently than intended, in a container with a model server.

    If a field of the object `obj` has a variable where no shell runs, the file is a template, and variables are not
    reported.
    """
    yield from _check_first_word(container, path)
    yield from _check_words_after_script(container, path)
    yield from _check_joined_beginning(container, path)
    if server is None:
        return
    yield from _check_repeated_entrypoint(container, server, path)
    for word in [each for each in server.arguments.joined[:1] if "{{" not in each]:
        flag, _, value = word.partition(" ")
        message = f"`{_shortened(word)}` is one argument, which {server.name} does not know"
        has_more = any(each.startswith("-") for each in value.split()[1:])
        items = f"two items, {flag} and {_shortened(value.strip().lstrip('= '))}, or use ="
        fix = "write each flag and each value as a separate item" if has_more else f"write {items}"
        if not flag.strip("-"):
            flag, fix = word, f"write {flag}{_shortened(value.lstrip())}"
        yield _problem_of_joined_words(path, message, fix, flag)
    if not server.is_in_script:
        yield from _check_unexpanded(container, path, obj)
    is_known = server.name == VLLM and not server.is_in_script and has_known_flags(release_of_vllm(container))
    for flag, fix in server.arguments.mistaken.items():
        message = f"{server.name} does not know the flag {flag}"
        if is_known:
            yield problem_of_refused_arguments(path, message, fix, (flag,))
        else:
            yield UNKNOWN_FLAG.problem(path, message, fix, words=(flag,))
    yield from _check_valued_switches(server, path)
    for flag in server.arguments.ambiguous[:1]:
        message = f"{flag} is the beginning of several flags, so {server.name} refuses {flag}"
        yield UNKNOWN_FLAG.problem(path, message, "write the whole name of the flag", words=(flag,))


def _check_valued_switches(server: StartedServer, path: FieldPath) -> Iterator[Problem]:
    """Report all switches with values in one problem. Dynamo may ignore words that its parser does not know."""
    switches = server.arguments.valued_switches
    words = [word for word in switches if " " not in word] if server.is_of_dynamo else switches
    if not words:
        return
    flag, _, value = words[0].replace(" ", "=", 1).partition("=")
    is_off = value.strip("\"'").lower() in _OFF
    if len(words) == 1:
        message = f"`{_shortened(words[0])}` gives a value to a flag that accepts none, so {server.name} exits"
        fix = f"remove {flag}" if is_off else f"write {flag} without a value, or remove {flag}"
    else:
        written = some_of([f"`{_shortened(word)}`" for word in words], _MOST_NAMED)
        message = f"{written} give values to flags that accept none, so {server.name} exits"
        fix = "write each flag without a value, or remove the flag"
    yield SWITCH_WITH_VALUE.problem(path, message, fix, words=tuple(word.partition(" ")[0] for word in words))


def _check_first_word(container: Container, path: FieldPath) -> Iterator[Problem]:
    first = container.command[0] if container.command else ""
    if first.startswith("-"):
        message = f"has a command that begins with the flag `{_shortened(first)}`, which is not a program"
        yield _problem_of_command(path, message, "move the flags to args, which follow the image's entrypoint")
    elif len(first.split(maxsplit=1)) > 1 and "{{" not in first and not _HAS_BLANK_IN_PATH.match(first):
        message = (
            f"has the command `{_shortened(first)}` in one item, so the container looks for a program with this whole "
            "name"
        )
        yield _problem_of_command(path, message, "write each word of the command as a separate item")
    elif (call := read_shell_call(container.words)) is not None and call.is_file:
        file = call.script
        if len(file.split(maxsplit=1)) > 1 and "{{" not in file and not file.startswith("/"):
            message = f"runs `{first}` without -c, so the shell looks for a file named `{_shortened(file)}`"
            yield _problem_of_command(path, message, "add -c before the script")


def _problem_of_command(path: FieldPath, message: str, fix: str) -> Problem:
    return COMMAND_IN_ONE_WORD.problem(path, message, fix)


def _check_joined_beginning(container: Container, path: FieldPath) -> Iterator[Problem]:
    """Report a verb or a module that is joined with the next word, such as `serve /m` after `vllm`."""
    if container.command_line.count(" ") < len(container.words):
        return  # no word contains a space
    for before, word in pairwise(container.words[:_MOST_BEGINNING]):
        first, blank, rest = word.partition(" ")
        if blank and first in _BEGINNINGS.get(before.rpartition("/")[2], ()) and "{{" not in word:
            message = f"`{_shortened(word)}` is one argument, which {before} does not know"
            fix = f"write separate items, {first} and {_shortened(rest.split(' ')[0])} …"
            yield _problem_of_joined_words(path, message, fix, first)


def _problem_of_joined_words(path: FieldPath, message: str, fix: str, flag: str) -> Problem:
    return JOINED_FLAG.problem(path, message, fix, words=(flag,))


def _check_words_after_script(container: Container, path: FieldPath) -> Iterator[Problem]:
    call = read_shell_call(container.words)
    if call is None or call.is_file or not call.rest:
        return
    beginning, script, _, rest = call
    container.charge_search(script)
    is_one_program = script in _PROGRAMS and not (set(rest[:1]) & _NAMES_OF_SCRIPTS)
    has_flags = any(word.startswith("-") and word != "--" for word in rest)
    if _PARAMETERS.search(script) or not (is_one_program or has_flags):
        return
    message = f"passes {_shortened(' '.join(rest[:3]))} after the script of `{' '.join(beginning)}`, which ignores them"
    fix = 'write the words into the script, or end the script with "$@" and add the item -- after the script'
    yield WORDS_AFTER_SCRIPT.problem(path, message, fix)


def _check_repeated_entrypoint(container: Container, server: StartedServer, path: FieldPath) -> Iterator[Problem]:
    first = container.args[0] if server.by_image and container.args else ""
    if first in _TWICE.get(server.name, ()):
        message = f"begins args with `{first}`, but the image already starts {server.name} with args as its arguments"
        repeated = " ".join(takewhile(lambda word: word in _TWICE[server.name], container.args[:2]))
        is_other_program = first in _SHELLS_AND_PYTHON
        fix = "move all words from args to command" if is_other_program else f"remove `{repeated}` from args"
        yield COMMAND_TWICE.problem(path, message, fix)


def _check_unexpanded(container: Container, path: FieldPath, obj: JSON) -> Iterator[Problem]:
    """Report the first shell variable that the server would get as text, and the number of further variables.

    If the container lacks the variable, a tool such as envsubst or Flux may replace the text before the file is
    applied.
    """
    if not (container.mentions("$") or container.mentions("`")):
        return
    unexpanded: list[tuple[str, str]] = []
    names = frozenset(container.environment.names)
    for before, word in pairwise(("", *container.reading.deadline.charge_for_items(container.words))):
        flag, equals, value = word.partition("=") if word.startswith("-") else (before, "", word)
        if equals == "" and word.startswith("-"):
            continue
        is_short = len(value) < _LONGEST_SHOWN
        is_substitution = is_short and "{" not in value and _SUBSTITUTION.search(value)
        inside = _VARIABLE_INSIDE.search(value) if is_short and "$" in value else None
        names_variable = inside is not None and (inside[1] or inside[2]) in names
        escaped = _ESCAPED.search(value) if is_short and "$$" in value else None
        if escaped is not None and escaped[1] in names:
            meant = value.replace(escaped[0], escaped[0][1:])
            message = f"passes the text `{_shortened(meant)}`, because Kubernetes reads $$ as an escaped $"
            yield _not_expanded_problem(path, message, f"write {_shortened(meant)}", word)
            return
        if is_substitution or names_variable or _SHELL_VARIABLE.fullmatch(value):
            unexpanded.append((flag, value))
    if not unexpanded or _is_template(obj, names, container.reading.deadline):
        return
    (flag, value), others = unexpanded[0], len(unexpanded) - 1
    inside = _VARIABLE_INSIDE.search(value)
    fix = f"write $({inside[1] or inside[2]})" if inside else "run the command in a shell"
    may_be_replaced = _may_be_replaced(value, names) and not container.env_from
    if may_be_replaced and inside:
        fix = f"{fix}, and set {inside[1] or inside[2]} in env"
    to = f" to {_shortened(flag)}" if flag.startswith("-") else ""
    more = f" and to {counted(others, 'other flag')}" if others else ""
    unless = ", unless a tool such as envsubst does" if may_be_replaced else ""
    message = f"passes the text `{_shortened(value)}`{to}{more}, because no shell expands the variable{unless}"
    yield _not_expanded_problem(path, message, fix, value, is_conditional=may_be_replaced)


def _may_be_replaced(value: str, names: Collection[str]) -> bool:
    """Return whether a tool may replace a text before the manifest is applied. The text is then a variable that neither
    the container nor a controller sets.
    """
    variable = _SHELL_VARIABLE.fullmatch(value)
    if variable is None:
        return False
    name = _NAME.search(value)
    return name is not None and name[0] not in names and not (_OF_OTHERS.search(name[0]) or name[0] in _OF_RUNTIME)


def _is_template(obj: JSON, names: Collection[str], deadline: Deadline) -> bool:
    """Return whether a field outside of commands and annotations has a variable, as in `replicas: ${REPLICAS}`.

    A variable with one of `names`, the variables of the container, does not show a template.
    """
    stack = [obj]
    while stack:
        value = stack.pop()
        deadline.spend(1)
        if isinstance(value, dict):
            stack += [each for key, each in value.items() if key not in _WITH_SCRIPTS]
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, str) and "$" in value:
            deadline.spend_text(value)
            variable = _PLACEHOLDER.search(value)
            if variable is not None and (variable[1] or variable[2]) not in names:
                return True
    return False


def check_undefined_variables(container: Container, server: StartedServer | None, path: FieldPath) -> Iterator[Problem]:
    """Report a variable that stays text because the container has no variable of this name.

    Names of variables that Services and controllers set are not reported.
    """
    if server is None or server.is_in_script or container.env_from or container.is_omitted("env"):
        return
    if not container.mentions("$("):
        return
    names = frozenset(container.environment.names)
    for word in container.reading.deadline.charge_for_items(container.words):
        inside = _KUBELET_VARIABLE.search(word) if len(word) < _LONGEST_SHOWN else None
        if inside is not None and inside[1] not in names and not _OF_OTHERS.search(inside[1]):
            message = f"passes the text `{_shortened(word)}` because the container has no variable {inside[1]}"
            yield _not_expanded_problem(path, message, f"set {inside[1]} in env, or write the value", word)
            return


def _not_expanded_problem(
    path: FieldPath, message: str, fix: str, word: str, *, is_conditional: bool = False
) -> Problem:
    return NOT_EXPANDED.problem(path, message, fix, words=(word,), is_conditional=is_conditional)


def check_client_before_server(container: Container, spec: PodSpec, path: FieldPath) -> Iterator[Problem]:
    """Report a command of Ollama's client before `ollama serve`, if the script ends when the command fails."""
    call = read_shell_call(container.words)
    if call is None or call.is_file:
        return
    script = call.script.replace("\\\n", " ")
    container.charge_search(script)
    host = container.environment.by_name().get(_OLLAMA_HOST)
    if _OLLAMA_HOST in container.environment.names and not (host or "").startswith(_OWN_ADDRESSES):
        return
    others = (each for each in spec.running_containers() if each.name != container.name)
    if container.env_from or _OLLAMA_HOST in script or any("ollama" in each.image for each in others):
        return
    ends_on_error = _ENDS_ON_ERROR.match(script) is not None
    if _OTHER_OPERATORS.search(script) or (not ends_on_error and any(each in script.strip() for each in ";\n")):
        return
    client = ""
    for command in re.split(r"&&|[;\n]", script):
        started = _OF_OLLAMA.fullmatch(command.strip())
        if started is not None and started[1] == "serve":
            if client:
                message = f"runs `{client}` before `ollama serve`, so the client finds no server and the script ends"
                fix = f"start the server first: ollama serve & sleep 5; {client} …; wait"
                yield CLIENT_BEFORE_SERVER.problem(path, message, fix, words=(client,))
            return
        if started is not None and started[1] in _CLIENT_OF_OLLAMA:
            client = client or f"ollama {started[1]}"


def _shortened(text: str) -> str:
    """Return a text, cut to the length for messages."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
