import {
  AtCapacity,
  IdempotencyKeyReused,
  idOfRun,
  isAmbitError,
  limits,
  onDisconnectOf,
  RequestInvalid,
  RunCancelled,
  runKey,
  StoreFailed,
} from "@ambit/core";
import { unlessAborted } from "@ambit/core/plugin";
import type { AcceptedResponse, Recorder } from "@ambit/durable";
import type { StoredRun } from "@ambit/durable/store";
import type { Run } from "@ambit/runner";
import { type Caller, callerOf, tenantOf } from "../../tenants/caller.js";
import { callerOptions, callersTrace } from "../caller/caller-options.js";
import { json } from "../response/json-response.js";
import { answerSignal, leftSignal } from "../response/left-signal.js";
import type { ResponseFormat } from "../response/response-format.js";
import { sendLargeJson } from "../response/send.js";
import { readerOf } from "../response/unread.js";
import type { RouteAnswer } from "../route/route.js";
import type { Exchange, ServedRuns, ServerContext } from "../server-context.js";
import { asksToDetach, commandKey, idempotencyKey, prefersAsync } from "./run-body.js";
import { sendRecords } from "./send-records.js";
import { sendStoredResult } from "./stored-response.js";

/**
 * Begins a run for the caller of `POST /run` or `/stream`, who then reads its log like any other reader. Checks for a free
 * slot, reads the body, takes the slot, and plans.
 * @throws AtCapacity, HttpRefusal, RequestInvalid, BoundaryRefused, IdempotencyKeyReused, SessionElsewhere,
 * StoreFailed before anything was sent.
 */
export async function beginRun(
  context: ServerContext,
  server: ServedRuns,
  exchange: Exchange,
  form: ResponseFormat,
): Promise<RouteAnswer> {
  const { runner, bodies } = context;
  const { incoming } = exchange;
  const isAsync = prefersAsync(incoming);
  const caller = callerOf(incoming);
  const { answerTimeoutMs } = server.runs.options.settings;
  const waits = answerSignal(exchange.outgoing, answerTimeoutMs);
  const named = idempotencyKey(incoming);
  const keyOf = (id: string) => runKey(id, tenantOf(caller));
  // A slow body doesn't occupy a slot, but no body is read if there is no free slot, unless its run exists already.
  if (!isAsync && !(named !== undefined && (await isBegun(context, server, keyOf(named), waits))))
    runner.requireRoom();
  const body = await bodies.json(incoming, limits.bodyBytes);
  const isDetached = isAsync || asksToDetach(body);
  const command = commandKey(body, caller, runner.registry.dialects);
  const id = named ?? command;
  // A command may be sent again with other facts around it.
  const repeated = id === command ? command : body;
  const digest = id === undefined ? "" : await server.sealing.digest(repeated);
  const key = id === undefined ? undefined : keyOf(id);
  const begun = await server.beginnings.inTurn(key, async (): Promise<Begun> => {
    const existing = key === undefined ? undefined : await server.runs.get(key, waits);
    if (existing !== undefined) return { existing };
    const wait = async (): Promise<Begun> =>
      server.queue.add({ body, trace: callersTrace(incoming) }, id, digest, caller);
    const refusal = await server.quotas.refusal(caller);
    if (isDetached && (refusal !== undefined || !hasRoom(context))) return wait();
    if (refusal !== undefined) throw refusal;
    const keepsEvents = form === "json" && !isDetached;
    const run = await runner.reserve().admit(body, { keepsEvents, ...callerOptions(incoming), runId: id });
    // The caller's own time for the run's first row: whether a run goes on without its caller is decided after that.
    const started = await begin(server, run, digest, caller, AbortSignal.timeout(answerTimeoutMs));
    if (started !== "over_quota") return "existing" in started ? started : { run, ...started };
    // Its session is one too many, or another replica took the project's last slot at the same moment.
    if (isDetached) return wait();
    const { quotas } = server;
    throw (
      (await quotas.refusalOfSession(caller, run.request.sessionId)) ??
      (await quotas.refusal(caller)) ??
      new AtCapacity("The project has reached its quota.")
    );
  });
  if ("runId" in begun) return accepted(begun.runId, "queued");
  if ("existing" in begun) {
    const { existing } = begun;
    if (id === undefined) throw new RequestInvalid([{ path: "runId", message: taken }]);
    const isSame = existing.digest === digest || (await server.sealing.isDigestOf(existing.digest, repeated));
    if (!isSame) throw new IdempotencyKeyReused(id);
    return respondExisting(context, server, exchange, isDetached ? "detached" : form, existing);
  }
  const { run, recorder } = begun;
  const { harness, sandbox } = run.plan;
  run.log.info({ harness: harness.actor.id, sandbox: sandbox.actor.name }, "a run begins");
  void recorder.done.then((result) => {
    const outcome = result?.failure?.code ?? result?.stopReason ?? "lost";
    run.log.info({ outcome }, "a run has ended");
  });
  if (isDetached) return accepted(run.id, "running");
  await sendRun(context, server, exchange, form, run, recorder);
  return undefined;
}

