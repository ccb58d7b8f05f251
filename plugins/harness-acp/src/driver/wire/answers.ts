import { HarnessFailed } from "@ambit/core/plugin";
import { z } from "zod";

/** Agents send null for an absent value. */
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);

/** Any value or none: in zod, a key of type `z.unknown()` is required. */
const anything = z.unknown().optional();

const flags = <Shape extends Record<string, typeof flag>>(shape: Shape) =>
  z
    .looseObject(shape)
    .nullish()
    .transform((value) => value ?? undefined);

/** The extension of ACP by which agents take a message in mid-turn. They announce it in `initialize`. */
export const steeringMethod = "_session/steering";

/** `InitializeResponse` of ACP v1, the part that the driver uses. */
const initializeSchema = z.looseObject({
  protocolVersion: z.literal(1),
  agentInfo: z
    .looseObject({ version: z.string().max(100) })
    .nullish()
    .catch(undefined),
  agentCapabilities: z
    .looseObject({
      loadSession: flag,
      promptCapabilities: flags({ image: flag, audio: flag, embeddedContext: flag }),
      mcpCapabilities: flags({ http: flag, sse: flag }),
      sessionCapabilities: z.looseObject({ resume: anything, close: anything }).nullish(),
    })
    .nullish(),
  _meta: z
    .looseObject({ steering: z.looseObject({ supported: flag }).nullish() })
    .nullish()
    .catch(undefined),
});
export type AgentAbilities = z.infer<typeof initializeSchema>;

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
        currentValue: anything,
        options: z
          .array(z.looseObject({ value: z.string() }))
          .nullish()
          .catch(undefined),
      }),
    )
    .nullish(),
});

const newSessionSchema = sessionSchema.extend({ sessionId: z.string().min(1) });

/** Of `_session/steering`. */
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

export function readNewSession(response: unknown, title: string) {
  return read(newSessionSchema, response, "session/new", title);
}

export function readRestoredSession(response: unknown, title: string) {
  // An empty response may also be null.
  return read(sessionSchema, response ?? {}, "session/load", title);
}

export function readPrompt(response: unknown, title: string) {
  return read(promptSchema, response, "session/prompt", title);
}

/** Whether the agent took a message into its turn. */
export function readSteering(response: unknown, title: string): boolean {
  return read(steeringSchema, response, steeringMethod, title).outcome === "injected";
}

/** Every model that the agent lists; empty if it lists none. */
export function modelsOffered(session: z.infer<typeof sessionSchema>): readonly string[] {
  const options = session.configOptions?.find(({ category }) => category === "model")?.options ?? [];
  const listed = session.models?.availableModels?.map(({ modelId }) => modelId) ?? [];
  return [...new Set([...listed, ...options.map(({ value }) => value)])];
}

/** The model that the agent reports to use. */
export function modelOf(session: z.infer<typeof sessionSchema>): string | undefined {
  const option = session.configOptions?.find(({ category }) => category === "model")?.currentValue;
  return session.models?.currentModelId ?? (typeof option === "string" ? option : undefined);
}

/** The option for the reasoning effort, with the values that the agent offers for its model; undefined for none. */
export function effortOption(
  session: z.infer<typeof sessionSchema>,
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
