import type { IncomingMessage } from "node:http";
import {
  AtCapacity,
  IdempotencyKeyReused,
  idOfRun,
  isAmbitError,
  limits,
  NotFound,
  onDisconnectOf,
  RequestInvalid,
  RunCancelled,
  runKey,
  SessionElsewhere,
  StoreFailed,
} from "@ambit/core";
import { projectOf, waitsForSession } from "@ambit/core/contract";
import { unlessAborted } from "@ambit/core/plugin";
import type { AcceptedResponse, Recorder } from "@ambit/durable";
import type { StoredRun } from "@ambit/durable/store";
import type { Run } from "@ambit/runner";
import { callerOf, type Principal, principalOf, tenantOf } from "../../tenants/caller.js";
import { callerOptions, callersTrace } from "../caller/caller-options.js";
import { requireOpenQuestions, runOfPage } from "../pages/run-of-page.js";
import { json } from "../response/json-response.js";
import { answerSignal, leftSignal } from "../response/left-signal.js";
import type { ResponseFormat } from "../response/response-format.js";
import { sendLargeJson } from "../response/send.js";
import { readerOf } from "../response/unread.js";
import type { RouteAnswer } from "../route/route.js";
import type { Exchange, ServedRuns, ServerContext } from "../server-context.js";
import { type EndOfRequest, nextStep, type RequestFacts } from "./beginnings.js";
import { asksToDetach, commandKey, idempotencyKey, prefersAsync } from "./run-body.js";
import type { QueuedRun } from "./run-queue.js";
import { sendRecords } from "./send-records.js";
import { sendStoredResult } from "./stored-response.js";

/** A request for a run, as it was read. */
interface RunAttempt {
  readonly context: ServerContext;
  readonly server: ServedRuns;
  readonly incoming: IncomingMessage;
  /** Whose rules and quotas hold. */
  readonly caller: Principal;
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

type Facts = RequestFacts<StoredRun, StartedRun, QueuedRun>;

/**
 * Begins a run for the caller of `POST /run` or `/stream`, or queues it. The caller then reads its log like any other reader.
 * Checks for a free slot, reads the body, takes the slot, and plans.
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
      return accepted(end.run.runId, "queued");
    case "follow_queued":
      return followQueued(context, server, exchange, form, end.run);
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
  const sender = callerOf(incoming);
  const caller = principalOf(sender);
  const signal = answerSignal(outgoing, server.runs.options.settings.answerTimeoutMs);
  const named = idempotencyKey(incoming);
  const keyOf = (id: string) => runKey(id, tenantOf(caller));
  // A slow body doesn't occupy a slot, but no body is read if there is no free slot, unless its run exists already: then that
  // run may have taken the last one.
  const refusal = isAsync ? undefined : refusalOfSlot(context);
  const isBegunAlready = async () => named !== undefined && isBegun(context, server, keyOf(named), signal);
  if (refusal !== undefined && !(await isBegunAlready())) throw refusal;
  const received = await bodies.json(incoming, limits.bodyBytes);
  const ofPage = sender.kind === "page" ? runOfPage(sender.grant, received) : undefined;
  const body = ofPage === undefined ? received : ofPage.body;
  const isDetached = isAsync || asksToDetach(body);
  const command = commandKey(body, caller, runner.registry.dialects);
  const id = named ?? command;
  // A command may be sent again with other facts around it.
  const repeated = id === command ? command : body;
  const digest = id === undefined ? "" : server.sealing.digest(repeated);
  const key = id === undefined ? undefined : keyOf(id);
  if (sender.kind === "page" && ofPage !== undefined && ofPage.answers.length > 0) {
    // Sent again, a request finds its run, which has used its answers.
    const isRepeated = key !== undefined && (await isBegun(context, server, key, signal));
    if (!isRepeated) await requireOpenQuestions(server.runs.store, sender.grant, ofPage.answers);
  }
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
async function findOrBegin(attempt: RunAttempt): Promise<EndOfRequest<StoredRun, StartedRun, QueuedRun>> {
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
  const created = waitsForSession(run.request)
    ? await createUnlessBusy(attempt, run)
    : await create(attempt, run);
  if (created === "session_busy") {
    // Its id is free again, for the run that waits.
    await run.ended;
    return { attempt: { outcome: created } };
  }
  if (created === "over_quota")
    return { attempt: { outcome: "over_quota", sessionId: run.request.sessionId } };
  if ("existing" in created) return { existing: await existingRun(created.existing, attempt) };
  return { attempt: { outcome: "running", run: { run, recorder: created.recorder } } };
}

/** The same for a run that waits while another one has its session here, on another replica, or waits for it. */
async function createUnlessBusy(attempt: RunAttempt, run: Run) {
  const { context, server } = attempt;
  const { request } = run;
  try {
    const first = context.runner.runIn(request.sessionId ?? "", projectOf(request));
    if (first === run && !(await server.queue.hasRunsOf(request))) return await create(attempt, run);
  } catch (error) {
    run.withdraw();
    // The replica that has the session takes the run from the queue.
    if (error instanceof SessionElsewhere) return "session_busy" as const;
    throw error;
  }
  run.withdraw();
  return "session_busy" as const;
}

/** Leaves the request for a free slot of any replica, or for its session. @throws AtCapacity, RequestInvalid, BoundaryRefused, StoreFailed */
async function queue(attempt: RunAttempt): Promise<Pick<Facts, "attempt" | "existing">> {
  const { server, incoming, body, id, digest, caller } = attempt;
  const queued = await server.queue.add({ body, trace: callersTrace(incoming) }, id, digest, caller);
  if ("existing" in queued) return { existing: await existingRun(queued.existing, attempt) };
  return { attempt: { outcome: "queued", run: queued.run } };
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

/** Responds to the caller whose run waits for its session: the records come once it has begun. @throws AtCapacity */
async function followQueued(
  context: ServerContext,
  server: ServedRuns,
  exchange: Exchange,
  form: ResponseFormat,
  run: QueuedRun,
): Promise<RouteAnswer> {
  const { outgoing } = exchange;
  const leave = () => {
    if (outgoing.writableFinished || run.onDisconnect === "continue") return;
    server.runs.cancel(run.id).catch((error: unknown) => {
      if (!(error instanceof NotFound))
        context.log.warn({ runId: run.runId, error }, "a run whose caller left could not be cancelled");
    });
  };
  outgoing.once("close", leave);
  if (outgoing.destroyed) leave();
  return followRun(context, server, exchange, form, run);
}

/** Responds to a repeated request with the run that the first one began. @throws AtCapacity */
async function respondExisting(
  context: ServerContext,
  server: ServedRuns,
  exchange: Exchange,
  form: ResponseFormat | "detached",
  run: StoredRun,
): Promise<RouteAnswer> {
  if (form === "detached") return accepted(idOfRun(run.id), run.state);
  return followRun(context, server, exchange, form, run);
}

/** Responds with the records or the result of a run that this request didn't begin here. @throws AtCapacity */
async function followRun(
  context: ServerContext,
  { runs }: ServedRuns,
  { outgoing }: Exchange,
  form: ResponseFormat,
  { id, project }: Pick<StoredRun, "id" | "project">,
): Promise<RouteAnswer> {
  const runId = idOfRun(id);
  const left = leftSignal(outgoing);
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
