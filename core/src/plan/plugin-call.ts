/** Calls the code of plugins: attributes it to its plugin, names its faults, and checks the values that it returns. */

import { AsyncLocalStorage } from "node:async_hooks";
import { z } from "zod";
import {
  capabilitySchema,
  domains,
  evidenceSchema,
  findingSchema,
  isJsonObject,
  type JsonObject,
  knownShapeOf,
  permissionSchema,
  readableIssues,
} from "../contract/index.js";
import { type AmbitError, isAmbitError, PluginBrokeContract } from "../errors.js";
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

/** The plugin that made an offer. */
export interface PluginOrigin {
  /** The name that the plugin gives itself. */
  readonly plugin: string;
  /** The plugin's package or file in the configuration. Absent: the plugin is an object in the configuration. */
  readonly package?: string | undefined;
  /** The kind of the offer: `executor`, `store`; `plugin` for the plugin itself, which registers. */
  readonly kind: string;
}

/** A plugin, or anything that one offers: an actor, an observer, a store, a dialect. */
export interface PluginOffer {
  readonly name: string;
}

/** The origin of each offer. An entry ends with its offer, and a plan of offers that no registry loaded has no origins. */
const origins = new WeakMap<object, PluginOrigin>();
const underWay = new AsyncLocalStorage<PluginOffer | undefined>();

/** Remembers which plugin made an offer, so that its faults name it. */
export function rememberOrigin(offer: PluginOffer, origin: PluginOrigin): void {
  origins.set(offer, origin);
}

export function originOf(offer: PluginOffer): PluginOrigin | undefined {
  return origins.get(offer);
}

const titles: Readonly<Record<string, string>> = {
  toolSource: "Tool source",
  toolPolicy: "Tool policy",
  gateway: "Model gateway",
  blobs: "Place for files",
};

/** An offer as errors name it: `Executor 'clock' of the plugin 'ambit-clock' (./clock.mjs)`. */
export function offerTitle(offer: PluginOffer): string {
  const origin = origins.get(offer);
  if (origin === undefined) return `'${offer.name}'`;
  const { kind } = origin;
  const title = titles[kind] ?? `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
  const from = origin.package === undefined ? "" : ` (${origin.package})`;
  if (kind === "plugin") return `${title} '${offer.name}'${from}`;
  return `${title} '${offer.name}' of the plugin '${origin.plugin}'${from}`;
}

/** Calls the code of an offer. Everything that it starts, also later, is attributed to the offer: see {@link offerUnderWay}. */
export function inOffer<Result>(offer: PluginOffer, call: () => Result): Result {
  return underWay.run(offer, call);
}

/** Calls Ambit's own code on behalf of an offer, without attributing it to the offer. */
export function outsideOffers<Result>(call: () => Result): Result {
  return underWay.run(undefined, call);
}

/** The offer whose code, timer, process or promise caused the current call. Undefined in Ambit's own code. */
export function offerUnderWay(): PluginOffer | undefined {
  return underWay.getStore();
}

/**
 * Wraps an object so that each call of its methods is attributed to its plugin: an unhandled error names the plugin. Methods
 * keep the object itself as `this`, since its class may have private fields.
 *
 * @param instead methods that replace the object's own. Default: none.
 */
export function ofOffer<Value extends object>(
  offer: PluginOffer,
  value: Value,
  instead: Partial<Value> = {},
): Value {
  return new Proxy(value, {
    get(target, name) {
      if (Object.hasOwn(instead, name)) return Reflect.get(instead, name);
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return (...parameters: unknown[]) => inOffer(offer, () => Reflect.apply(member, target, parameters));
    },
  });
}

/**
 * Calls a pure method of an offer, and checks that the value that it returns matches `returns`. Any other value is a bug of
 * its plugin, and so is an exception.
 *
 * @throws PluginBrokeContract with the names of the plugin and the method, and what was wrong.
 */
export function callPure<Returns extends z.ZodType>(
  offer: PluginOffer,
  method: string,
  returns: Returns,
  call: () => unknown,
): z.output<Returns> {
  let returned: unknown;
  try {
    returned = inOffer(offer, call);
  } catch (thrown) {
    if (isAmbitError(thrown)) throw thrown;
    const message = `${offerTitle(offer)} threw in ${method}(), which must be pure and never throw; the runner's log has the cause.`;
    throw new PluginBrokeContract(message, { cause: thrown });
  }
  if (isThenable(returned)) {
    // A later rejection has no reader, and must not end the process.
    returned.then(undefined, () => undefined);
    throw new PluginBrokeContract(
      `${offerTitle(offer)} returned a promise from ${method}(), which must be synchronous.`,
    );
  }
  return checkedReturn(offer, method, returns, returned);
}

