import { HarnessFailed, isJsonObject, type JsonObject, type Usage } from "@ambit/core/plugin";
import { z } from "zod";
import { numberAt, valueAt } from "./json-reading.js";

/** Agents send null for an absent value. */
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);

/** A capability of ACP is an object, usually an empty one. */
const announced = z
  .unknown()
  .optional()
  .transform((value) => value !== undefined && value !== null && value !== false);

/** The extension of ACP by which agents take a message in mid-turn. They announce it in `initialize`. */
export const steeringMethod = "_session/steering";

/** `InitializeResponse` of ACP v1, the part that the driver uses. */
const initializeSchema = z
  .looseObject({
    protocolVersion: z.literal(1),
    agentInfo: z
      .looseObject({ version: z.string().max(100) })
      .nullish()
      .catch(undefined),
    agentCapabilities: z
      .looseObject({
        loadSession: flag,
        promptCapabilities: z.looseObject({ image: flag, audio: flag, embeddedContext: flag }).nullish(),
        mcpCapabilities: z.looseObject({ http: flag, sse: flag }).nullish(),
        sessionCapabilities: z.looseObject({ resume: announced, close: announced }).nullish(),
      })
      .nullish(),
    _meta: z
      .looseObject({ steering: z.looseObject({ supported: flag }).nullish() })
      .nullish()
      .catch(undefined),
  })
  .transform(({ agentInfo, agentCapabilities: agent, _meta: meta }): AgentAbilities => {
    const { image = false, audio = false, embeddedContext = false } = agent?.promptCapabilities ?? {};
    const { resume = false, close = false } = agent?.sessionCapabilities ?? {};
    const load = agent?.loadSession ?? false;
    return {
      version: agentInfo?.version,
      prompt: { image, audio, embeddedContext },
      mcpHttp: agent?.mcpCapabilities?.http ?? false,
      restoreMethod: resume ? "session/resume" : load ? "session/load" : undefined,
      closesSessions: close,
      takesSteering: meta?.steering?.supported ?? false,
    };
  });

/** What an agent says of itself in `initialize`. */
export interface AgentAbilities {
  readonly version: string | undefined;
  /** Content that it accepts in a prompt besides text and links. */
  readonly prompt: PromptAbilities;
  /** Whether it connects to MCP servers over HTTP. */
  readonly mcpHttp: boolean;
  /** How an earlier conversation is resumed. `session/resume` is preferred, since it replays nothing. */
  readonly restoreMethod: "session/resume" | "session/load" | undefined;
  /** Whether it wants `session/close` at the end of a session. */
  readonly closesSessions: boolean;
  /** Whether it takes a message of the user in mid-turn. */
  readonly takesSteering: boolean;
}

export interface PromptAbilities {
  readonly image: boolean;
  readonly audio: boolean;
  readonly embeddedContext: boolean;
}

/** `NewSessionResponse`; the responses to `session/load` and `session/resume` differ only in the id. */
const sessionSchema = z.looseObject({
  models: z
    .looseObject({
      currentModelId: z.string().nullish(),
      availableModels: z
        .array(z.looseObject({ modelId: z.string() }))
        .nullish()
        .catch(undefined),
    })
    .nullish(),
  configOptions: z
    .array(
      z.looseObject({
        id: z.string().nullish().catch(undefined),
        category: z.string().nullish(),
        currentValue: z.unknown().optional(),
        options: z
          .array(z.looseObject({ value: z.string() }))
          .nullish()
          .catch(undefined),
      }),
    )
    .nullish(),
});

const newSessionSchema = sessionSchema.extend({ sessionId: z.string().min(1) });
/** An opened conversation: its id, its models and its options. */
export type AgentSession = z.infer<typeof newSessionSchema>;

/** The response to `_session/steering`. */
const steeringSchema = z.looseObject({ outcome: z.string() });

const promptSchema = z.looseObject({ stopReason: z.string().min(1) });

/** The SDK passes responses on unchecked, so each is checked here. */
export function readInitialize(response: unknown, title: string): AgentAbilities {
  const parsed = initializeSchema.safeParse(response);
  if (parsed.success) return parsed.data;
  const version = z.looseObject({ protocolVersion: z.unknown() }).safeParse(response);
  if (version.success && version.data.protocolVersion !== 1) {
    const offered = JSON.stringify(version.data.protocolVersion) ?? "none";
    throw new HarnessFailed(
      `${title} answered with ACP version ${offered.slice(0, 20)}; version 1 is needed: install a release that speaks it.`,
    );
  }
  throw invalid("initialize", title, parsed.error);
}

export function readNewSession(response: unknown, title: string): AgentSession {
  return read(newSessionSchema, response, "session/new", title);
}

/** The response to `session/load` or `session/resume`, for the conversation with this id. */
export function readRestoredSession(response: unknown, sessionId: string, title: string): AgentSession {
  // An empty response may also be null.
  return { ...read(sessionSchema, response ?? {}, "session/load", title), sessionId };
}

export function readPrompt(response: unknown, title: string) {
  return read(promptSchema, response, "session/prompt", title);
}

/** Whether the agent took a message into its turn. */
export function readSteering(response: unknown, title: string): boolean {
  return read(steeringSchema, response, steeringMethod, title).outcome === "injected";
}

