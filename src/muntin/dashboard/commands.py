"""Commands of the page: small JSON objects, checked and passed on to the stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from muntin.dashboard.shown_stream import ShownStream
from muntin.dashboard.written_items import templates
from muntin.errors import QueryError

__all__ = ["obey"]

Payload = Mapping[str, Any]


def obey(stream: ShownStream, body: bytes) -> dict[str, Any]:
    """Do what a command says; a QueryError where it cannot be done."""
    try:
        payload = json.loads(body)
        command = COMMANDS[payload["do"]]
        obeys = payload["do"] in (*stream.verbs, "templates")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise QueryError(
            f'a command must be like {{"do": "play"}}, with one of {", ".join(COMMANDS)}'
        ) from None
    if not obeys:
        raise QueryError(f"this stream cannot {payload['do']}; it can {', '.join(stream.verbs)}")
    with stream.lock:
        try:
            answer = command(stream, payload)
        except KeyError as error:
            raise QueryError(f"the command lacks {error}") from None
        finally:
            stream.version += 1
    return answer or {}


def _templates(stream: Any) -> dict[str, Any]:
    column = next((c for _, one in stream.query.aggregates for c in _columns(one)), stream.query.time)
    return {"templates": templates(column, stream.history.timed)}


def _columns(aggregate: Any) -> list[str]:
    column = getattr(aggregate, "column", None)
    return [column] if isinstance(column, str) else []


def _text(payload: Payload, name: str) -> str:
    value = payload[name]
    if not isinstance(value, str):
        raise QueryError(f"{name} must be a text")
    if not all(character.isprintable() or character in "\t\r\n" for character in value):
        raise QueryError(f"{name} must have printable characters only: got {ascii(value)[:60]}")
    return value


def _speed(stream: Any, payload: Payload) -> None:
    value = payload["speed"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QueryError("speed must be a number")
    stream.set_speed(value)


COMMANDS: dict[str, Callable[[Any, Payload], dict[str, Any] | None]] = {
    "play": lambda stream, _: stream.play(),
    "pause": lambda stream, _: stream.pause(),
    "step": lambda stream, _: stream.step(),
    "restart": lambda stream, _: stream.restart(),
    "speed": _speed,
    "choose": lambda stream, payload: stream.choose(_text(payload, "title")),
    "key": lambda stream, payload: stream.choose_key(_text(payload, "key")),
    "aggregate": lambda stream, payload: stream.choose_aggregate(_text(payload, "name")),
    "add": lambda stream, payload: stream.add(
        _text(payload, "kind"), _text(payload, "name"), _text(payload, "text")
    ),
    "remove": lambda stream, payload: stream.remove(_text(payload, "kind"), _text(payload, "name")),
    "templates": lambda stream, _: _templates(stream),
}
