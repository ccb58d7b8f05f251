import {
  type DirectCall,
  type JsonObject,
  JsonTooLarge,
  messageJsonLimits,
  parseBoundedJson,
  type RunRequest,
  type ToolOutcome,
  type ToolSpec,
  wholeWords,
} from "@ambit/core/plugin";
import type { Posting } from "./outbound.js";

const token = /^\$ctx\.(.+)$/;

/** The call can't be built. The message is for the model, or for the tool's author. */
export class CallInvalid extends Error {
  override readonly name = "CallInvalid";
}

/** What `$ctx.…` reads: the request's `runContext`, with the session's id filled in as the reference does. */
export function runContextOf({ runContext, sessionId }: RunRequest): JsonObject {
  if (sessionId === undefined || sessionId.trim() === "") return runContext ?? {};
  const session = isObject(runContext?.session) ? runContext.session : {};
  return { ...runContext, session: { id: sessionId, ...session } };
}

/** What `$ctx.…` reads in one call: also `tool.call_id`, the call's idempotency key. */
export function callContextOf(request: RunRequest, idempotencyKey: string): JsonObject {
  return { ...runContextOf(request), tool: { call_id: idempotencyKey } };
}

/** What the platform gets of the model's arguments: without those meant for the reader, bound ones replaced. */
export function argumentsOf(tool: ToolSpec, input: JsonObject, context: JsonObject): JsonObject {
  const { ephemeralArgs = [], contextBindings = {} } = tool;
  const bindings = Object.entries(contextBindings);
  if (ephemeralArgs.length === 0 && bindings.length === 0) return input;
  const visible: MutableJson = {};
  for (const [name, value] of Object.entries(input)) {
    if (!ephemeralArgs.includes(name)) visible[name] = value;
  }
  if (bindings.length === 0) return visible;
  refuseUnsafe(visible);
  // Written to below: what the model sent stays as it was for events and records.
  const bound = structuredClone(visible);
  bind(bound, bindings, context);
  return bound;
}

/** Sets each bound path from the run's context, and removes any earlier value first. @throws CallInvalid */
function bind(
  target: MutableJson,
  bindings: readonly (readonly [path: string, token: unknown])[],
  context: JsonObject,
): void {
  for (const [path, value] of bindings) {
    removePath(target, path);
    const source = typeof value === "string" ? token.exec(value)?.[1] : undefined;
    const resolved = source === undefined ? undefined : readPath(context, source);
    if (resolved === undefined) {
      throw new CallInvalid(`the run's context has no value for '${path}', which the tool binds to it`);
    }
    writePath(target, path, resolved);
  }
}

/** @throws CallInvalid when the arguments have a key that would reach a prototype once they are merged. */
function refuseUnsafe(input: JsonObject): void {
  const unsafe = unsafeKeyIn(input);
  if (unsafe !== undefined) throw new CallInvalid(`the arguments must not have a key '${unsafe}'`);
}

/** Why a binding can't be used; undefined when it can. */
export function bindingProblem(path: string, value: unknown): string | undefined {
  const problem = pathProblem(path);
  if (problem !== undefined) return problem;
  const source = typeof value === "string" ? token.exec(value)?.[1] : undefined;
  if (source === undefined) return `'${path}' must be bound to "$ctx.<path in runContext>"`;
  return pathProblem(source);
}

const parameter = /\{([A-Za-z_][A-Za-z0-9_.-]*)\}/g;
/** RFC 3986 path and query characters; an escape only of what needs one, never of a separator or a dot. */
const template =
  /^\/(?!\/)(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%(?!2[EeFf5]|5[Cc]|[01]|7[Ff])[0-9A-Fa-f]{2}|\{[A-Za-z_][A-Za-z0-9_.-]*\})*$/;
const encodedSeparator = /%(2e|2f|5c|00)/i;
const endpointSuffix = "/tools/call";
/** Characters of a URL; servers refuse much longer ones with errors that explain nothing. */
const maxUrlLength = 8_192;

/** Why a direct call's path can't be used with this endpoint; undefined when it can. Pure. */
export function directPathProblem(path: string, endpoint: URL): string | undefined {
  if (path.includes("..") || !template.test(path)) {
    return "must be a path with a single leading '/', without '..', backslash, whitespace, '#' or an escaped separator";
  }
  const filled = path.replace(parameter, "x");
  const resolved = new URL(filled, endpoint.origin);
  if (resolved.pathname + resolved.search !== filled)
    return "must be in normal form: without '.' as a folder";
  const mount = mountOf(endpoint);
  return isBelow(resolved, mount)
    ? undefined
    : `must be below '${mount}/', where the platform's endpoints are`;
}

