import type { IncomingMessage } from "node:http";
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
import { type EndOfRequest, nextStep, type RequestFacts } from "./beginnings.js";
import { asksToDetach, commandKey, idempotencyKey, prefersAsync } from "./run-body.js";
import { sendRecords } from "./send-records.js";
import { sendStoredResult } from "./stored-response.js";

/** A request for a run, as it was read. */
interface RunAttempt {
  readonly context: ServerContext;
  readonly server: ServedRuns;
  readonly incoming: IncomingMessage;
  readonly caller: Caller;
  readonly body: unknown;
  readonly isDetached: boolean;
  /** Whether the result includes the run's events. */
  readonly keepsEvents: boolean;
  /** By which the caller names the run: an idempotency key or a command. */
  readonly id: string | undefined;
  /** The same among the runs of all callers. */
  readonly key: string | undefined;
  /** What a repeated request must have in common with the first. */
  readonly repeated: unknown;
  readonly digest: string;
  /** Aborts when the caller has left, or has waited long enough for the store. */
  readonly signal: AbortSignal;
}

interface StartedRun {
  readonly run: Run;
  readonly recorder: Recorder;
}

type Facts = RequestFacts<StoredRun, StartedRun>;

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
  const attempt = await readAttempt(context, server, exchange, form);
  const { isDetached } = attempt;
  const end = await server.beginnings.inTurn(attempt.key, () => findOrBegin(attempt));
  switch (end.step) {
    case "respond_existing":
      return respondExisting(context, server, exchange, isDetached ? "detached" : form, end.run);
    case "accept_queued":
      return accepted(end.runId, "queued");
    case "begin":
      logBeginAndEnd(end.run);
      if (isDetached) return accepted(end.run.run.id, "running");
      await sendRun(context, server, exchange, form, end.run);
      return undefined;
  }
}

async function readAttempt(
  context: ServerContext,
  server: ServedRuns,
  { incoming, outgoing }: Exchange,
  form: ResponseFormat,
): Promise<RunAttempt> {
  const { runner, bodies } = context;
  const isAsync = prefersAsync(incoming);
  const caller = callerOf(incoming);
  const signal = answerSignal(outgoing, server.runs.options.settings.answerTimeoutMs);
  const named = idempotencyKey(incoming);
  const keyOf = (id: string) => runKey(id, tenantOf(caller));
  // A slow body doesn't occupy a slot, but no body is read if there is no free slot, unless its run exists already.
  if (!isAsync && !(named !== undefined && (await isBegun(context, server, keyOf(named), signal))))
    runner.requireRoom();
  const body = await bodies.json(incoming, limits.bodyBytes);
  const isDetached = isAsync || asksToDetach(body);
  const command = commandKey(body, caller, runner.registry.dialects);
  const id = named ?? command;
  // A command may be sent again with other facts around it.
  const repeated = id === command ? command : body;
  const digest = id === undefined ? "" : server.sealing.digest(repeated);
  const key = id === undefined ? undefined : keyOf(id);
  const keepsEvents = form === "json" && !isDetached;
  return {
    context,
    server,
    incoming,
    caller,
    body,
    isDetached,
    keepsEvents,
    id,
    key,
    repeated,
    digest,
    signal,
  };
}

/** Does what `nextStep` says of the facts so far, and learns more of them by it, until the request has its run. */
async function findOrBegin(attempt: RunAttempt): Promise<EndOfRequest<StoredRun, StartedRun>> {
  const { context, server, caller, id } = attempt;
  const { quotas } = server;
  let facts: Facts = { isDetached: attempt.isDetached, isNamed: id !== undefined };
  for (;;) {
    const next = nextStep(facts);
    switch (next.step) {
      case "look_up":
        facts = { ...facts, ...(await lookUp(attempt)) };
        break;
      case "check_capacity": {
        const refusal = (await quotas.refusal(caller)) ?? refusalOfSlot(context);
        facts = { ...facts, capacity: refusal ?? "free" };
        break;
      }
      case "start":
        facts = { ...facts, ...(await start(attempt)) };
        break;
      case "queue":
        facts = { ...facts, ...(await queue(attempt)) };
        break;
      case "refuse_id":
        throw new RequestInvalid([{ path: "runId", message: takenId }]);
      case "refuse_key":
        throw new IdempotencyKeyReused(id ?? "");
      case "refuse_capacity":
        throw next.refusal;
      case "refuse_quota":
        throw (
          (await quotas.refusalOfSession(caller, next.sessionId)) ??
          (await quotas.refusal(caller)) ??
          new AtCapacity("The project has reached its quota.")
        );
      default:
        return next;
    }
  }
}

