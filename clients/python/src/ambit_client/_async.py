"""The asynchronous client. The synchronous one is made from this file by tools/generate.py."""

from __future__ import annotations

import asyncio
import re
import time as clock
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter

from . import models
from ._errors import AmbitError, failure_of, is_transient, refusal_of, unreachable
from ._records import Event, LineReader, Record, Result, StreamCut, record_of, resolved, result_of

#: A request as the contract's model, or as a mapping with the wire's camelCase keys.
Request = models.RunRequest | Mapping[str, Any]

#: Seconds that a call waits for an answer of this program before its run pauses, unless the request says otherwise.
_WAIT_MS = 600_000
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
#: Turns that answers continue: an agent that asks without end is stopped.
_MAX_TURNS = 100
_MAX_ANSWER_ATTEMPTS = 10
#: The question is over: another user answered it, or the run went on or ended without an answer.
_OVER = (404, 409, 410)
_NDJSON = "application/x-ndjson"
#: A name that a URL resolves before it is sent: the request would be one for something else.
_DOT_SEGMENT = re.compile(r"/\.{1,2}(?:/|$)")

Model = TypeVar("Model", bound=BaseModel)


class _AsyncHttp:
    """Requests to one server: where it is, who calls, and how its refusals become errors."""

    def __init__(
        self,
        url: str,
        token: str | Callable[[], str | None] | None,
        project_id: str | None,
        timeout: float,
        silence_timeout: float,
        client: httpx.AsyncClient | None,
    ) -> None:
        self.url = url.rstrip("/")
        self.project_id = project_id
        self._token = token
        self._timeout = timeout
        self._silence_timeout = silence_timeout
        # A company's proxy doesn't reach this machine.
        is_loopback = httpx.URL(url).host in ("localhost", "127.0.0.1", "::1")
        self.client = client or httpx.AsyncClient(trust_env=not is_loopback)

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        content: bytes | AsyncIterable[bytes] | None = None,
        is_stream: bool = False,
    ) -> httpx.Response:
        """Raises AmbitError for any answer that isn't 2xx, and if no server answers."""
        if _DOT_SEGMENT.search(path):
            raise AmbitError(f'no run, session or file is named "." or "..": {path}', code="not_found")
        token = self._token() if callable(self._token) else self._token
        authorization = {} if token is None else {"authorization": f"Bearer {token}"}
        parameters = {"projectId": self.project_id, **(query or {})}
        read_timeout = self._silence_timeout if is_stream else self._timeout
        try:
            response = await self.client.send(
                self.client.build_request(
                    method,
                    self.url + path,
                    params={name: value for name, value in parameters.items() if value is not None},
                    headers={"accept": "application/json", **authorization, **(headers or {})},
                    json=body,
                    content=content,
                    timeout=httpx.Timeout(self._timeout, read=read_timeout),
                ),
                stream=True,
            )
            if not response.is_success or not is_stream:
                await response.aread()
        except httpx.TransportError as cause:
            raise unreachable(self.url, cause) from cause
        if response.is_success:
            return response
        raise refusal_of(response)

    async def get(self, model: type[Model], path: str, /, **query: Any) -> Model:
        return _parsed(model, await self.send("GET", path, query=query))

    async def post(self, model: type[Model], path: str, body: Any = None, **query: Any) -> Model:
        return _parsed(model, await self.send("POST", path, body=body, query=query))

    async def delete(self, model: type[Model], path: str) -> Model:
        return _parsed(model, await self.send("DELETE", path))


