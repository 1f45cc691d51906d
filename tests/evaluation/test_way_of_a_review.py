"""A reader follows the way of one plain Pod through few modules, functions and frames."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.bench.count_calls import counted, plain_pod
from webhook.apimachinery.attributes import Phase

EVALUATION = Path(__file__).parents[2] / "webhook" / "evaluation"
MOST_MODULES, MOST_FUNCTIONS, MOST_FRAMES, MOST_PARAMETERS = 45, 125, 8, 8
TO_DO = (
    "let the new step be a part of the function that calls it, or compute it only where a policy asks for it;"
    " `python -m tests.bench.count_calls` prints the figures, `sys.setprofile` shows the functions"
)


def test_a_plain_pod_passes_through_few_modules_and_functions() -> None:
    counts = counted(plain_pod(Phase.VALIDATE))
    assert len(counts.modules) <= MOST_MODULES, TO_DO
    assert len(counts.functions) <= MOST_FUNCTIONS, TO_DO


def test_the_first_check_is_few_frames_below_the_core() -> None:
    assert 0 < counted(plain_pod(Phase.VALIDATE)).frames <= MOST_FRAMES, TO_DO


def functions_with_too_many_parameters() -> Iterator[str]:
    for path in sorted(EVALUATION.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                if len(named) > MOST_PARAMETERS or arguments.kwarg:
                    yield f"{path.name}: {node.name}"


def test_no_function_of_evaluation_has_many_parameters() -> None:
    found = [*functions_with_too_many_parameters()]
    assert found == [], "pass a dataclass with a name, such as Invocation or RequestContext"