async function lookUp(attempt: RunAttempt): Promise<Pick<Facts, "existing">> {
  const { server, key, signal } = attempt;
  const run = key === undefined ? undefined : await server.runs.get(key, signal);
  return { existing: run === undefined ? "none" : await existingRun(run, attempt) };
}

async function existingRun(
  run: StoredRun,
  { server, id, digest, repeated }: RunAttempt,
): Promise<Facts["existing"]> {
  const { sealing } = server;
  const isOfSameRequest =
    id !== undefined && (run.digest === digest || sealing.isDigestOf(run.digest, repeated));
  return { run, isOfSameRequest };
}

/** Takes a slot, plans, and creates the run. @throws AtCapacity, RequestInvalid, BoundaryRefused, StoreFailed */
async function start(attempt: RunAttempt): Promise<Pick<Facts, "attempt" | "existing">> {
  const { context, incoming, body, id, keepsEvents } = attempt;
  const options = { keepsEvents, ...callerOptions(incoming), runId: id };
  const run = await context.runner.reserve().admit(body, options);
  const created = await create(attempt, run);
  if (created === "over_quota")
    return { attempt: { outcome: "over_quota", sessionId: run.request.sessionId } };
  if ("existing" in created) return { existing: await existingRun(created.existing, attempt) };
  return { attempt: { outcome: "running", run: { run, recorder: created.recorder } } };
}

/** Leaves the request for a free slot of any replica. @throws AtCapacity, RequestInvalid, BoundaryRefused, StoreFailed */
async function queue(attempt: RunAttempt): Promise<Pick<Facts, "attempt" | "existing">> {
  const { server, incoming, body, id, digest, caller } = attempt;
  const queued = await server.queue.add({ body, trace: callersTrace(incoming) }, id, digest, caller);
  if ("existing" in queued) return { existing: await existingRun(queued.existing, attempt) };
  return { attempt: { outcome: "queued", runId: queued.runId } };
}

/** Whether an earlier request with this key has its run, or is about to. */
async function isBegun(
  { runner }: ServerContext,
  { runs, beginnings }: ServedRuns,
  key: string,
  signal: AbortSignal,
): Promise<boolean> {
  return runner.has(key) || beginnings.has(key) || (await runs.summary(key, signal)) !== undefined;
}

const takenId = "is the id of a run that is in progress or stored: give each run its own id";

/** Why no run may begin here now; undefined where a slot is free. */
function refusalOfSlot({ runner }: ServerContext): AtCapacity | undefined {
  try {
    runner.requireRoom();
    return undefined;
  } catch (error) {
    if (error instanceof AtCapacity) return error;
    throw error;
  }
}

/** A run that was admitted but can't begin still ends, and releases its slot. */
async function create({ server, digest, caller }: RunAttempt, run: Run) {
  const { runs, quotas } = server;
  // The caller's own time for the run's first row: whether a run goes on without its caller is decided after that.
  const signal = AbortSignal.timeout(runs.options.settings.answerTimeoutMs);
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

function logBeginAndEnd({ run, recorder }: StartedRun): void {
  const { harness, sandbox } = run.plan;
  run.log.info({ harness: harness.actor.id, sandbox: sandbox.actor.name }, "a run begins");
  void recorder.done.then((result) => {
    const outcome = result?.failure?.code ?? result?.stopReason ?? "lost";
    run.log.info({ outcome }, "a run has ended");
  });
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
  { run, recorder }: StartedRun,
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