class AsyncRun:
    """A run as it happens: an iterator of its events, and its result.

    A connection that is cut is taken up again where it ended: no event is lost, and none comes twice. Leaving a `for` loop
    early doesn't end the run. `cancel()` does, and so does leaving a `with` block before the result.
    """

    def __init__(
        self,
        http: _AsyncHttp,
        request: dict[str, Any] | None,
        run_id: str,
        after: int,
        *,
        tools: Mapping[str, Callable[[Any], Any]] | None,
        on_approval: Callable[[models.InteractionRequestEvent], Any] | None,
        on_input: Callable[[models.InteractionRequestEvent], Any] | None,
        continue_with: Callable[[dict[str, Any], models.RunResult], Request] | None,
        reconnect_timeout: float,
    ) -> None:
        #: While answers continue a paused run, the id of the latest turn.
        self.id = run_id
        self._http = http
        self._request = request
        self._after = after
        self._tools = tools or {}
        self._on_approval = on_approval
        self._on_input = on_input
        self._continue_with = continue_with
        self._reconnect_timeout = reconnect_timeout
        self._result: models.RunResult | None = None
        self._error: Exception | None = None
        self._is_answered = True
        self._records = self._read()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        return (await self._records.__anext__()).event

    def records(self) -> AsyncIterator[Record]:
        """The events that weren't read yet, each with the time at which it happened (`at`)."""
        return self._records

    async def __aenter__(self) -> AsyncRun:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._result is None and self._error is None:
            await self.cancel()

    async def result(self) -> models.RunResult:
        """Reads the remaining events.

        Raises AmbitError if the run fails, or can't be followed to its end.
        """
        async for _ in self:
            pass
        if self._result is not None:
            return self._result
        raise self._error or RuntimeError("the events of this run were left before its result")

    async def cancel(self) -> bool:
        """Ends the run early. Its result has the `stop_reason` `cancelled`. False if it has ended already."""
        try:
            await self._http.send("POST", f"{_path('runs', self.id)}/cancel")
        except AmbitError as error:
            if error.status == 404:
                return False
            raise
        return True

    async def _read(self) -> AsyncIterator[Record]:
        try:
            for _ in range(_MAX_TURNS):
                self._is_answered = True
                turn_result: Result | None = None
                async for record in self._turn():
                    if isinstance(record, (models.RunResult, models.FailedResult)):
                        turn_result = record
                        continue
                    if isinstance(record.event, models.InteractionRequestEvent):
                        await self._answer(record.event)
                    yield record
                if not isinstance(turn_result, models.RunResult):
                    assert turn_result is not None
                    raise failure_of(turn_result)
                is_over = turn_result.stop_reason != "paused" or not self._is_answered
                if is_over or self._request is None:
                    self._result = turn_result
                    return
                self._begin_next_turn(self._request, turn_result)
            raise AmbitError(f"the run asked in {_MAX_TURNS} turns without an end", code="invalid_response")
        except Exception as error:
            self._error = error
            raise

    def _begin_next_turn(self, request: dict[str, Any], paused: models.RunResult) -> None:
        if self._continue_with is None:
            following = {name: value for name, value in request.items() if name != "messages"}
        else:
            following = _wire(self._continue_with(request, paused))
        session = {} if paused.session_id is None else {"sessionId": paused.session_id}
        self.id, self._after = str(uuid.uuid4()), 0
        self._request = {**following, **session, "runId": self.id}

    async def _turn(self) -> AsyncIterator[Record | Result]:
        """The records of one turn, the last of which is its result."""
        is_begun = self._request is None
        count, attempt = self._after, 0
        progress_at = clock.monotonic()
        while True:
            try:
                response = await (self._follow(count) if is_begun else self._begin())
                is_begun = True
                try:
                    if response.status_code == 204:
                        yield await self._stored()
                        return
                    async for record in _records(response):
                        count += 1
                        attempt = 0
                        progress_at = clock.monotonic()
                        yield record
                        if isinstance(record, (models.RunResult, models.FailedResult)):
                            return
                        progress_at = clock.monotonic()
                finally:
                    await response.aclose()
                raise StreamCut("the stream ended before its result")
            except (StreamCut, AmbitError) as error:
                pause = _pause_after(error, attempt)
                if pause is None or clock.monotonic() + pause - progress_at > self._reconnect_timeout:
                    if isinstance(error, AmbitError):
                        raise
                    reason = f"the run can't be followed: {error}"
                    raise AmbitError(reason, code="unreachable", retryable=True) from error
                attempt += 1
            await asyncio.sleep(pause)

    async def _begin(self) -> httpx.Response:
        # The same id begins one run only, so that a request whose answer was lost can be sent again.
        headers = {"accept": _NDJSON, "idempotency-key": self.id}
        return await self._http.send("POST", "/stream", body=self._request, headers=headers, is_stream=True)

    async def _follow(self, after: int) -> httpx.Response:
        path = f"{_path('runs', self.id)}/events"
        headers = {"accept": _NDJSON}
        return await self._http.send("GET", path, query={"after": after}, headers=headers, is_stream=True)

    async def _stored(self) -> Result:
        response = await self._http.send("GET", _path("runs", self.id))
        result = response.json().get("result")
        if result is None:
            raise AmbitError("the run has ended, and its result isn't there", code="invalid_response")
        return result_of(result)

    async def _answer(self, question: models.InteractionRequestEvent) -> None:
        try:
            answer = await self._answer_to(question)
        except Exception:
            await self.cancel()
            raise
        if answer is None:
            self._is_answered = False
            return
        path = f"{_path('runs', self.id, 'interactions', question.id)}"
        for attempt in range(_MAX_ANSWER_ATTEMPTS):
            try:
                await self._http.send("POST", path, body=answer)
                return
            except AmbitError as error:
                if error.status in _OVER:
                    return
                pause = _pause_after(error, attempt)
                if pause is None or attempt + 1 == _MAX_ANSWER_ATTEMPTS:
                    raise
            await asyncio.sleep(pause)

    async def _answer_to(self, question: models.InteractionRequestEvent) -> dict[str, Any] | None:
        """None if this program has no answer."""
        payload = question.payload
        if question.kind == "user_approval" and self._on_approval is not None:
            approved = await resolved(self._on_approval(question))
            return {"approved": bool(approved)}
        if question.kind == "user_input" and self._on_input is not None:
            output = await resolved(self._on_input(question))
            return {"output": "declined", "isError": True} if output is None else {"output": output}
        tool = self._tools.get((payload and payload.tool_name) or "")
        if question.kind != "client_tool" or tool is None:
            return None
        try:
            output = await resolved(tool(payload and payload.input))
        except Exception as error:
            # A client tool that fails tells the model so.
            return {"output": str(error), "isError": True}
        return {"output": output}


