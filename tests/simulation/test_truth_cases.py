"""What `claimgate simulate` says of jobs in clusters where several things are wrong or unknown, in
tests/data/simulation/truths.yaml.

`python -m tests.simulation.test_truth_cases` names the wrong cases.
"""

import json
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from webhook.cli import run_command_line
from webhook.yamltext import yamlfile

FILE = Path(__file__).parents[1] / "data" / "simulation" / "truths.yaml"
[_DOCUMENT] = yamlfile.read(FILE)
SHARED, CASES = _DOCUMENT.value["shared"], _DOCUMENT.value["cases"]


def run(*arguments):
    """Return the standard output of `claimgate simulate`."""
    output = StringIO()
    with redirect_stdout(output), redirect_stderr(StringIO()):
        run_command_line(["simulate", *map(str, arguments)])
    return output.getvalue()


def mistakes_of_answer(case, folder):
    """Return what is wrong with the answer about the job of a case."""
    job, *others = case["objects"]
    cluster = [obj for each in others for obj in (SHARED[each] if isinstance(each, str) else [each])]
    (folder / "job.yaml").write_text(yamlfile.dump(job))
    (folder / "cluster.yaml").write_text("---\n".join(map(yamlfile.dump, cluster)))
    context = ["--context", folder / "cluster.yaml"] if cluster else []
    context += [] if case.get("partial") else ["--context-is-whole"]
    [told] = json.loads(run(folder / "job.yaml", *context, "-o", "json"))
    text = " ".join(run(folder / "job.yaml", *context).split())
    if told["answer"] not in case["answer"]:
        yield f"answers {told['answer']}, not {' or '.join(case['answer'])}: {text}"
    yield from (f"does not say `{words}`: {text}" for words in case.get("says", ()) if words not in text)
    yield from (f"says `{words}`: {text}" for words in case.get("silent", ()) if words in text)


@pytest.mark.parametrize("case", CASES, ids=[each["case"] for each in CASES])
def test_simulate_never_says_more_than_it_knows(case, tmp_path):
    assert [*mistakes_of_answer(case, tmp_path)] == [], f"see the case in {FILE.name}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        wrong = [(each["case"], [*mistakes_of_answer(each, Path(name))]) for each in CASES]
    wrong = [(name, mistakes) for name, mistakes in wrong if mistakes]
    sys.stdout.write(f"{len(CASES) - len(wrong)} of {len(CASES)}\n")
    sys.stdout.writelines(f"{name}: {mistake}\n" for name, mistakes in wrong for mistake in mistakes)