/**
 * Runs an asynchronous step of an offer, and checks that the value that it resolves with matches `returns`. An error of the
 * catalogue is rethrown unchanged; any other error breaks the plugin's contract, and so does any other value.
 *
 * @param method the method's name in errors: `open`.
 */
export async function callPlugin<Returns extends z.ZodType>(
  offer: PluginOffer,
  method: string,
  returns: Returns,
  step: () => Promise<unknown>,
): Promise<z.output<Returns>> {
  try {
    return checkedReturn(offer, method, returns, await inOffer(offer, step));
  } catch (thrown) {
    throw asPluginError(offerTitle(offer), thrown);
  }
}

/** @param who the subject of the message, such as `Sandbox 'local' of the plugin 'sandbox-local'`. */
export function asPluginError(who: string, thrown: unknown): AmbitError {
  if (isAmbitError(thrown)) return thrown;
  const message = `${who} threw an error that isn't one of Ambit's; the runner's log has the cause.`;
  return new PluginBrokeContract(message, { cause: thrown });
}

/**
 * Returns the result of an offer's method if it has the shape. Messages never repeat the value.
 *
 * @throws PluginBrokeContract with the names of the plugin and the method, and what was wrong.
 */
export function checkedReturn<Returns extends z.ZodType>(
  offer: PluginOffer,
  method: string,
  returns: Returns,
  returned: unknown,
): z.output<Returns> {
  const read = returns.safeParse(returned);
  if (read.success) return read.data;
  const problems = shapeProblems(read.error, returns, returned);
  const what = returned === undefined ? "nothing" : "what it must not";
  throw new PluginBrokeContract(`${offerTitle(offer)} returned ${what} from ${method}(): ${problems}.`);
}

/** The most problems that one message names. */
const maxProblems = 3;

/**
 * Describes how a value deviates from a shape: "[0].capability is required: one of …". Pure.
 *
 * @param options `all`: every problem. Default: the first three.
 */
export function shapeProblems(
  { issues }: z.ZodError,
  shape: z.ZodType,
  value: unknown,
  { all = false }: { readonly all?: boolean } = {},
): string {
  const level = knownShapeOf(shape);
  const problems = readableIssues(issues, { value, level, path: [], keyName: "setting" }).map(
    ({ path, message }) => `${path === "" ? "the value" : path} ${message}`,
  );
  const shown = all ? problems : problems.slice(0, maxProblems);
  const further = problems.length > shown.length ? [`and ${problems.length - shown.length} more`] : [];
  return [...shown, ...further].join("; ");
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** The most characters of a text that a plugin returns. A longer text is cut: it may quote the request's megabytes. */
const maxTextCharacters = 2_000;
/** The most entries of a list that a plugin returns. */
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
const method = z.custom<(...parameters: never[]) => unknown>((value) => typeof value === "function", {
  error: ({ input }) => (input === undefined ? "is required: a method" : "must be a method"),
});

const jsonObject = z.custom<JsonObject>(isJsonObject, { error: "must be an object" });

/** Accepts the value itself if it has these members, since a copy of a class's object would lose its private ones. */
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
 * The values that methods of plugins return, or resolve with. The planner and the runner use nothing else, so that an
 * omission, or a word that Ambit doesn't know, can't be taken for consent.
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
  /** The result of a method is of no use. */
  nothing: z.unknown(),
} as const;
