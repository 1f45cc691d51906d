"""Executes the steps of a Dockerfile in clean roots, without a builder and a registry.

The base images are simulated. Each root has the machine's own `/usr` and the interpreter of the tests, read-only, and a
small `/etc`. So the steps and their result are tested, and not the base image. Needs root and Linux's mount namespaces.
Mounts end with the process that made them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

OF_BASE = ("usr", "bin", "sbin", "lib", "lib32", "lib64")
"""The parts of the machine in a root, if they exist"""
OF_ETC = ("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf", "ld.so.cache", "pip.conf", "ssl")
PYTHON = Path(sys.base_prefix)
"""The path of the interpreter, also in the roots. The interpreter finds its libraries by this path."""
_REACHES = re.compile(r"PIP_(?!FIND_LINKS)|SSL_CERT_FILE|(HTTPS?|NO)_PROXY", re.IGNORECASE)
"""Variables of this machine by which pip finds packages."""


def missing() -> str:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux, to give a process its own root"
    if not (PYTHON / "bin" / "python").exists():
        return f"needs an interpreter named python, but {PYTHON}/bin has none"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False, capture_output=True)
    return "" if tried.returncode == 0 else f"needs mount namespaces: {tried.stderr.decode().strip()}"


@dataclass(slots=True)
class Stage:
    """The root folder of a stage of the Dockerfile, and the settings of previous steps for processes in this root."""

    root: Path
    workdir: str = "/"
    user: str = "0:0"
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": f"{PYTHON / 'bin'}:/usr/bin:/bin"})
    labels: dict[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    def inside(self, path: str) -> Path:
        return self.root / str(Path("/", self.workdir, path)).lstrip("/")

    def command(
        self, arguments: Sequence[str], *, read_only: bool = False, mounts: Mapping[Path, str] | None = None
    ) -> list[str]:
        """Return a command that runs the arguments in the root, as the image's user. `mounts` are read-only, like the
        mounts of Secrets.
        """
        root = shlex.quote(str(self.root))
        lines = ["set -e", f"mount --bind {root} {root}"]
        for name in OF_BASE:
            if Path(f"/{name}").is_dir() and not Path(f"/{name}").is_symlink():
                lines += [f"mount --rbind /{name} {root}/{name}", f"mount -o remount,bind,ro {root}/{name}"]
        if PYTHON.parts[1] not in OF_BASE:
            inside = shlex.quote(f"{self.root}{PYTHON}")
            lines += [f"mount --bind {shlex.quote(str(PYTHON))} {inside}", f"mount -o remount,bind,ro {inside}"]
        lines += [f"mount --rbind /dev {root}/dev", f"mount -t proc proc {root}/proc"]
        for source, target in (mounts or {}).items():
            lines += [f"mkdir -p {root}{target}", f"mount --bind {shlex.quote(str(source))} {root}{target}"]
            lines += [f"mount -o remount,bind,ro {root}{target}"]
        if read_only:
            lines.append(f"mount -o remount,bind,ro {root}")
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        there = [
            "env",
            "-i",
            *environment,
            "sh",
            "-c",
            f"cd {shlex.quote(self.workdir)} && exec {shlex.join(arguments)}",
        ]
        as_user = ["chroot", f"--userspec={self.user}", "--groups=", str(self.root), *there]
        lines.append(f"exec {shlex.join(as_user)}")
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", "\n".join(lines)]


def build(dockerfile: Path, folder: Path, arguments: Mapping[str, str] | None = None) -> Stage:
    """Execute every step of a Dockerfile, and return its last stage. Each stage has a root below `folder`.

    Raises:
        ValueError: an unknown instruction.
        RuntimeError: a command failed.
    """
    context = dockerfile.parent
    given = dict(arguments or {})
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for word, rest in instructions(dockerfile.read_text()):
        if word == "ARG":
            name, _, default = rest.partition("=")
            given.setdefault(name, default)
        elif word == "FROM":
            name = rest.partition(" AS ")[2] or str(len(stages))
            stage = stages[name] = Stage(_root(folder / name))
        else:
            assert stage is not None, f"{word} comes before FROM"
            _step(word, rest, stage, stages, context, given)
    assert stage is not None
    return stage


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Dockerfile. Continued lines are joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for line in re.sub(r"\\\n\s*", "", lines).splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def _step(
    word: str, rest: str, stage: Stage, stages: Mapping[str, Stage], context: Path, given: dict[str, str]
) -> None:
    if word == "RUN":
        reaches = {name: value for name, value in os.environ.items() if _REACHES.match(name)}
        builder = Stage(stage.root, stage.workdir, "0:0", {**reaches, **stage.environment})
        done = subprocess.run(builder.command(["sh", "-c", rest]), check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"RUN {rest}: ended with {done.returncode}\n{done.stdout}{done.stderr}")
    elif word == "COPY":
        _copy(shlex.split(rest), stage, stages, context)
    elif word == "WORKDIR":
        stage.workdir = rest
        stage.inside(".").mkdir(parents=True, exist_ok=True)
    elif word == "ENV":
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            stage.environment[name] = value.replace("$PATH", stage.environment["PATH"])
    elif word == "LABEL":
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            stage.labels[name] = re.sub(r"\$\{(\w+)\}", lambda match: given[match[1]], value)
    elif word == "USER":
        stage.user = rest
    elif word in ("ENTRYPOINT", "CMD"):
        words = tuple(re.findall(r'"([^"]*)"', rest))
        assert words, f"{word} is not in the form of a list, so a shell would stand before the process"
        stage.entrypoint, stage.arguments = (words, ()) if word == "ENTRYPOINT" else (stage.entrypoint, words)
    elif word != "EXPOSE":
        raise ValueError(f"{word}: this instruction is not known here")


def _copy(words: list[str], stage: Stage, stages: Mapping[str, Stage], context: Path) -> None:
    """Copy files from another stage, or from the context without the files that .dockerignore excludes."""
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
        ignored: list[str] = []
    else:
        source, ignored = context, patterns((context / ".dockerignore").read_text())
    *names, target = words
    place = stage.inside(target)
    for name in names:
        found = source / name.lstrip("/")
        if is_left_out(name, ignored):
            raise ValueError(f"COPY {name}: .dockerignore leaves it out")
        if found.is_dir():
            left_out = partial(_left_out, source, ignored)
            shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True, ignore=left_out)
        else:
            into = place / found.name if target.endswith("/") else place
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, into)


def patterns(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def is_left_out(path: str, ignored: Sequence[str]) -> bool:
    """Return whether .dockerignore excludes a path. The last pattern that matches the path, or a folder above it,
    decides.
    """
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    result = False
    for pattern in ignored:
        wanted = pattern.removeprefix("!")
        if wanted.startswith("**/"):
            matches = any(fnmatch(part, wanted[3:]) for part in parts)
        else:
            matches = any(each.count("/") == wanted.count("/") and fnmatch(each, wanted) for each in above)
        result = not pattern.startswith("!") if matches else result
    return result


def _left_out(source: Path, ignored: Sequence[str], folder: str, names: list[str]) -> list[str]:
    below = Path(folder).relative_to(source)
    return [name for name in names if is_left_out(f"{below}/{name}", ignored)]


def _root(root: Path) -> Path:
    """Create a root folder with only the mount points of the base image."""
    for name in (*OF_BASE, "dev", "proc", "tmp", "etc", str(PYTHON).lstrip("/")):
        if Path(f"/{name}").is_symlink():
            root.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(Path(f"/{name}").readlink())
        else:
            (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for name in OF_ETC:
        found = Path("/etc") / name
        if found.is_dir():
            shutil.copytree(found, root / "etc" / name, ignore=shutil.ignore_patterns("private"))
        elif found.is_file():
            shutil.copy(found, root / "etc" / name)
    return root
