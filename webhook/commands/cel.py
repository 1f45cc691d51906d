"""`claimgate cel`: evaluates one expression, starts a prompt, or runs a corpus of expressions with known answers.

Each key of the bindings is a variable of type dyn. `Object{…}` and `JSONPatch{…}` are available as in mutating
policies.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from webhook.apimachinery.attributes import JSON
from webhook.cel import CostMeter, Engine, Environment, celpy_engine, compiled_engine, corpus, typed_json
from webhook.cel.types import DYN
from webhook.cel.values import to_json
from webhook.commands import options, output
from webhook.commands.options import complete_output
from webhook.errors import CompileError, ConfigurationError, EvaluationError, InputError, InputProblem
from webhook.settings.shared import Settings
from webhook.text import terminal
from webhook.yamltext import yamlfile

FORMATS = ("text", "json")
_FAILED, _REFUSED = 1, 2
_FAREWELLS = frozenset({"exit", "quit", ":q"})


@options.add_settings_flags(Settings, "cel_engine", "kubernetes_version")
def command(
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPRESSION", help="The expression; without one, a prompt on a terminal.")
    ] = None,
    *,
    bindings: Annotated[
        str | None,
        typer.Option(metavar="FILE|-", help="A YAML or JSON object: each of its keys becomes a variable."),
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option(metavar="FILE.jsonl", help="Run a corpus of expressions and print each wrong result."),
    ] = None,
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT[=FILE]",
            help="text or json; repeatable.",
            autocompletion=complete_output(*FORMATS),
        ),
    ] = None,
    settings: Settings,
) -> int:
    """Evaluate a CEL expression as kube-apiserver would, and print its value, type and cost.

    Without an expression, starts a prompt on a terminal. Exits with 0 if there is a value, and with 1 if the expression
    fails or a row of --cases is wrong. Exits with 2 if the expression or an input is refused.
    """
    outputs = output.parse_outputs(chosen, FORMATS)
    engine = celpy_engine() if settings.cel_engine == "celpy" else compiled_engine()
    if cases is not None:
        if expression is not None or bindings is not None:
            raise ConfigurationError(
                "--cases: a corpus has its own expressions and bindings: leave out EXPRESSION and --bindings"
            )
        return _run_cases(cases, engine, outputs)
    variables = _read_bindings(bindings)
    environment = Environment(
        version=settings.kubernetes_version, variables=dict.fromkeys(variables, DYN), mutation=True
    )
    if expression is None:
        if bindings == "-" or not sys.stdin.isatty():
            raise ConfigurationError(
                "an expression is required: give it as an argument, use --cases FILE, or start a prompt on a terminal"
            )
        return _prompt_for_expressions(lambda text: _evaluate_expression(text, environment, variables, engine))
    answer = _evaluate_expression(expression, environment, variables, engine)
    output.write_to_outputs(
        outputs, {"text": lambda: _answer_as_text(answer) + "\n", "json": lambda: json.dumps(answer) + "\n"}
    )
    return _exit_code_of_answer(answer)


def _exit_code_of_answer(answer: Mapping[str, JSON]) -> int:
    if "error" not in answer:
        return 0
    return _REFUSED if answer["phase"] == "compile" else _FAILED


def _read_bindings(file: str | None) -> Mapping[str, JSON]:
    if file is None:
        return {}
    documents = yamlfile.read(file)
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise InputError(InputProblem(message="must be one object with the names of variables as keys", file=file))
    return documents[0].value


def _evaluate_expression(
    text: str, environment: Environment, variables: Mapping[str, Any], engine: Engine
) -> dict[str, JSON]:
    meter = CostMeter()
    try:
        program = engine.compile(text, environment)
    except CompileError as error:
        return {"error": str(error), "phase": "compile"}
    try:
        value = program.evaluate(variables, meter)
    except EvaluationError as error:
        return {"error": str(error), "phase": "runtime", "type": str(program.result), "cost": meter.spent}
    answer = {"value": _value_as_plain_json(value), "typed": typed_json.encode_value(value)}
    return {**answer, "type": str(program.result), "cost": meter.spent}


def _value_as_plain_json(value: Any) -> JSON:
    """Return the value as plain JSON, or its text if JSON cannot represent it."""
    try:
        plain = to_json(value)
        json.dumps(plain, allow_nan=False)
    except (EvaluationError, TypeError, ValueError):
        return str(value)
    return plain


def _answer_as_text(answer: Mapping[str, JSON]) -> str:
    if answer.get("phase") == "compile":
        return "\n".join(map(terminal.one_line, str(answer["error"]).split("\n")))
    value = json.dumps(answer.get("value"), ensure_ascii=False)
    first = terminal.one_line(f"error: {answer['error']}") if "error" in answer else terminal.escape_json_text(value)
    return f"{first}\ntype: {answer['type']}\ncost: {answer['cost']}"


def _run_cases(file: Path, engine: Engine, outputs: tuple[output.Output, ...]) -> int:
    counters = corpus.OutcomeCounters()
    for outcome in corpus.evaluate_rows(corpus.read_rows(file), engine):
        counters.count_outcome(outcome)
    writers = {"text": lambda: _report_of_counters(counters), "json": lambda: json.dumps(counters.to_json()) + "\n"}
    output.write_to_outputs(outputs, writers)
    return 1 if counters.failed else 0


def _report_of_counters(counters: corpus.OutcomeCounters) -> str:
    lines = [
        line
        for each in counters.failed
        for line in (
            f"{each.id}: {each.expression}",
            f"  expected {each.expected}",
            *_lines_of_found_value(each.actual),
        )
    ]
    lines.append(
        f"{counters.passed} of {counters.total} passed, {counters.cost_equal} of {counters.cost_rows} costs equal"
    )
    return terminal.lines(lines)


def _lines_of_found_value(text: str) -> list[str]:
    first, *rest = text.split("\n")
    return [f"  found    {first}", *(f"           {line}" for line in rest)]


def _prompt_for_expressions(evaluate: Callable[[str], Mapping[str, JSON]]) -> int:
    history = _load_prompt_history()
    sys.stderr.write("an expression per line; exit with Ctrl-D\n")
    try:
        while True:
            line = input("cel> ").strip()
            if line in _FAREWELLS:
                break
            if line:
                typer.echo(_answer_as_text(evaluate(line)))
    except EOFError:
        typer.echo()
    finally:
        history()
    return 0


def _load_prompt_history() -> Callable[[], None]:
    """Load the history if the platform has readline. Return the function that saves the history."""
    try:
        import readline
    except ImportError:
        return lambda: None
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "claimgate" / "cel-history"
    with suppress(OSError):
        readline.read_history_file(file)

    def save() -> None:
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(1000)
            readline.write_history_file(file)

    return save
