import { AmbitError, type InteractionAnswer, type RunRequest, type RunResult } from "@ambit/client";
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ElicitRequestFormParams,
  type InputRequests,
  inputRequired,
  type JSONRPCRequest,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  RELATED_TASK_META_KEY,
  type ReadResourceResult,
  ResourceNotFoundError,
  type Result,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { type DoorConfig, requestSchema } from "./config.js";
import { bytesOf, contentOf, fileOf, fileTemplates, maxFileBytes } from "./file-resources.js";
import {
  failedOutcome,
  invalidOutcome,
  type Outcome,
  outcomeOf,
  progressOf,
  refusedOutcome,
  type Spoken,
  toolResultOf,
  waitingOutcome,
} from "./outcome.js";
import { answerOf, formOf, formResultSchema, type Question } from "./questions.js";
import { type Caller, type Position, type RunInfo, Runs, type Stop } from "./runs.js";
import { legacyTask, modernTask, taskState, tasksExtension } from "./tasks.js";
import { cancelArguments, continueArguments, type GivenAnswer, runArguments, tools } from "./tools.js";

/** The field of a call's `_meta` in which the program around the model brings fields of the run's request. */
export const requestMetaKey = "ambit/request";
const requestMetaPath = `_meta["${requestMetaKey}"]`;

export interface AgentService {
  readonly config: DoorConfig;
  readonly version: string;
  /** Who sent this message. */
  callerOf(context: ServerContext): Caller;
  /** Called as a tool's call begins; disposed when it is answered. Default: nothing. */
  beginCall?(): Disposable;
}

const callSchema = z.object({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).default({}),
  task: z.looseObject({}).optional(),
});
const metaSchema = requestSchema
  .default({})
  .refine(({ messages }) => messages === undefined, { error: "must have no messages" });
const taskSchema = z.object({ taskId: z.string().min(1).max(128) });
const positionSchema = z.object({ runId: z.string(), after: z.int().nonnegative() });

/**
 * An MCP server whose tools are runs, for one connection or one request. The same handlers serve both generations of the
 * protocol.
 */
export function agentServer(service: AgentService, era: "legacy" | "modern"): Server {
  const isModern = era === "modern";
  const server = new TaskServer(
    { name: "ambit", title: "Ambit", version: service.version },
    {
      capabilities: {
        tools: {},
        resources: {},
        ...(isModern
          ? { extensions: { [tasksExtension]: {} } }
          : { tasks: { cancel: {}, requests: { tools: { call: {} } } } }),
      },
      instructions:
        "Runs coding agents in sandboxes whose boundaries are guaranteed. run_agent begins, continue_run goes on and brings the user's answers, cancel_run ends.",
    },
  );
  server.setRequestHandler("tools/list", () => ({ tools: [...tools] }));

  const clientOf = ({ mcpReq }: ServerContext): ClientSide => {
    const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {};
    const said = isModern ? envelope[CLIENT_CAPABILITIES_META_KEY] : server.getClientCapabilities();
    const { elicitation, extensions = {} } = capabilitiesSchema.safeParse(said).data ?? {};
    return {
      isModern,
      // Without a mode, a client means forms.
      showsForms:
        elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined),
      knowsTasks: Object.hasOwn(extensions, tasksExtension),
    };
  };
  const callOf = (context: ServerContext) => new AgentCall(service, context, clientOf(context));

  server.setRequestHandler("tools/call", { params: callSchema }, async (params, context) => {
    using _call = service.beginCall?.();
    return await callOf(context).callTool(params);
  });
  server.setRequestHandler("resources/list", () => ({ resources: [] }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [...fileTemplates] }));
  server.setRequestHandler("resources/read", ({ params: { uri } }, context) =>
    readFile(new Runs(service.callerOf(context)), uri),
  );
  server.setRequestHandler("tasks/get", { params: taskSchema }, ({ taskId }, context) =>
    callOf(context).getTask(taskId),
  );
  server.setRequestHandler("tasks/cancel", { params: taskSchema }, ({ taskId }, context) =>
    callOf(context).cancelTask(taskId),
  );
  if (isModern) {
    server.setRequestHandler("tasks/update", { params: taskSchema }, ({ taskId }, context) =>
      callOf(context).updateTask(taskId),
    );
  } else {
    server.setRequestHandler("tasks/result", { params: taskSchema }, async ({ taskId }, context) => {
      using _call = service.beginCall?.();
      return await callOf(context).taskResult(taskId);
    });
  }
  return server;
}

