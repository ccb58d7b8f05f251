import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import {
  AtCapacity,
  CommandExecuted,
  IdempotencyKeyReused,
  idOfRun,
  isAmbitError,
  isJsonObject,
  limits,
  NotFound,
  onDisconnectOf,
  projectOf,
  RequestInvalid,
  RunCancelled,
  runIdSchema,
  runKey,
  SessionElsewhere,
  StoreFailed,
} from "@ambit/core";
import { waitsForSession } from "@ambit/core/contract";
import { type Dialect, unlessAborted } from "@ambit/core/plugin";
import type { AcceptedResponse, Recorder } from "@ambit/durable";
import type { StoredRun } from "@ambit/durable/store";
import { commandIn, type Run } from "@ambit/runner";
import { failedBy } from "../../results.js";
import { callerOf, type Principal, principalOf, tenantOf } from "../../tenants/caller.js";
import { callerOptions, callersTrace } from "../caller/admit-caller.js";
import { requireOpenQuestions, runOfPage } from "../pages/run-of-page.js";
import {
  keepAlive,
  mediaTypes,
  onlyRecord,
  RecordWriter,
  type ResponseFormat,
  responseFormat,
  sendRecords,
} from "../response/records.js";
import { answerSignal, json, leftSignal, onceLeft, sendLargeJson } from "../response/send.js";
import type { RouteAnswer } from "../route/route.js";
import type { Exchange, ServedRuns, ServerContext } from "../server-context.js";
import { type EndOfRequest, nextStep, type RequestFacts } from "./beginnings.js";
import type { QueuedRun } from "./run-queue.js";
import { sendStoredResult } from "./stored-response.js";

/** The run's id from a header. @throws RequestInvalid */
function idempotencyKey({ headers }: IncomingMessage): string | undefined {
  const key = headers["idempotency-key"];
  if (key === undefined) return undefined;
  const parsed = runIdSchema.safeParse(key);
  if (parsed.success) return parsed.data;
  const messages = parsed.error.issues.map(({ message }) => ({ path: "Idempotency-Key", message }));
  throw new RequestInvalid(messages);
}

/**
 * The id of the run for a request's command, the same for every replica: a stored run of it is found again. Undefined where
 * the request has no command, or names its run.
 */
export function commandKey(
  body: unknown,
  caller: Principal,
  dialects: readonly Dialect[],
): string | undefined {
  if (!isJsonObject(body) || (body.runId ?? body.run_id) != null) return undefined;
  const command = commandIn(dialects, body);
  if (command === undefined) return undefined;
  const projectId = body.projectId ?? body.project_id;
  const runContext = body.runContext ?? body.run_context;
  const project =
    caller.kind === "tenant"
      ? caller.tenant.project
      : projectOf({
          ...(typeof projectId === "string" ? { projectId } : {}),
          ...(isJsonObject(runContext) ? { runContext } : {}),
        });
  const digest = createHash("sha256").update(JSON.stringify([project ?? null, command.id]));
  return `command:${digest.digest("hex")}`;
}

/** Whether the caller only wants the run's address (RFC 7240). */
function prefersAsync({ headers }: IncomingMessage): boolean {
  const preferences = [headers.prefer ?? []].flat().flatMap((header) => header.split(/[,;]/));
  return preferences.some((preference) => preference.trim().toLowerCase() === "respond-async");
}

function asksToDetach(body: unknown): boolean {
  return isJsonObject(body) && body.detach === true;
}

/** A caller of `POST /run` or `/stream`. */
interface RunCall {
  readonly context: ServerContext;
  readonly server: ServedRuns;
  readonly exchange: Exchange;
  readonly form: ResponseFormat;
}