/**
 * The request of a direct call. Later wins: the model's arguments (at `args_into`, else at the top), the tool's
 * fixed `body`, what the tool binds to the run's context. Path parameters are taken from that, and out of it.
 * What remains is the JSON body of POST and PUT, and the query of GET and DELETE.
 *
 * @throws CallInvalid
 */
export function directPosting(
  call: DirectCall,
  endpoint: URL,
  input: JsonObject,
  context: JsonObject,
): Pick<Posting, "url" | "method" | "body"> {
  refuseUnsafe(input);
  const assembled = assemble(call, input, context);
  const url = urlOf(call.path, endpoint, assembled);
  for (const [, name] of call.path.matchAll(parameter)) {
    if (name !== undefined) removePath(assembled, name);
  }
  const { method } = call;
  if (method === "POST" || method === "PUT") return { url, method, body: JSON.stringify(assembled) };
  addQuery(url, assembled);
  if (url.href.length > maxUrlLength)
    throw new CallInvalid(`the arguments are too long for a ${method} request`);
  return { url, method };
}

function assemble(call: DirectCall, input: JsonObject, context: JsonObject): MutableJson {
  let assembled: MutableJson = {};
  if (call.args_into === undefined) assembled = { ...input };
  else writePath(assembled, call.args_into, input);
  // Cloned because bindings are written into what the request and the model brought.
  assembled = structuredClone(overlaid(assembled, call.body ?? {}));
  bind(assembled, Object.entries(call.context ?? {}), context);
  return assembled;
}

function urlOf(path: string, endpoint: URL, source: MutableJson): URL {
  const problem = directPathProblem(path, endpoint);
  if (problem !== undefined) throw new CallInvalid(`the tool's path ${problem}`);
  const filled = path.replace(parameter, (_, name: string) => segmentOf(name, readPath(source, name)));
  const url = new URL(filled, endpoint.origin);
  // Whatever a value could do to the path, the URL standard shows here by changing it.
  if (
    url.origin !== endpoint.origin ||
    url.pathname + url.search !== filled ||
    !isBelow(url, mountOf(endpoint))
  ) {
    throw new CallInvalid("an argument would change the path of the call");
  }
  return url;
}

/** One path segment: nothing in it may be read as a separator or as a folder, however often it is decoded. */
function segmentOf(name: string, value: unknown): string {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
    throw new CallInvalid(
      `the argument '${name}' is needed as a string, number or boolean: it is part of the path`,
    );
  }
  const text = String(value);
  const isSafe =
    text !== "" &&
    text !== "." &&
    !text.includes("..") &&
    !/[/\\\p{Cc}\p{Cs}]/u.test(text) &&
    !encodedSeparator.test(text);
  if (!isSafe)
    throw new CallInvalid(
      `the argument '${name}' is part of the path: it must not be empty or have '..', '/' or '\\'`,
    );
  return encodeURIComponent(text);
}

/** Where the platform's endpoints are: the endpoint's path without `/tools/call`, or else the whole origin. */
function mountOf({ pathname }: URL): string {
  return pathname.endsWith(endpointSuffix) ? pathname.slice(0, -endpointSuffix.length) : "";
}

function isBelow({ pathname }: URL, mount: string): boolean {
  return pathname === mount || pathname.startsWith(`${mount}/`);
}

function addQuery(url: URL, values: MutableJson): void {
  for (const [name, value] of Object.entries(values)) {
    // The tool's own path takes precedence over the model's arguments.
    if (url.searchParams.has(name)) continue;
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null || item === undefined) continue;
      url.searchParams.append(
        name,
        isObject(item) || Array.isArray(item) ? JSON.stringify(item) : String(item),
      );
    }
  }
}

/** The body of a callback's POST. @param context what the runner adds, beside what the model wrote */
export function envelopeOf(id: string, callRef: string, input: unknown, context?: JsonObject): string {
  const data = { id, type: "function", function: { name: callRef, arguments: input } };
  return JSON.stringify({ data, context });
}

/**
 * What the platform's 2xx answer means: `call.data.content` as it is when it is a string, as JSON when it is
 * anything else, and the body itself when there is none. `STATUS_CODE_ERROR` is the tool's failure, whatever else
 * the response holds: a model that sees a success would build on it.
 */