/** What became of a request: a run that exists already, one in the queue, or one that runs. */
type Begun =
  | { readonly existing: StoredRun }
  | { readonly runId: string }
  | { readonly run: Run; readonly recorder: Recorder };

/** Whether an earlier request with this key has its run, or is about to. */
async function isBegun(
  { runner }: ServerContext,
  { runs, beginnings }: ServedRuns,
  key: string,
  waits: AbortSignal,
): Promise<boolean> {
  return runner.has(key) || beginnings.has(key) || (await runs.summary(key, waits)) !== undefined;
}

const taken = "is the id of a run that is in progress or stored: give each run its own id";

function hasRoom({ runner }: ServerContext): boolean {
  try {
    runner.requireRoom();
    return true;
  } catch (error) {
    if (error instanceof AtCapacity) return false;
    throw error;
  }
}

/** A run that was admitted but can't begin still ends, and releases its slot. */
async function begin(
  { runs, quotas }: ServedRuns,
  run: Run,
  digest: string,
  caller: Caller,
  signal: AbortSignal,
) {
  try {
    const bind = () => runs.sessions.bind(run, quotas.sessionsOf(caller));
    const bound = await unlessAborted(signal, bind).catch((cause: unknown) => {
      throw isAmbitError(cause) ? cause : new StoreFailed("The store can't be reached.", { cause });
    });
    if (bound === "over_quota") {
      run.withdraw();
      return bound;
    }
    const started = await runs.start(run, digest, quotas.quotaOf(caller), signal);
    if (started === "over_quota" || "existing" in started) run.withdraw();
    return started;
  } catch (error) {
    run.withdraw();
    throw error;
  }
}

function accepted(runId: string, state: AcceptedResponse["state"]): Response {
  const headers = { location: `/runs/${encodeURIComponent(runId)}`, "x-ambit-run-id": runId };
  return json(202, { ok: true, runId, state } satisfies AcceptedResponse, {
    ...headers,
    "preference-applied": "respond-async",
  });
}

/** Responds to the caller that began the run, and may disconnect. */
async function sendRun(
  context: ServerContext,
  { runs }: ServedRuns,
  { outgoing }: Exchange,
  form: ResponseFormat,
  run: Run,
  recorder: Recorder,
): Promise<void> {
  const { runner, unread } = context;
  const disconnected = new AbortController();
  const leave = () => {
    if (outgoing.writableFinished) return;
    disconnected.abort();
    const onDisconnect = onDisconnectOf(run.request);
    run.log.info({ onDisconnect }, "the caller left");
    if (onDisconnect === "cancel") run.cancel(new RunCancelled("The client went away.", "caller"));
  };
  outgoing.once("close", leave);
  if (outgoing.destroyed) leave();
  if (form !== "json") {
    await sendRecords(run.id, form, runs.follow(run.key, 0, disconnected.signal), outgoing, context);
    return;
  }
  const result = await recorder.done;
  if (result !== undefined) {
    const failure = result.ok ? undefined : await run.ended;
    // Its events count as much again.
    const wasRead = unread.hold(2 * recorder.resultLength, readerOf(outgoing));
    await sendLargeJson(outgoing, failure?.status ?? 200, result, { "x-ambit-run-id": run.id }).finally(
      wasRead,
    );
    return;
  }
  // Another replica ended the run.
  const stored = await runs.ended(run.key, disconnected.signal);
  const max = runner.options.limits.resultCharacters;
  if (stored !== undefined)
    await sendStoredResult({ runs, unread }, stored, max, outgoing, disconnected.signal);
}

/** Responds to a repeated request with the run that the first one began. @throws AtCapacity */
async function respondExisting(
  context: ServerContext,
  { runs }: ServedRuns,
  exchange: Exchange,
  form: ResponseFormat | "detached",
  run: StoredRun,
): Promise<RouteAnswer> {
  const { outgoing } = exchange;
  const runId = idOfRun(run.id);
  if (form === "detached") return accepted(runId, run.state);
  const left = leftSignal(outgoing);
  const { id, project } = run;
  const { unread } = context;
  const read = async () => {
    if (form !== "json") return sendRecords(runId, form, runs.follow(id, 0, left), outgoing, context);
    const ended = await runs.ended(id, left);
    const max = context.runner.options.limits.resultCharacters;
    if (ended !== undefined) await sendStoredResult({ runs, unread }, ended, max, outgoing, left);
  };
  await context.readers.reading({ id, project }, read, () => void outgoing.destroy());
  return undefined;
}