/** A request for a run, as it was read. */
interface RunAttempt extends RunCall {
  /** Whose rules and quotas hold. */
  readonly caller: Principal;
  readonly body: unknown;
  readonly isDetached: boolean;
  /** What names the run to its caller: an idempotency key or a command. */
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
type End = EndOfRequest<StoredRun, StartedRun, QueuedRun>;

/**
 * Begins a run for the caller of `POST /run` or `/stream`, or queues it. The caller then reads its log like any other reader.
 * Checks for a free slot, reads the body, takes the slot, and plans.
 * @throws AtCapacity, HttpRefusal, RequestInvalid, BoundaryRefused, IdempotencyKeyReused, SessionElsewhere,
 * StoreFailed before anything was sent.
 */
export async function handleRun(
  context: ServerContext,
  exchange: Exchange,
  byDefault: ResponseFormat,
): Promise<RouteAnswer> {
  const server = await context.served();
  const form = responseFormat(exchange.incoming.headers.accept, byDefault);
  const call: RunCall = { context, server, exchange, form };
  try {
    const attempt = await readAttempt(call);
    return await respond(attempt, await server.beginnings.inTurn(attempt.key, () => findOrBegin(attempt)));
  } catch (error) {
    if (!(error instanceof CommandExecuted)) throw error;
    await sendCommand(error, call);
    return undefined;
  }
}

async function readAttempt(call: RunCall): Promise<RunAttempt> {
  const { context, server, exchange } = call;
  const { incoming, outgoing } = exchange;
  const isAsync = prefersAsync(incoming);
  const sender = callerOf(incoming);
  const caller = principalOf(sender);
  const signal = answerSignal(outgoing, server.runs.options.settings.answerTimeoutMs);
  const named = idempotencyKey(incoming);
  const keyOf = (id: string) => runKey(id, tenantOf(caller));
  // A slow body doesn't occupy a slot, but no body is read if there is no free slot, unless its run exists already: then that
  // run may have taken the last one.
  const refusal = isAsync ? undefined : refusalOfSlot(context);
  const isBegunAlready = async () => named !== undefined && isBegun(call, keyOf(named), signal);
  if (refusal !== undefined && !(await isBegunAlready())) throw refusal;
  const received = await context.bodies.json(incoming, limits.bodyBytes);
  const ofPage = sender.kind === "page" ? runOfPage(sender.grant, received) : undefined;
  const body = ofPage === undefined ? received : ofPage.body;
  const isDetached = isAsync || asksToDetach(body);
  const command = commandKey(body, caller, context.runner.registry.dialects);
  const id = named ?? command;
  // A command may be sent again with other facts around it.
  const repeated = id === command ? command : body;
  const digest = id === undefined ? "" : server.sealing.digest(repeated);
  const key = id === undefined ? undefined : keyOf(id);
  if (sender.kind === "page" && ofPage !== undefined && ofPage.answers.length > 0) {
    // Sent again, a request finds its run, which has used its answers.
    const isRepeated = key !== undefined && (await isBegun(call, key, signal));
    if (!isRepeated) await requireOpenQuestions(server.runs.store, sender.grant, ofPage.answers);
  }
  return { ...call, caller, body, isDetached, id, key, repeated, digest, signal };
}

/** Does what `nextStep` says of the facts so far, and learns more of them by it, until the request has its run. */
async function findOrBegin(attempt: RunAttempt): Promise<End> {
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
  const { context, exchange, body, id, form, isDetached } = attempt;
  const keepsEvents = form === "json" && !isDetached;
  const options = { keepsEvents, ...callerOptions(exchange.incoming), runId: id };
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
  const { server, exchange, body, id, digest, caller } = attempt;
  const queued = await server.queue.add({ body, trace: callersTrace(exchange.incoming) }, id, digest, caller);
  if ("existing" in queued) return { existing: await existingRun(queued.existing, attempt) };
  return { attempt: { outcome: "queued", run: queued.run } };
}

/** Whether an earlier request with this key has its run, or is about to. */
async function isBegun(
  { context: { runner }, server: { runs, beginnings } }: RunCall,
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

async function respond(attempt: RunAttempt, end: End): Promise<RouteAnswer> {
  const { context, server, exchange, isDetached } = attempt;
  switch (end.step) {
    case "respond_existing":
      if (isDetached) return accepted(idOfRun(end.run.id), end.run.state);
      return followRun(attempt, end.run);
    case "accept_queued":
      return accepted(end.run.runId, "queued");
    case "follow_queued": {
      const { id, runId, onDisconnect } = end.run;
      onceLeft(exchange.outgoing, () => {
        if (onDisconnect === "continue") return;
        server.runs.cancel(id).catch((error: unknown) => {
          if (!(error instanceof NotFound))
            context.log.warn({ runId, error }, "a run whose caller left could not be cancelled");
        });
      });
      return followRun(attempt, end.run);
    }
    case "begin":
      logBeginAndEnd(end.run);
      if (isDetached) return accepted(end.run.run.id, "running");
      await sendRun(attempt, end.run);
      return undefined;
  }
}

/** Responds to the caller that began the run, and may disconnect. */
async function sendRun(attempt: RunAttempt, { run, recorder }: StartedRun): Promise<void> {
  const { context, exchange, form } = attempt;
  const { outgoing } = exchange;
  const left = leftSignal(outgoing);
  onceLeft(outgoing, () => {
    const onDisconnect = onDisconnectOf(run.request);
    run.log.info({ onDisconnect }, "the caller left");
    if (onDisconnect === "cancel") run.cancel(new RunCancelled("The client went away.", "caller"));
  });
  const result = form === "json" ? await recorder.done : undefined;
  // A stream is the run's log. A result that isn't there is another replica's, which has ended the run.
  if (result === undefined) return await sendLog(attempt, run.key, left);
  const failure = result.ok ? undefined : await run.ended;
  // Its events count as much again.
  using _unread = context.unread.hold(2 * recorder.resultLength, outgoing);
  await sendLargeJson(outgoing, failure?.status ?? 200, result, { "x-ambit-run-id": run.id });
}

/** Responds with the records or the result of a run that this request didn't begin here. @throws AtCapacity */
async function followRun(
  attempt: RunAttempt,
  { id, project }: Pick<StoredRun, "id" | "project">,
): Promise<RouteAnswer> {
  const { context, exchange } = attempt;
  const left = leftSignal(exchange.outgoing);
  const read = () => sendLog(attempt, id, left);
  await context.readers.reading({ id, project }, read, () => void exchange.outgoing.destroy());
  return undefined;
}

/** Sends the records of a run, or once it has ended its result, as the log has them. @param key the run's */
async function sendLog(
  { context, server: { runs }, exchange: { outgoing }, form }: RunCall,
  key: string,
  left: AbortSignal,
): Promise<void> {
  if (form !== "json")
    return await sendRecords(idOfRun(key), form, runs.follow(key, 0, left), outgoing, context);
  const ended = await runs.ended(key, left);
  if (ended !== undefined) await sendStoredResult(context, runs, ended, outgoing, left);
}

/**
 * Responds to a request whose command began a run before: with that run's result, once it has ended. In a stream it is
 * the only record.
 * @throws CommandExecuted when the result is no longer kept, if the response is JSON
 */
async function sendCommand(
  executed: CommandExecuted,
  { context, exchange: { outgoing }, form }: RunCall,
): Promise<void> {
  if (form === "json") {
    const result = await executed.result;
    if (result === undefined) throw executed;
    return sendLargeJson(outgoing, 200, result);
  }
  outgoing.writeHead(200, { "content-type": mediaTypes[form], "cache-control": "no-store" });
  outgoing.flushHeaders();
  const writer = new RecordWriter(outgoing);
  using _alive = keepAlive(form, writer);
  const left = leftSignal(outgoing);
  const gone = new Promise<undefined>((resolve) => left.addEventListener("abort", () => resolve(undefined)));
  const result = await Promise.race([executed.result, gone]);
  const text = onlyRecord(form, result ?? failedBy(executed.toFailure(), executed.message));
  using _unread = context.unread.hold(text.length, outgoing);
  await writer.writeInParts(text);
  writer.end();
}
