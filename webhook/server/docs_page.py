"""The page /docs: an OpenAPI document as HTML without scripts, fonts or styles of other hosts.

The pages that FastAPI has load their scripts from a content delivery network, and stay blank where none can be reached.
Knows OpenAPI as far as openapi.py and FastAPI use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

_STYLE: Final = (
    "body{font:1rem/1.5 sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "code{font-family:monospace}td,th{padding:.2rem 1rem .2rem 0;text-align:left;vertical-align:top}"
    "section{border-top:1px solid;margin-top:1.5rem}"
)


def page(document: Mapping[str, Any], source: str) -> str:
    """Return the HTML page of an OpenAPI document; `source` is the address of that document."""
    info = document["info"]
    return "".join(
        (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>',
            f"<style>{_STYLE}</style></head><body>",
            f"<h1>{escape(info['title'])} {escape(info['version'])}</h1><p>{escape(info['description'])}</p>",
            f'<p>The same for programs: <a href="{escape(source)}">{escape(source)}</a></p>',
            *_html_of_operations(document["paths"]),
            *_html_of_schemas(document.get("components", {}).get("schemas", {})),
            "</body></html>\n",
        )
    )


def _html_of_operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, operations in paths.items():
        for method, operation in operations.items():
            yield f"<section><h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
            yield f"<p>{escape(operation.get('summary', ''))}</p>"
            parameters = [f"<code>{escape(each['name'])}</code>" for each in operation.get("parameters", ())]
            yield f"<p>Parameters: {', '.join(parameters)}</p>" if parameters else ""
            if "requestBody" in operation:
                yield f"<p>Body: {_html_of_media_types(operation['requestBody'])}</p>"
            answers = ((code, _html_of_answer(answer)) for code, answer in operation["responses"].items())
            yield from _html_table("Code", "Answer", answers)
            yield "</section>"


def _html_of_answer(answer: Mapping[str, Any]) -> str:
    content = _html_of_media_types(answer)
    return f"{escape(answer['description'])}{f' ({content})' if content else ''}"


def _html_of_media_types(holder: Mapping[str, Any]) -> str:
    """Return the media types of a request body or an answer, each with its schema, as HTML."""
    return ", ".join(
        f"{escape(media)}: {_html_of_type(content['schema'])}" if content.get("schema") else escape(media)
        for media, content in holder.get("content", {}).items()
    )


def _html_of_schemas(schemas: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f'<section id="{escape(name)}"><h2>{escape(name)}</h2>'
        rows = ((key, _html_of_field(value)) for key, value in schema.get("properties", {}).items())
        yield from _html_table("Field", "Type", rows)
        yield "</section>"


def _html_of_field(schema: Mapping[str, Any]) -> str:
    told = [_html_of_type(schema), escape(str(schema.get("description", "")))]
    return ": ".join(filter(None, told))


def _html_of_type(schema: Mapping[str, Any]) -> str:
    reference = str(schema.get("$ref", "")).rpartition("/")[2]
    if reference:
        return f'<a href="#{escape(reference)}">{escape(reference)}</a>'
    words = " or ".join(f"<code>{escape(each)}</code>" for each in schema.get("enum", ()))
    return words or escape(str(schema.get("type", "any value")))


def _html_table(first: str, second: str, rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield f"<table><tr><th>{first}</th><th>{second}</th></tr>"
    yield from (f"<tr><td><code>{escape(key)}</code></td><td>{text}</td></tr>" for key, text in rows)
    yield "</table>"
