"""A folder with hostile files, as in a repository. They leave a mark when Python, pip or a shell runs them."""

from __future__ import annotations

from pathlib import Path

MODULES = (
    *(
        "venv",
        "pip",
        "ensurepip",
        "setuptools",
        "hatchling",
        "virtualenv",
        "sitecustomize",
        "usercustomize",
        "site",
        "setup",
    ),
    *("conftest", "yaml", "typer", "click", "rich", "msgspec", "pydantic", "re2", "webhook", "claimgate", "certs"),
    *("json", "re", "os", "subprocess", "tempfile", "multiprocessing", "concurrent", "logging", "typing", "__main__"),
)
PROGRAMS = ("python", "python3", "pip", "claimgate", "kubectl", "git", "bash", "sh")


def fill(folder: Path, mark: Path) -> None:
    """Write hostile files. Each file that is run appends its name to `mark`."""
    code = f"with open({str(mark)!r}, 'a') as mark:\n    mark.write(__file__ + '\\n')\n"
    for name in MODULES:
        (folder / f"{name}.py").write_text(code)
    program = f'#!/bin/sh\necho "$0" >> {mark}\n'
    for below in (".", "bin", ".claimgate/bin", "claimgate/bin", ".venv/bin"):
        (folder / below).mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS if below != "." else ("python", "pip"):
            (folder / below / name).write_text(program)
            (folder / below / name).chmod(0o755)
    line = f"import pathlib; pathlib.Path({str(mark)!r}).write_text('a .pth')\n"
    (folder / "hostile.pth").write_text(line)
    (folder / "pyvenv.cfg").write_text(f"home = {folder}/bin\ninclude-system-site-packages = false\n")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
    )
    (folder / "setup.cfg").write_text("[metadata]\nname = claimgate\n")
    (folder / "requirements.txt").write_text("./\n")
    for name in ("pip.conf", "pip.ini", ".pip/pip.conf", ".config/pip/pip.conf"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"[global]\npython = {folder}/python\nfind-links = {folder}\nno-index = true\n")
    for name in (".bashrc", ".profile", ".envrc", ".bash_profile"):
        (folder / name).write_text(program)
