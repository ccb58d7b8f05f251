import { z } from "zod";
import {
  capabilitySchema,
  domains,
  evidenceSchema,
  findingSchema,
  isJsonObject,
  type JsonObject,
  permissionSchema,
} from "../contract/index.js";
import type {
  Agent,
  HiddenCredential,
  ModelRoute,
  ModelUse,
  PreparedAgent,
  Publication,
  PublishedServer,
  RunObservation,
  RunToolPolicy,
  Sandbox,
  Translation,
} from "../plugin/index.js";

/** Characters of one text that a plugin returns: it may quote the request, which has megabytes. A longer one is cut. */
const maxTextCharacters = 2_000;
/** Entries of one list. */
const maxEntries = 10_000;

const cut = (whole: string) =>
  whole.length <= maxTextCharacters ? whole : `${whole.slice(0, maxTextCharacters)} …`;
const text = z.string().min(1).transform(cut);
const list = <Entry extends z.ZodType>(entry: Entry) => z.array(entry).max(maxEntries);
const names = list(z.string());
/** One for each fault of the request, however many it has. */
const issues = z.array(z.object({ path: z.string(), message: text }));
const object = z.custom<object>((value) => typeof value === "object" && value !== null, {
  error: "must be an object",
});
const method = z.custom<(...given: never[]) => unknown>((value) => typeof value === "function", {
  error: ({ input }) => (input === undefined ? "is required: a method" : "must be a method"),
});

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "must be an object" });

/** The value itself, if it has these members: an object of a class keeps its private ones. */
function having<Value extends object>(
  members: { readonly [Member in keyof Value]?: z.ZodType },
): z.ZodType<Value> {
  const shape = z.looseObject(members);
  return z.custom<Value>().superRefine((value, context) => {
    const read = shape.safeParse(value);
    for (const issue of read.error?.issues ?? []) context.addIssue({ ...issue, input: undefined });
  });
}

const actorGap = z.object({ capability: capabilitySchema, reason: text, fix: text });
const trueOrReason = z.union([z.literal(true), z.object({ reason: text, fix: text })]);
const hiddenCredential = having<HiddenCredential>({
  name: z.string().min(1),
  value: z.string(),
  hosts: names,
});
const modelUse = having<ModelUse>({
  protocol: z.enum(["anthropic", "openai", "gemini", "bedrock", "vertex"]),
  endpoint: z.url(),
  basePath: z.string(),
  credentials: z.record(z.string(), z.string()),
  headers: z.record(z.string(), z.string()),
  region: z.string().optional(),
  model: z.string(),
  auxiliaryModels: names,
});

/**
 * What methods of plugins return, or resolve with. The planner and the runner use nothing else: what a plugin leaves out,
 * or says in words that Ambit doesn't know, can't be taken for consent.
 */
export const pluginReturns = {
  domains: list(z.enum(domains)),
  gaps: list(actorGap),
  issues,
  findings: list(
    findingSchema.transform((finding) =>
      finding.proven
        ? { ...finding, how: cut(finding.how) }
        : { ...finding, reason: cut(finding.reason), fix: cut(finding.fix) },
    ),
  ),
  hiding: trueOrReason,
  readability: trueOrReason,
  names,
  texts: list(text),
  hiddenCredentials: list(hiddenCredential),
  modelUse: modelUse.optional(),
  requiredPaths: list(
    z.object({ path: z.string().startsWith("/"), what: text, isOptional: z.boolean().exactOptional() }),
  ),
  translation: having<Translation>({
    request: object,
    issues,
  }),
  command: z.object({ field: text, id: z.string().min(1).max(256) }).optional(),
  toolPolicy: having<RunToolPolicy>({ decide: method, readable: method }).optional(),
  toolDecision: z
    .discriminatedUnion(
      "kind",
      [
        z.object({ kind: z.literal("malformed"), problem: text }),
        z.object({ kind: z.literal("denied"), reason: text }),
        z.object({
          kind: z.literal("permitted"),
          permission: permissionSchema,
          context: jsonObject,
          details: jsonObject,
        }),
      ],
      { error: "must be malformed, denied or permitted" },
    )
    .optional(),
  sandbox: having<Sandbox>({
    workspace: z.string().startsWith("/"),
    home: z.string().startsWith("/"),
    confinement: z.enum(["confined", "unconfined"]),
    evidence: evidenceSchema,
    spawn: method,
    writeFiles: method,
    readFile: method,
    expose: method,
    close: method,
  }),
  publication: having<Publication>({
    name: z.string(),
    tools: list(z.looseObject({ name: z.string().min(1) })),
    call: method,
  }),
  server: having<PublishedServer>({
    name: z.string(),
    url: z.string().min(1),
    headers: z.record(z.string(), z.string()),
    listed: method,
  }),
  modelRoute: having<ModelRoute>({ baseUrl: z.string().min(1), key: z.string().min(1) }),
  agent: having<Agent>({
    conversation: z.string(),
    history: z.enum(["new", "loaded"]),
    capabilities: object,
    evidence: evidenceSchema,
    prompt: method,
    ended: method,
    close: method,
  }),
  preparedAgent: having<PreparedAgent>({ misfit: method, fault: method, ended: object }),
  observation: having<RunObservation>({}).optional(),
  outcome: z.discriminatedUnion(
    "status",
    [
      z.object({ status: z.literal("completed"), output: z.string(), data: z.unknown().optional() }),
      z.object({ status: z.literal("failed"), output: z.string() }),
      z.object({ status: z.literal("parked"), interaction: z.enum(["client_tool", "user_input"]) }),
    ],
    { error: "must be completed, failed or parked" },
  ),
  publishedOutcome: z.object({ output: z.string(), isError: z.boolean() }),
  yesOrNo: z.boolean(),
  /** Of a method whose result is of no use. */
  nothing: z.unknown(),
} as const;
