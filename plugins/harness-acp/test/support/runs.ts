import {
  type Agent,
  type AgentEvent,
  type AgentEventOf,
  type LateStart,
  type Log,
  type PermissionDecision,
  type PermissionQuestion,
  type PublishedServer,
  type RunRequest,
  runRequestSchema,
  type Sandbox,
  type StartScope,
  type Turn,
} from "@ambit/core/plugin";

/** A request as it arrives, with the contract's defaults. */
export function requestOf(request: object = {}): RunRequest {
  return runRequestSchema.parse(request);
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export function recordingLog(lines: LogLine[] = []): Log {
  const at = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    lines.push({ level, message, fields });
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** What core gives a harness, closed afterwards in reverse order. */
export class TestScope implements StartScope {
  readonly servers: readonly PublishedServer[];
  readonly request: RunRequest;
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly resume?: string;
  readonly logged: LogLine[] = [];
  readonly log = recordingLog(this.logged);
  whyLate: () => LateStart | undefined = () => undefined;
  readonly #closing = new AbortController();
  readonly #deferred: (() => void | Promise<void>)[] = [];

  constructor(
    sandbox: Sandbox,
    options: {
      readonly request?: object;
      readonly servers?: readonly PublishedServer[];
      readonly resume?: string;
    } = {},
  ) {
    this.sandbox = sandbox;
    this.request = requestOf(options.request);
    this.servers = options.servers ?? [];
    this.signal = this.#closing.signal;
    if (options.resume !== undefined) this.resume = options.resume;
  }

  explain(why: () => LateStart | undefined): void {
    this.whyLate = why;
  }

  defer(close: () => void | Promise<void>): void {
    this.#deferred.push(close);
  }

  stop(reason: Error): void {
    this.#closing.abort(reason);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("the test is over"));
    for (let close = this.#deferred.pop(); close !== undefined; close = this.#deferred.pop()) await close();
  }
}

export interface TurnOptions {
  /** Default: an agent's questions are declined. */
  readonly onInput?: NonNullable<Turn["onInput"]>;
  readonly prompt?: string;
  readonly signal?: AbortSignal;
  readonly answer?: PermissionDecision | ((question: PermissionQuestion) => Promise<PermissionDecision>);
}

export function turnOf(
  options: TurnOptions = {},
): Turn & { readonly questions: PermissionQuestion[]; readonly warnings: string[] } {
  const questions: PermissionQuestion[] = [];
  const warnings: string[] = [];
  const { answer = "allow" } = options;
  return {
    prompt: [{ type: "text", text: options.prompt ?? "hello" }],
    signal: options.signal ?? new AbortController().signal,
    questions,
    warnings,
    warn: (message) => void warnings.push(message),
    onInput: options.onInput,
    onPermission: async (question) => {
      questions.push(question);
      return typeof answer === "function" ? await answer(question) : answer;
    },
  };
}

export async function eventsOf(agent: Agent, turn: Turn): Promise<AgentEvent[]> {
  const events: AgentEvent[] = [];
  for await (const event of agent.prompt(turn)) events.push(event);
  return events;
}

/** The events up to a failure, and the failure. */
export async function failureOf(
  agent: Agent,
  turn: Turn,
): Promise<{ readonly events: AgentEvent[]; readonly error: unknown }> {
  const events: AgentEvent[] = [];
  try {
    for await (const event of agent.prompt(turn)) events.push(event);
  } catch (error) {
    return { events, error };
  }
  throw new Error(`the turn didn't fail: ${JSON.stringify(events)}`);
}

export function ofType<Type extends AgentEvent["type"]>(
  events: readonly AgentEvent[],
  type: Type,
): AgentEventOf<Type>[] {
  return events.filter((event): event is AgentEventOf<Type> => event.type === type);
}

export function textOf(events: readonly AgentEvent[]): string {
  return ofType(events, "message_delta")
    .map(({ delta }) => delta)
    .join("");
}
