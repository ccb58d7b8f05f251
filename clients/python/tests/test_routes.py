"""The client has a method for every route of the server's document."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import httpx
import pytest

from ambit_client import AmbitError, Client

from .conftest import TOKEN, URL


def _read(manager: AbstractContextManager[Any]) -> None:
    with manager:
        pass


#: One call of each method that asks the server something.
CALLS: dict[str, Callable[[Client], Any]] = {
    "run": lambda client: client.run({"runId": "r"}).result(),
    "attach": lambda client: client.attach("r").result(),
    "start": lambda client: client.start({}),
    "plan": lambda client: client.plan({}),
    "make_token": lambda client: client.make_token({"sessionId": "s", "ttlMs": 1_000, "may": ["read"]}),
    "runs": lambda client: client.runs(),
    "run_info": lambda client: client.run_info("r"),
    "run_request": lambda client: client.run_request("r"),
    "delete_run": lambda client: client.delete_run("r"),
    "cancel_run": lambda client: client.cancel_run("r"),
    "send_message": lambda client: client.send_message("r", "hello"),
    "interactions": lambda client: client.interactions(),
    "answer": lambda client: client.answer("r", "q", {"approved": True}),
    "files": lambda client: client.files("r"),
    "file": lambda client: client.file("r", "a/b.txt"),
    "archive": lambda client: _read(client.archive("r")),
    "patch": lambda client: client.patch("r"),
    "bundle": lambda client: _read(client.bundle("r")),
    "sessions": lambda client: client.sessions(),
    "session_run": lambda client: client.session_run("s"),
    "close_session": lambda client: client.close_session("s"),
    "session_files": lambda client: client.session_files("s"),
    "session_file": lambda client: client.session_file("s", "a/b.txt"),
    "take_snapshot": lambda client: client.take_snapshot("s"),
    "snapshots": lambda client: client.snapshots(),
    "snapshot": lambda client: client.snapshot("n"),
    "delete_snapshot": lambda client: client.delete_snapshot("n"),
    "export_snapshot": lambda client: _read(client.export_snapshot("n")),
    "import_snapshot": lambda client: client.import_snapshot(b"archive"),
    "deliveries": lambda client: client.deliveries(),
    "redeliver": lambda client: client.redeliver("d"),
    "usage": lambda client: client.usage(),
    "quotas": lambda client: client.quotas(),
    "plugins": lambda client: client.plugins(),
    "host": lambda client: client.host(),
    "health": lambda client: client.health(),
    "ready": lambda client: client.ready(),
}

#: Methods that ask nothing, or that call others.
OTHERS = {"close", "each_run", "each_interaction"}

OUTSIDE = {
    # For Prometheus, and for generators of clients.
    "GET /metrics",
    "GET /openapi.json",
    # For a platform that speaks a dialect: the client has `cancel_run` and `close_session`.
    "GET /subscription-status",
    "POST /cancel",
    "POST /kill",
    # For a person at a terminal: `ambit terminal`, and the client for TypeScript.
    "POST /sessions/{sessionId}/terminals",
    "POST /sessions/{sessionId}/terminals/{terminalId}",
}


def _operations() -> set[str]:
    document = httpx.get(f"{URL}/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).json()
    return {
        f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        # The routes of doors are for the clients of their protocols.
        if not any(tag.startswith("door") for tag in operation.get("tags", []))
    }


def test_every_route_has_a_method() -> None:
    operations = _operations()
    called: set[str] = set()

    def refuse(request: httpx.Request) -> httpx.Response:
        matching = [
            operation
            for operation in operations
            if operation.startswith(f"{request.method} ")
            and re.fullmatch(
                re.sub(r"\{\w+\}", "[^/]+", operation.split(" ")[1].replace("{path}", ".+")), request.url.path
            )
        ]
        # A path with a fixed segment comes before one with a parameter.
        called.add(min(matching, key=lambda operation: operation.count("{")))
        return httpx.Response(400, json={"ok": False})

    with httpx.Client(transport=httpx.MockTransport(refuse)) as http:
        for call in CALLS.values():
            with suppress(AmbitError):
                call(Client(URL, token=TOKEN, http_client=http))
    assert operations - called == OUTSIDE
    methods = {name for name in vars(Client) if not name.startswith("_")}
    assert methods - OTHERS == set(CALLS)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.delete_run(".."),
        lambda client: client.close_session("."),
        lambda client: client.file("run", "a/../../../../plugins"),
    ],
)
def test_a_name_that_would_make_it_another_request(call: Callable[[Client], Any]) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, json={"ok": True, "ended": True})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        client = Client(URL, token=TOKEN, http_client=http)
        with pytest.raises(AmbitError, match=r'is named "\." or "\.\."'):
            call(client)
        assert asked == []
        # The control: a name with dots is one.
        client.delete_run("...")
    assert asked == ["/runs/..."]