/** A file of a run. @throws ProtocolError for one that this caller doesn't have, or that is too large for a message */
async function readFile(runs: Runs, uri: string): Promise<ReadResourceResult> {
  const file = fileOf(uri);
  if (file === undefined) throw new ResourceNotFoundError(uri);
  try {
    const bytes = await bytesOf(await runs.file(file.runId, file.path), maxFileBytes);
    if (bytes !== undefined) return { contents: [contentOf(uri, bytes)] };
  } catch (error) {
    if (error instanceof AmbitError && error.status === 404)
      throw new ResourceNotFoundError(uri, error.message);
    throw error;
  }
  const message = `${file.path} has more than ${maxFileBytes} bytes, too many for a message: get it from a server on the same store, by GET /runs/${file.runId}/files/${file.path}`;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/** The SDK's server knows no tasks: it takes the result of a call that became one for a malformed result. */
class TaskServer extends Server {
  protected override _wrapHandler(method: string, handler: Handler): Handler {
    return method === "tools/call" ? handler : super._wrapHandler(method, handler);
  }
}

/** What the client can do. */
interface ClientSide {
  readonly isModern: boolean;
  readonly showsForms: boolean;
  /** In the 2026-07-28 protocol, where the server decides which calls are tasks. */
  readonly knowsTasks: boolean;
}

const capabilitiesSchema = z.looseObject({
  elicitation: z.looseObject({ form: z.unknown().optional(), url: z.unknown().optional() }).optional(),
  extensions: z.record(z.string(), z.unknown()).optional(),
});

/** Requests of a call's turns. */
interface Settings {
  /** The one that the call begins: it may have an id that the caller chose. */
  readonly first: RunRequest;
  /** A further one, where its run paused before the answer came. */
  readonly next: RunRequest;
}

/** How a call follows its run. */
interface Following {
  readonly cancel?: AbortSignal;
  /** The request of a further turn. Undefined: the call ends where the run pauses. */
  readonly next?: RunRequest;
}

/** One request of a client that begins, follows or ends runs. */
class AgentCall {
  readonly #config: DoorConfig;
  readonly #context: ServerContext;
  readonly #client: ClientSide;
  readonly #runs: Runs;
  #progress = 0;
  #spoken: Spoken = { text: "" };

  constructor(service: AgentService, context: ServerContext, client: ClientSide) {
    this.#config = service.config;
    this.#context = context;
    this.#client = client;
    this.#runs = new Runs(service.callerOf(context));
  }

  get #meta(): Readonly<Record<string, unknown>> {
    return { [requestMetaPath]: this.#context.mcpReq._meta?.[requestMetaKey] };
  }

  async callTool(call: z.output<typeof callSchema>): Promise<Result> {
    switch (call.name) {
      case "run_agent":
        return await this.#run(call);
      case "continue_run":
        return await this.#continue(call);
      case "cancel_run":
        return await this.#cancel(call);
      default:
        throw new ProtocolError(
          ProtocolErrorCode.InvalidParams,
          `There is no tool '${call.name}'. Offered: ${tools.map(({ name }) => name).join(", ")}.`,
        );
    }
  }

  async #run(call: z.output<typeof callSchema>): Promise<Result> {
    const parsed = runArguments.safeParse(call.arguments);
    if (!parsed.success) return toolResultOf(invalidOutcome(parsed.error));
    const { prompt, agent, model, sessionId } = parsed.data;
    const refused = this.#refuseChoices({
      "arguments.agent": agent,
      "arguments.model": model,
      ...this.#meta,
    });
    if (refused !== undefined) return refused;
    return await this.#settled(async () => {
      const { first, next } = this.#settings({
        ...(agent === undefined ? {} : { harness: agent }),
        ...(model === undefined ? {} : { model }),
        ...(sessionId === undefined ? {} : { sessionId }),
      });
      const resumed = await this.#resumed();
      const at = resumed ?? (await this.#runs.begin({ ...first, messages: [user(prompt)] }));
      return await this.#serve(call, at, next);
    });
  }

  async #continue(call: z.output<typeof callSchema>): Promise<Result> {
    const parsed = continueArguments.safeParse(call.arguments);
    if (!parsed.success) return toolResultOf(invalidOutcome(parsed.error));
    const { runId, prompt, model, answers = [] } = parsed.data;
    const refused = this.#refuseChoices({ "arguments.model": model, ...this.#meta });
    if (refused !== undefined) return refused;
    return await this.#settled(async () => {
      const { sessionId, harness, events } = await this.#runs.info(runId);
      const { first, next } = this.#settings({
        harness,
        ...(model === undefined ? {} : { model }),
        ...(sessionId === undefined ? {} : { sessionId }),
      });
      const resumed = await this.#resumed();
      if (resumed !== undefined) return await this.#serve(call, resumed, next);
      await this.#runs.answer(runId, Object.fromEntries(answers.map(answerEntry)));
      const at =
        prompt === undefined
          ? { runId, after: events }
          : await this.#runs.begin({ ...first, messages: [user(prompt)] });
      return await this.#serve(call, at, next);
    }, runId);
  }

  async #cancel(call: z.output<typeof callSchema>): Promise<Result> {
    const parsed = cancelArguments.safeParse(call.arguments);
    if (!parsed.success) return toolResultOf(invalidOutcome(parsed.error));
    const { runId } = parsed.data;
    return await this.#settled(async () => {
      const cancelled = await this.#runs.cancel(runId);
      const text = cancelled ? `The run ${runId} was cancelled.` : `The run ${runId} had ended before.`;
      return { content: [{ type: "text", text }], structuredContent: { runId, cancelled } };
    }, runId);
  }

  /** The answer to a call whose run there is: its handle at once, as a task, or its end. */
  async #serve(call: z.output<typeof callSchema>, at: Position, next: RunRequest): Promise<Result> {
    if (this.#client.isModern ? this.#client.knowsTasks : call.task !== undefined) {
      const state = taskState(await this.#runs.info(at.runId), undefined, false);
      return this.#client.isModern
        ? { resultType: "task", ...modernTask(state) }
        : { task: legacyTask(state) };
    }
    return await this.#follow(at, { cancel: this.#context.mcpReq.signal, next });
  }

  async #follow(from: Position, following: Following): Promise<Result> {
    const beat = setInterval(() => this.#notify("still running"), this.#config.heartbeatMs);
    beat.unref();
    try {
      return await this.#untilItEnds(from, following);
    } finally {
      clearInterval(beat);
    }
  }

  async #untilItEnds(from: Position, { cancel, next }: Following): Promise<Result> {
    let at = from;
    for (;;) {
      const stop = await this.#runs.read(at, {
        ...(cancel === undefined ? {} : { cancel }),
        hear: (event) => {
          const [spoken, message] = progressOf(this.#spoken, event);
          this.#spoken = spoken;
          if (message !== undefined) this.#notify(message);
        },
      });
      if (stop.kind === "ended") return await this.#resultOf(await this.#ended(stop.result));
      at = stop.at;
      if (stop.kind === "paused" && stop.questions.length === 0 && stop.isAnswered && next !== undefined) {
        // The answer came after the run had paused: the session's next turn has it.
        const { sessionId = next.sessionId } = stop.result;
        at = await this.#runs.begin({ ...next, ...(sessionId === undefined ? {} : { sessionId }) });
        continue;
      }
      const forms = this.#formsOf(stop.questions);
      if (forms === undefined || (stop.kind === "paused" && next === undefined))
        return await this.#resultOf(await this.#waiting(stop));
      if (this.#client.isModern)
        return inputRequired({ inputRequests: requestsOf(forms), requestState: JSON.stringify(at) });
      if (!(await this.#elicit(at.runId, stop.questions, forms)))
        return await this.#resultOf(await this.#waiting(stop));
    }
  }

  async #resultOf(outcome: Outcome): Promise<CallToolResult> {
    return toolResultOf(outcome, await this.#runs.embedded(outcome));
  }

  async #ended(result: RunResult, questions: readonly Question[] = []): Promise<Outcome> {
    return outcomeOf(result, questions, await this.#runs.fileUrls(result));
  }

  async #waiting(stop: Exclude<Stop, { kind: "ended" }>): Promise<Outcome> {
    if (stop.kind === "paused") return await this.#ended(stop.result, stop.questions);
    return waitingOutcome(await this.#runs.info(stop.at.runId), stop.questions);
  }

  /** The forms of all questions by their ids; undefined where there is none, or this client or a form can't ask one of them. */
  #formsOf(questions: readonly Question[]): ReadonlyMap<string, ElicitRequestFormParams> | undefined {
    if (!this.#client.showsForms || questions.length === 0) return undefined;
    const forms = questions.map((question) => [question.id, formOf(question)] as const);
    const askable = forms.flatMap(([id, form]) => (form === undefined ? [] : [[id, form] as const]));
    return askable.length === questions.length ? new Map(askable) : undefined;
  }

  /** Asks the client's user, and passes the answers on. False if one got none: the client failed, or its user took too long. */
  async #elicit(
    runId: string,
    questions: readonly Question[],
    forms: ReadonlyMap<string, ElicitRequestFormParams>,
  ): Promise<boolean> {
    const { mcpReq } = this.#context;
    const options = { timeout: Math.max(this.#config.answerWaitMs, 60_000), signal: mcpReq.signal };
    const questionsWithForms = questions.flatMap((question) => {
      const form = forms.get(question.id);
      return form === undefined ? [] : [{ question, form }];
    });
    const results = await Promise.allSettled(
      questionsWithForms.map(async ({ question, form }) => {
        const result = await mcpReq.elicitInput(form, options);
        await this.#runs.answer(runId, { [question.id]: answerOf(question, result) });
      }),
    );
    return results.every(({ status }) => status === "fulfilled");
  }

  /** Where the retry of a call goes on that was answered with questions (2026-07-28). */
  async #resumed(): Promise<Position | undefined> {
    const state = this.#context.mcpReq.requestState<string>();
    if (state === undefined) return undefined;
    // It came from the client: it names a run, which the server gives only to its own caller.
    const { data: at } = positionSchema.safeParse(jsonOf(state));
    if (at === undefined)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "The requestState is not this server's.");
    await this.#answerOpen(at.runId);
    return at;
  }

  /** Passes the answers that came with this request on to those questions of the run that are open. */
  async #answerOpen(runId: string): Promise<void> {
    const responses = this.#context.mcpReq.inputResponses ?? {};
    const answers = (await this.#runs.openQuestions(runId)).flatMap((question) => {
      const response = Object.hasOwn(responses, question.id) ? responses[question.id] : undefined;
      const { data } = formResultSchema.safeParse(response);
      return data === undefined ? [] : [[question.id, answerOf(question, data)] as const];
    });
    await this.#runs.answer(runId, Object.fromEntries(answers));
  }

  async getTask(taskId: string): Promise<Result> {
    this.#requireTasks();
    const info = await this.#task(taskId);
    const outcome = await this.#endOf(info);
    const forms = outcome === undefined ? this.#formsOf(await this.#runs.openQuestions(taskId)) : undefined;
    const state = taskState(info, outcome, forms !== undefined);
    return this.#client.isModern
      ? modernTask(state, {
          ...(outcome === undefined ? {} : { result: await this.#resultOf(outcome) }),
          ...(forms === undefined ? {} : { inputRequests: requestsOf(forms) }),
        })
      : legacyTask(state);
  }

  /** Waits for the run's end, and asks its questions meanwhile (2025-11-25). */
  async taskResult(taskId: string): Promise<Result> {
    const info = await this.#task(taskId);
    const outcome = await this.#endOf(info);
    const result = await this.#settled(
      async () => (outcome === undefined ? await this.#followTask(info) : await this.#resultOf(outcome)),
      taskId,
    );
    return { ...result, _meta: { [RELATED_TASK_META_KEY]: { taskId } } };
  }

  async #followTask(info: RunInfo): Promise<Result> {
    const { runId, events } = info;
    const questions = await this.#runs.openQuestions(runId);
    const forms = this.#formsOf(questions);
    if (forms !== undefined && !(await this.#elicit(runId, questions, forms)))
      return toolResultOf(waitingOutcome(info, questions));
    return await this.#follow({ runId, after: events }, {});
  }

  async updateTask(taskId: string): Promise<Result> {
    this.#requireTasks();
    await this.#task(taskId);
    await this.#answerOpen(taskId);
    return {};
  }

  async cancelTask(taskId: string): Promise<Result> {
    this.#requireTasks();
    const info = await this.#task(taskId);
    const cancelled = await this.#runs.cancel(taskId);
    if (this.#client.isModern) return {};
    if (!cancelled)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The task ${taskId} has ended already.`);
    return { ...legacyTask(taskState(info, undefined, false)), status: "cancelled" };
  }

  async #task(taskId: string): Promise<RunInfo> {
    try {
      return await this.#runs.info(taskId);
    } catch (error) {
      if (!(error instanceof AmbitError) || error.status !== 404) throw error;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no task '${taskId}'.`);
    }
  }

  /** What came of a run that has ended; undefined before. */
  async #endOf({ runId, state, events }: RunInfo): Promise<Outcome | undefined> {
    if (state !== "ended") return undefined;
    try {
      const stop = await this.#runs.read({ runId, after: events });
      return stop.kind === "ended" ? await this.#ended(stop.result) : await this.#waiting(stop);
    } catch (error) {
      if (error instanceof AmbitError) return failedOutcome(error, runId);
      throw error;
    }
  }

  /** A token of one session has the request of its runs: the caller chooses none. */
  #refuseChoices(choices: Readonly<Record<string, unknown>>): Result | undefined {
    const names = Object.keys(choices).filter((name) => choices[name] !== undefined);
    if (!this.#runs.areOfOneSession || names.length === 0) return undefined;
    return toolResultOf(
      refusedOutcome(names.map((name) => ({ path: name, message: "is the token's: leave it out" }))),
    );
  }

  /** The request of a run without its prompt: the deployer's, then that of the program around the model, then the model's. */
  #settings(own: RunRequest): Settings {
    const meta = metaSchema.safeParse(this.#meta[requestMetaPath]);
    if (!meta.success)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `${requestMetaPath} must be an object of a run's fields, without messages: the prompt is an argument.`,
      );
    const { runId, ...fields } = meta.data;
    const next = {
      onDisconnect: "continue" as const,
      ...(this.#client.showsForms ? { interactions: { waitMs: this.#config.answerWaitMs } } : {}),
      ...this.#config.request,
      ...fields,
      ...own,
    };
    return { next, first: runId === undefined ? next : { ...next, runId } };
  }

  /** A failure of the run, or a refusal of the server, as a result: the model can read the reasons and their fixes. */
  async #settled(call: () => Promise<Result>, runId?: string): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof AmbitError) return toolResultOf(failedOutcome(error, runId));
      throw error;
    }
  }

  #requireTasks(): void {
    if (this.#client.isModern && !this.#client.knowsTasks)
      throw new MissingRequiredClientCapabilityError({
        requiredCapabilities: { extensions: { [tasksExtension]: {} } },
      });
  }

  #notify(message: string): void {
    const { mcpReq } = this.#context;
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken === undefined) return;
    this.#progress += 1;
    const params = { progressToken, progress: this.#progress, message };
    // A client that has left hears nothing.
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
  }
}

const user = (content: string) => ({ role: "user" as const, content });

function answerEntry({ id, approved, output = null, isError = false }: GivenAnswer) {
  const answer: InteractionAnswer = approved === undefined ? { output, isError } : { approved };
  return [id, answer] as const;
}

function requestsOf(forms: ReadonlyMap<string, ElicitRequestFormParams>): InputRequests {
  return Object.fromEntries([...forms].map(([id, form]) => [id, inputRequired.elicit(form)]));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