export function outcomeOfEnvelope(
  toolName: string,
  body: string,
  maxValues: number = messageJsonLimits.maxValues,
): ToolOutcome {
  // What isn't JSON is no envelope: the body itself is the result.
  const answer = parse(body, maxValues);
  if (answer instanceof JsonTooLarge) {
    const output = `Tool '${toolName}' failed: its answer ${answer.message} (executor-callback's maxAnswerValues). Request less: filter, paginate or summarise.`;
    return { status: "failed", output };
  }
  const content = readPath(answer, "call.data.content");
  const text = typeof content === "string" ? content : content == null ? undefined : JSON.stringify(content);
  if (readPath(answer, "call.status.code") !== "STATUS_CODE_ERROR") {
    return { status: "completed", output: text ?? body };
  }
  const message = readPath(answer, "call.status.message");
  const because = typeof message === "string" && message !== "" ? `: ${message}` : "";
  const details = text === undefined || text === "" ? "" : `\n${text}`;
  return { status: "failed", output: `Tool '${toolName}' failed${because}${details}` };
}

/** A JsonTooLarge for too much of it; undefined for what isn't JSON. */
function parse(body: string, maxValues: number = messageJsonLimits.maxValues): unknown {
  try {
    return parseBoundedJson(body, { ...messageJsonLimits, maxLength: body.length, maxValues });
  } catch (error) {
    return error instanceof JsonTooLarge ? error : undefined;
  }
}

/** Characters of it that reach the model. */
const maxAdviceLength = 2_000;

/**
 * What a platform's error says to the model, to follow the status: its `detail`, as it came, when that is an object with
 * a `code` or a `next_step`. Empty for any other body: what a proxy, a framework or an operator's log line says wasn't
 * written for a model. Pure.
 */
export function adviceIn(body: string): string {
  const answer = parse(body);
  const detail = readPath(answer, "detail");
  if (typeof detail !== "object" || detail === null) return "";
  if (!isText(readPath(answer, "detail.code")) && !isText(readPath(answer, "detail.next_step"))) return "";
  const text = JSON.stringify(detail);
  return `: ${text.length > maxAdviceLength ? `${wholeWords(text, maxAdviceLength)} (cut)` : text}`;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.trim() !== "";
}

/** Dotted paths into JSON objects: `data.inputs`. Nothing here reads or writes what isn't an object's own. */

/** A JSON object that is being put together. */
type MutableJson = Record<string, unknown>;

/** Keys that lead to an object's prototype. */
const unsafeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

function isObject(value: unknown): value is MutableJson {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Why a dotted path can't be used; undefined when it can. */
export function pathProblem(path: string): string | undefined {
  const parts = path.split(".");
  if (parts.includes("")) return `'${path}' has an empty part`;
  const unsafe = parts.find((part) => unsafeKeys.has(part));
  return unsafe === undefined ? undefined : `'${path}' must not contain '${unsafe}'`;
}

/** The first key, at any depth, that leads to a prototype. */
export function unsafeKeyIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const unsafe = unsafeKeys.has(key) ? key : unsafeKeyIn(inner);
    if (unsafe !== undefined) return unsafe;
  }
  return undefined;
}

/** The value at a path. Undefined also when some part of the path isn't there. */
export function readPath(source: unknown, path: string): unknown {
  let value = source;
  for (const part of path.split(".")) {
    if (unsafeKeys.has(part) || !isObject(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** Objects in between are made; anything else in between is replaced. @throws TypeError for an unusable path. */
function writePath(target: MutableJson, path: string, value: unknown): void {
  const { parents, last } = partsOf(path);
  let holder = target;
  for (const part of parents) {
    const inner = Object.hasOwn(holder, part) ? holder[part] : undefined;
    const next: MutableJson = isObject(inner) ? inner : {};
    holder[part] = next;
    holder = next;
  }
  holder[last] = value;
}

/** @throws TypeError for an unusable path. */
function removePath(target: MutableJson, path: string): void {
  const { parents, last } = partsOf(path);
  const holder = parents.length === 0 ? target : readPath(target, parents.join("."));
  if (isObject(holder)) delete holder[last];
}

/** `overlay` wins; two objects under one key are merged, anything else is replaced. Neither is changed. */
function overlaid(base: Readonly<MutableJson>, overlay: Readonly<MutableJson>): MutableJson {
  const merged: MutableJson = { ...base };
  for (const [key, value] of Object.entries(overlay)) {
    const under = Object.hasOwn(merged, key) ? merged[key] : undefined;
    merged[key] = isObject(value) && isObject(under) ? overlaid(under, value) : value;
  }
  return merged;
}

function partsOf(path: string): { readonly parents: readonly string[]; readonly last: string } {
  const problem = pathProblem(path);
  if (problem !== undefined) throw new TypeError(problem);
  const parts = path.split(".");
  return { parents: parts.slice(0, -1), last: parts.at(-1) ?? path };
}
