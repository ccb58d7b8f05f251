import type { DirectCall, JsonObject } from "@ambit/core/plugin";
import type { Posting } from "../connection/outbound.js";
import { bind, CallInvalid, refuseUnsafe } from "./call-arguments.js";
import { isObject, type MutableJson, overlaid, readPath, removePath, writePath } from "./json-path.js";

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
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === null || one === undefined) continue;
      url.searchParams.append(name, isObject(one) || Array.isArray(one) ? JSON.stringify(one) : String(one));
    }
  }
}