class AsyncClient:
    """Every route of a server.

    Each method raises AmbitError, which has the failure's code, its gaps and issues with their fixes, and whether a later
    attempt may succeed.

    url: where the server listens.
    token: the server's token, or a function that returns the one to use now.
    project_id: the project of every request, where the operator's token may act for several.
    timeout: seconds for a connection, and for an answer that isn't a stream.
    silence_timeout: seconds without a byte, after which a stream counts as cut. The server sends one every 15 s.
    http_client: in place of the one that this client makes and closes.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8765",
        *,
        token: str | Callable[[], str | None] | None = None,
        project_id: str | None = None,
        timeout: float = 60.0,
        silence_timeout: float = 45.0,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._http = _AsyncHttp(url, token, project_id, timeout, silence_timeout, http_client)
        self._closes_http = http_client is None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._closes_http:
            await self._http.client.aclose()

    def run(
        self,
        request: Request,
        *,
        tools: Mapping[str, Callable[[Any], Any]] | None = None,
        on_approval: Callable[[models.InteractionRequestEvent], Any] | None = None,
        on_input: Callable[[models.InteractionRequestEvent], Any] | None = None,
        continue_with: Callable[[dict[str, Any], models.RunResult], Request] | None = None,
        reconnect_timeout: float = 60.0,
    ) -> AsyncRun:
        """A run, which begins when its first event or its result is read.

        It goes on when the connection is lost, and is followed again; `"onDisconnect": "cancel"` in the request ends it
        instead. Questions are answered while their call waits, or by continuing the session where the run paused; while a
        function answers, later events wait. Where `on_approval` or `on_input` raises, the run is cancelled.

        tools: client tools by their names: each returns the call's output.
        on_approval: decides on a call that needs its user.
        on_input: fills in a form; None declines it.
        continue_with: the request of the next turn, after questions of a paused one were answered. By default the same
            without `messages`.
        reconnect_timeout: seconds without any progress, after which a run whose connection was cut is given up.
        """
        has_answers = tools is not None or on_approval is not None or on_input is not None
        wire = {
            "onDisconnect": "continue",
            **({"interactions": {"waitMs": _WAIT_MS}} if has_answers else {}),
            **self._project,
            "runId": str(uuid.uuid4()),
            **_wire(request),
        }
        return AsyncRun(
            self._http,
            wire,
            str(wire["runId"]),
            0,
            tools=tools,
            on_approval=on_approval,
            on_input=on_input,
            continue_with=continue_with,
            reconnect_timeout=reconnect_timeout,
        )

    def attach(
        self,
        run_id: str,
        *,
        after: int = 0,
        tools: Mapping[str, Callable[[Any], Any]] | None = None,
        on_approval: Callable[[models.InteractionRequestEvent], Any] | None = None,
        on_input: Callable[[models.InteractionRequestEvent], Any] | None = None,
        reconnect_timeout: float = 60.0,
    ) -> AsyncRun:
        """Follows a run of the server from the record `after` on; from its beginning by default."""
        return AsyncRun(
            self._http,
            None,
            run_id,
            after,
            tools=tools,
            on_approval=on_approval,
            on_input=on_input,
            continue_with=None,
            reconnect_timeout=reconnect_timeout,
        )

    async def start(self, request: Request) -> models.AcceptedResponse:
        """Starts a run that no one waits for: `attach` follows it. A run without a slot waits for one."""
        wire = {**self._project, "runId": str(uuid.uuid4()), **_wire(request)}
        headers = {"prefer": "respond-async", "idempotency-key": str(wire["runId"])}
        return _parsed(models.AcceptedResponse, await self._http.send("POST", "/run", body=wire, headers=headers))

    async def plan(self, request: Request) -> models.PlanResponse:
        """Whether the request could run: every guarantee, or every gap with its fix. Nothing is started."""
        return await self._http.post(models.PlanResponse, "/plan", {**self._project, **_wire(request)})

    async def make_token(self, request: models.TokenRequest | Mapping[str, Any]) -> models.TokenResponse:
        """A token for a page in a user's browser, for one session: `{"sessionId": …, "may": ["read"]}`."""
        return await self._http.post(models.TokenResponse, "/tokens", {**self._project, **_wire(request)})

    async def runs(
        self,
        *,
        session_id: str | None = None,
        state: str | None = None,
        outcome: str | None = None,
        harness: str | None = None,
        sandbox: str | None = None,
        asking: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[models.RunsResponseRun]:
        """One page, the newest first: the runs after the id that ends the page before."""
        filters = {
            "sessionId": session_id,
            "state": state,
            "outcome": outcome,
            "harness": harness,
            "sandbox": sandbox,
            "asking": "true" if asking else None,
        }
        return (await self._http.get(models.RunsResponse, "/runs", **filters, after=after, limit=limit)).runs

    async def each_run(
        self,
        *,
        session_id: str | None = None,
        state: str | None = None,
        outcome: str | None = None,
        harness: str | None = None,
        sandbox: str | None = None,
        asking: bool = False,
    ) -> AsyncIterator[models.RunsResponseRun]:
        """All of them, the newest first, page by page as they are read."""
        after: str | None = None
        # A page may be shorter than its limit, so only an empty one is the end.
        while page := await self.runs(
            session_id=session_id,
            state=state,
            outcome=outcome,
            harness=harness,
            sandbox=sandbox,
            asking=asking,
            after=after,
            limit=1_000,
        ):
            for run in page:
                yield run
            after = run.run_id if run.project_id is None else f"{run.project_id}/{run.run_id}"

    async def run_info(self, run_id: str) -> models.RunInfo:
        return await self._http.get(models.RunInfo, _path("runs", run_id))

    async def run_request(self, run_id: str) -> dict[str, Any]:
        """The request of a run, to begin it again, with `[redacted]` in place of each secret."""
        return (await self._http.get(models.RunRequestResponse, f"{_path('runs', run_id)}/request")).request

    async def delete_run(self, run_id: str) -> models.EndedResponse:
        """Deletes an ended run with all of its data."""
        return await self._http.delete(models.EndedResponse, _path("runs", run_id))

    async def cancel_run(self, run_id: str) -> models.EndedResponse:
        """Ends a running or queued run."""
        return await self._http.post(models.EndedResponse, f"{_path('runs', run_id)}/cancel")

    async def send_message(self, run_id: str, content: str | Sequence[Mapping[str, Any]]) -> models.ForwardedResponse:
        """Hands the agent of a run a message in the middle of its turn, if it takes one then."""
        body = {"content": content if isinstance(content, str) else [dict(block) for block in content]}
        return await self._http.post(models.ForwardedResponse, f"{_path('runs', run_id)}/messages", body)

    async def interactions(
        self,
        *,
        run_id: str | None = None,
        session_id: str | None = None,
        state: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[models.InteractionsResponseInteraction]:
        """One page of the questions that runs asked."""
        filters = {"runId": run_id, "sessionId": session_id, "state": state, "after": after, "limit": limit}
        return (await self._http.get(models.InteractionsResponse, "/interactions", **filters)).interactions

    async def each_interaction(
        self, *, run_id: str | None = None, session_id: str | None = None, state: str | None = None
    ) -> AsyncIterator[models.InteractionsResponseInteraction]:
        """All of them, page by page as they are read."""
        after: str | None = None
        while page := await self.interactions(
            run_id=run_id, session_id=session_id, state=state, after=after, limit=1_000
        ):
            for interaction in page:
                yield interaction
            after = interaction.id

    async def answer(self, run_id: str, interaction_id: str, answer: Mapping[str, Any]) -> models.ForwardedResponse:
        """Answers a question of a run: `{"approved": …}`, or `{"output": …, "isError": …}`."""
        path = _path("runs", run_id, "interactions", interaction_id)
        return await self._http.post(models.ForwardedResponse, path, dict(answer))

    async def files(self, run_id: str, *, url_ttl_ms: int | None = None) -> models.OutputFilesResponse:
        """With `url_ttl_ms`, each file has a `url`, which needs no token for so long.

        It is relative to the server, unless its configuration has a `publicUrl`.
        """
        path = f"{_path('runs', run_id)}/files"
        return await self._http.get(models.OutputFilesResponse, path, urlTtlMs=url_ttl_ms)

    async def file(self, run_id: str, path: str) -> bytes:
        """One file of a run's outputs."""
        route = _path("runs", run_id, "files", *path.split("/"))
        return (await self._http.send("GET", route, headers={"accept": "*/*"})).content

    async def patch(self, run_id: str) -> str:
        """What the run changed."""
        return (await self._http.send("GET", f"{_path('runs', run_id)}/patch", headers={"accept": "*/*"})).text

    @asynccontextmanager
    async def archive(self, run_id: str) -> AsyncIterator[httpx.Response]:
        """All files of a run's outputs as a tar archive: `with client.archive(id) as response: …`."""
        async with self._download(f"{_path('runs', run_id)}/archive") as response:
            yield response

    @asynccontextmanager
    async def bundle(self, run_id: str) -> AsyncIterator[httpx.Response]:
        """The run's commits, as a git bundle."""
        async with self._download(f"{_path('runs', run_id)}/bundle") as response:
            yield response

    async def sessions(self, *, limit: int | None = None) -> list[models.SessionsResponseSession]:
        return (await self._http.get(models.SessionsResponse, "/sessions", limit=limit)).sessions

    async def session_run(self, session_id: str) -> models.RunInfo:
        """The newest run of a session, also after the session has ended."""
        return await self._http.get(models.RunInfo, f"{_path('sessions', session_id)}/run")

    async def close_session(self, session_id: str) -> models.EndedResponse:
        """Closes a session with its sandbox and agent, and the run that uses it."""
        return await self._http.delete(models.EndedResponse, _path("sessions", session_id))

    async def session_files(self, session_id: str, path: str | None = None) -> models.SessionFilesResponse:
        """One folder of an open session's workspace, as it is now. Without `path`, the workspace itself."""
        route = f"{_path('sessions', session_id)}/files"
        return await self._http.get(models.SessionFilesResponse, route, path=path)

    async def session_file(self, session_id: str, path: str) -> bytes:
        """One file of an open session's workspace, as it is now."""
        route = _path("sessions", session_id, "files", *path.split("/"))
        return (await self._http.send("GET", route, headers={"accept": "*/*"})).content

    async def take_snapshot(self, session_id: str) -> models.SnapshotInfo:
        return await self._http.post(models.SnapshotInfo, f"{_path('sessions', session_id)}/snapshot")

    async def snapshots(self) -> list[models.SnapshotInfo]:
        return (await self._http.get(models.SnapshotsResponse, "/snapshots")).snapshots

    async def snapshot(self, snapshot_id: str) -> models.SnapshotInfo:
        return await self._http.get(models.SnapshotInfo, _path("snapshots", snapshot_id))

    async def delete_snapshot(self, snapshot_id: str) -> models.EndedResponse:
        return await self._http.delete(models.EndedResponse, _path("snapshots", snapshot_id))

    @asynccontextmanager
    async def export_snapshot(self, snapshot_id: str) -> AsyncIterator[httpx.Response]:
        """A snapshot as a file that any server imports."""
        async with self._download(f"{_path('snapshots', snapshot_id)}/archive") as response:
            yield response

    async def import_snapshot(self, archive: bytes | AsyncIterable[bytes]) -> models.SnapshotInfo:
        headers = {"content-type": "application/octet-stream"}
        response = await self._http.send("POST", "/snapshots", content=archive, headers=headers)
        return _parsed(models.SnapshotInfo, response)

    async def usage(
        self,
        *,
        first_day: str | None = None,
        last_day: str | None = None,
        by: str = "day",
    ) -> models.UsageResponse:
        """What the runs used that ended on these days (UTC), such as `2026-11-29`: of the last 30 by default."""
        return await self._http.get(models.UsageResponse, "/usage", **{"from": first_day, "to": last_day, "by": by})

    async def quotas(self) -> models.QuotasResponse:
        """What each project with a token may use, and uses now."""
        return await self._http.get(models.QuotasResponse, "/quotas")

    async def deliveries(
        self,
        *,
        run_id: str | None = None,
        state: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[models.StoredDelivery]:
        """One page of the webhooks' messages."""
        filters = {"runId": run_id, "state": state, "after": after, "limit": limit}
        return (await self._http.get(models.DeliveriesResponse, "/deliveries", **filters)).deliveries

    async def redeliver(self, delivery_id: str) -> models.StoredDelivery:
        """Sends a webhook's message again."""
        return await self._http.post(models.StoredDelivery, f"{_path('deliveries', delivery_id)}/redeliver")

    async def plugins(self) -> models.PluginsResponse:
        """Every actor, with its claims and what was proven on the server's host."""
        return await self._http.get(models.PluginsResponse, "/plugins")

    async def host(self) -> models.HostResponse:
        """The server's host: its agents with their versions, what is required of it, and what was verified."""
        return await self._http.get(models.HostResponse, "/host")

    async def health(self) -> models.HealthResponse:
        return await self._http.get(models.HealthResponse, "/health")

    async def ready(self) -> models.ReadyResponse:
        """Raises AmbitError while the server takes no runs."""
        return await self._http.get(models.ReadyResponse, "/ready")

    @property
    def _project(self) -> dict[str, str]:
        return {} if self._http.project_id is None else {"projectId": self._http.project_id}

    @asynccontextmanager
    async def _download(self, path: str) -> AsyncIterator[httpx.Response]:
        response = await self._http.send("GET", path, headers={"accept": "*/*"}, is_stream=True)
        try:
            yield response
        finally:
            await response.aclose()


async def _records(response: httpx.Response) -> AsyncIterator[Record | Result]:
    reader = LineReader()
    try:
        async for data in response.aiter_bytes():
            for line in reader.feed(data):
                yield record_of(line)
    except httpx.ReadTimeout as cause:
        raise StreamCut("the stream was silent for too long") from cause
    except (httpx.TransportError, httpx.StreamError) as cause:
        raise StreamCut("the stream was cut") from cause


def _path(*parts: str) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _wire(request: BaseModel | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(request, BaseModel):
        return request.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return dict(request)


def _parsed(model: type[Model], response: httpx.Response) -> Model:
    try:
        return TypeAdapter(model).validate_json(response.content)
    except ValueError as cause:
        raise AmbitError(f"the server's answer isn't a {model.__name__}", code="invalid_response") from cause


def _pause_after(error: Exception, attempt: int) -> float | None:
    """Seconds before the next attempt; None if there is none."""
    pause = min(_FIRST_PAUSE * float(2**attempt), _LONGEST_PAUSE)
    if isinstance(error, StreamCut):
        return pause
    if not isinstance(error, AmbitError) or not is_transient(error):
        return None
    return max(pause, error.retry_after or 0.0)
