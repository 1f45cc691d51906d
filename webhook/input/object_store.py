"""Lists and opens files of object stores, and of other places that fsspec knows, such as `s3://bucket/folder`.

A name without `://` is a file or folder of this machine. fsspec is imported only for an address. If a store needs
another package, the error of fsspec names the package.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Final

from webhook.errors import InputProblem
from webhook.yamltext import input_files, yamlfile
from webhook.yamltext.input_files import FoundFile, InputFile, Listed

_BLOCK: Final = 1 << 20
_LOCAL: Final = ("file:", "local:")
"""Addresses of files on this machine begin like this. claimgate refuses them: fsspec would follow links."""
_LOGS: Final = (".log", ".json", ".ndjson")


def is_url(name: str | Path) -> bool:
    """Return whether a name is an address, and not a path of this machine."""
    return "://" in str(name)


def list_manifest_files(places: Iterable[str | Path]) -> Listed:
    """List the YAML and JSON files of places, sorted by name. Local places are listed as `yamlfile.listing` does."""
    return _list_files(places, yamlfile.listing, yamlfile.is_manifest_name)


def list_log_files_of_places(places: Iterable[str], local: Callable[[Sequence[str]], Listed]) -> Listed:
    """List the logs of places, sorted by name. `local` lists the logs of this machine."""
    return _list_files(places, local, lambda name: any(each in name for each in _LOGS))


def open_file(file: InputFile) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        OSError: the file cannot be opened; `strerror` has the reason.
    """
    if not is_url(file.name):
        return input_files.open_file(file)
    import fsspec

    try:
        opened = fsspec.open(file.name, "rb").open()
    except Exception as error:  # noqa: BLE001 - each store raises errors of its own
        raise OSError(errno.EIO, _describe_store_error(error)) from None
    return BufferedReader(opened, _BLOCK)  # a buffer allows to peek into the file


def _list_files(
    places: Iterable[str | Path], local: Callable[[Sequence[str]], Listed], is_wanted: Callable[[str], bool]
) -> Listed:
    files: dict[str, InputFile] = {}
    problems: list[InputProblem] = []
    not_read: list[FoundFile] = []
    project_files: list[str] = []
    for place in map(str, places):
        if _is_of_this_machine(place):
            message = "is an address of this machine, and reading it would follow links: write the path alone"
            problems.append(InputProblem(message=message, file=place))
        elif is_url(place):
            import fsspec as _  # noqa: F401 - so that a missing extra is reported as such

            try:
                files.update(
                    (each, InputFile(each, _root(place, each))) for each in _files_of_address(place, is_wanted)
                )
            except Exception as error:  # noqa: BLE001 - each store raises errors of its own
                is_absent = isinstance(error, FileNotFoundError)
                problems.append(
                    InputProblem(
                        message=f"{'' if is_absent else 'cannot be read: '}{_describe_store_error(error)}", file=place
                    )
                )
        else:
            local_files = local([place])
            files.update((each.name, each) for each in local_files.files)
            problems += local_files.problems
            not_read += local_files.not_read
            project_files += local_files.project_files
    return Listed(
        files=tuple(files.values()),
        problems=tuple(problems),
        not_read=tuple(not_read),
        project_files=tuple(project_files),
    )


def _is_of_this_machine(address: str) -> bool:
    """An address can be a chain such as `dir::file://folder`."""
    return is_url(address) and any(part.startswith(_LOCAL) for part in address.lower().split("::"))


def _root(address: str, file: str) -> str:
    """Return the named address below which a file was found; "" if the user named the file itself."""
    return "" if file == address else address


def _files_of_address(address: str, is_wanted: Callable[[str], bool]) -> Iterator[str]:
    """Yield the address if it is a file; otherwise the wanted files below it, without hidden files."""
    from fsspec.core import url_to_fs

    store, top = url_to_fs(address)
    description: Mapping[str, Any] = store.info(top)
    if description["type"] != "directory":
        yield address
        return
    named, marks, outer = address.partition("::")  # a chain such as zip://folder::s3://bucket/archive.zip
    for path in sorted(store.find(top)):
        inside = path.removeprefix(top).strip("/")
        parts = inside.split("/")
        if is_wanted(parts[-1]) and not any(part.startswith(".") for part in parts):
            yield f"{named.rstrip('/')}/{inside}{marks}{outer}"


def _describe_store_error(error: Exception) -> str:
    """Names of Python classes are left out."""
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    text = " ".join(str(error).split()) or "unknown cause"
    return f"{text[:1].lower()}{text[1:]}"