/** Every model that the agent lists; empty if it lists none. */
export function modelsOffered(session: AgentSession): readonly string[] {
  const options = session.configOptions?.find(({ category }) => category === "model")?.options ?? [];
  const listed = session.models?.availableModels?.map(({ modelId }) => modelId) ?? [];
  return [...new Set([...listed, ...options.map(({ value }) => value)])];
}

/** The model that the agent reports to use. */
export function modelOf(session: AgentSession): string | undefined {
  const option = session.configOptions?.find(({ category }) => category === "model")?.currentValue;
  return session.models?.currentModelId ?? (typeof option === "string" ? option : undefined);
}

/** The option for the reasoning effort, with the values that the agent offers for its model; undefined for none. */
export function effortOption(
  session: AgentSession,
): { readonly id: string; readonly values: readonly string[] } | undefined {
  const option = session.configOptions?.find(({ category }) => category === "thought_level");
  if (typeof option?.id !== "string") return undefined;
  return { id: option.id, values: option.options?.map(({ value }) => value) ?? [] };
}

function read<Schema extends z.ZodType>(
  schema: Schema,
  response: unknown,
  method: string,
  title: string,
): z.output<Schema> {
  const parsed = schema.safeParse(response);
  if (parsed.success) return parsed.data;
  throw invalid(method, title, parsed.error);
}

function invalid(method: string, title: string, error: z.ZodError): HarnessFailed {
  const [issue] = error.issues;
  const where = issue === undefined ? "" : ` (${[...issue.path].join(".")}: ${issue.message})`;
  return new HarnessFailed(`${title} answered ${method} in a way that ACP v1 doesn't allow${where}.`, {
    cause: error,
  });
}

/**
 * Tokens from any place where agents report them: `usage` of the prompt response, `_meta.quota.token_count` (Gemini),
 * or nowhere. A zero means an unknown figure, since every turn that used a model sent and received tokens.
 */
export function tokensIn(response: JsonObject): Usage | undefined {
  return fromUsage(response.usage) ?? fromQuota(valueAt(response, "_meta", "quota", "token_count"));
}

/**
 * The usage of one turn. `usage_update` contains the cost; its `used` is the size of the context, not of this turn. Its
 * cost is the conversation's total, so `costBefore` is the total of earlier turns.
 */
export function turnUsage(
  tokens: Usage | undefined,
  cost: number | undefined,
  costBefore: number,
): Usage | undefined {
  const spent = cost === undefined ? 0 : cost - costBefore;
  const usage: Usage = { ...tokens, ...(spent > 0 ? { cost: spent } : {}) };
  return Object.keys(usage).length === 0 ? undefined : usage;
}

/** US dollars, from a `usage_update`; other currencies aren't converted. */
export function costOf(update: JsonObject): number | undefined {
  const { cost } = update;
  return isJsonObject(cost) && cost.currency === "USD" ? numberAt(cost, "amount") : undefined;
}

/**
 * ACP's `Usage`, which counts cached tokens and thoughts beside `inputTokens` and `outputTokens`. Agents that include them
 * are recognised by the total.
 */
function fromUsage(usage: unknown): Usage | undefined {
  if (!isJsonObject(usage)) return undefined;
  const [input, output, total, reasoning, written] = [
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "thoughtTokens",
    "cachedWriteTokens",
  ].map((key) => positiveAt(usage, key));
  const read = numberAt(usage, "cachedReadTokens");
  const beside = { cached: (read ?? 0) + (written ?? 0), thoughts: reasoning ?? 0 };
  const plain = (input ?? 0) + (output ?? 0);
  const isTotal = (...parts: readonly number[]) => total === parts.reduce((sum, part) => sum + part, plain);
  const countsCached = isTotal() || isTotal(beside.thoughts);
  const countsThoughts = !isTotal(beside.thoughts) && !isTotal(beside.cached, beside.thoughts);
  const sum = summed(
    input === undefined || countsCached ? input : input + beside.cached,
    output === undefined || countsThoughts ? output : output + beside.thoughts,
    total,
  );
  if (sum === undefined) return undefined;
  return {
    ...sum,
    ...(sum.input === undefined || read === undefined ? {} : { cached: read }),
    ...(sum.input === undefined || written === undefined ? {} : { cacheWritten: written }),
    ...(sum.output === undefined || reasoning === undefined ? {} : { reasoning }),
  };
}

function fromQuota(count: unknown): Usage | undefined {
  if (!isJsonObject(count)) return undefined;
  return summed(positiveAt(count, "input_tokens"), positiveAt(count, "output_tokens"), undefined);
}

function positiveAt(record: JsonObject, key: string): number | undefined {
  const value = numberAt(record, key);
  return value !== undefined && value > 0 ? value : undefined;
}

function summed(
  input: number | undefined,
  output: number | undefined,
  total: number | undefined,
): Usage | undefined {
  const all = total ?? (input === undefined || output === undefined ? undefined : input + output);
  if (input === undefined && output === undefined && all === undefined) return undefined;
  return {
    ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
    ...(all === undefined ? {} : { total: all }),
  };
}
