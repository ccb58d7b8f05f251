import type { GitService } from "@ambit/core/plugin";
import { formatTarget, type Target } from "../target.js";
import { type BoundCredential, isBoundTo } from "./bound.js";
import { gitRequestOf, isLfsAction } from "./git.js";
import { isAmbiguousPath, isSafe, matchesPath, overrideIn, pathOf, readingOf, unescaped } from "./limits.js";

/** A request, as the client sent it. */
interface JudgedRequest {
  readonly method: string;
  readonly url: string;
  /** [name, value, name, value…] */
  readonly rawHeaders: readonly string[];
}

export type CredentialVerdict =
  | {
      readonly verdict: "pass";
      readonly rawHeaders: readonly string[];
      /** The credentials in it. */
      readonly names: readonly string[];
      /** It may be sent only if its body is a git LFS download. */
      readonly body?: "lfs-download";
    }
  | { readonly verdict: "refuse"; readonly reason: string };

/** Headers in which model providers accept a key, for a credential that names no header. */
const keyHeaders: readonly string[] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/**
 * Replaces placeholders with their credentials, or says why that isn't allowed. A placeholder is replaced only as
 * the whole credential of its header, once, for one of its hosts, within its limits. Anywhere else, it refuses the
 * request. Pure.
 *
 * @param target CONNECT's, which the TLS server name and the Host header were already compared with.
 */
export function judgeCredentials(
  request: JudgedRequest,
  target: Target,
  credentials: readonly BoundCredential[],
): CredentialVerdict {
  const outside = inRequestLine(request.url, credentials);
  if (outside !== undefined) return refuse(`${outside.name} was sent in the request line`);
  const rawHeaders = isLfsAction(request) ? withOneKey(request, credentials) : [...request.rawHeaders];
  let body: "lfs-download" | undefined;
  const names: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    const named = credentials.find(({ placeholder }) => isName(name, placeholder));
    if (named !== undefined) return refuse(`${named.name} was sent as a header's name`);
    const readings = readingsOf(value);
    const credential = credentials.find(({ placeholder }) => isIn(readings, placeholder));
    if (credential === undefined) continue;
    if (!isBoundTo(credential, target)) {
      return refuse(
        `${credential.name} is for ${credential.hosts.join(", ")}, not for ${formatTarget(target)}`,
      );
    }
    const replaced = replaceIn(name, value, credential);
    if (replaced === undefined)
      return refuse(`${credential.name} is sent only ${formOf(credential)}, not in ${name}`);
    const isTwice = rawHeaders.some((other, at) => at % 2 === 0 && at !== index && sameName(other, name));
    if (isTwice) return refuse(`${credential.name} was sent in a header that occurs twice`);
    const limits = judgeLimits(request, credential);
    if (typeof limits === "string") return refuse(limits);
    if (limits.needsBody) body = "lfs-download";
    rawHeaders[index + 1] = replaced;
    names.push(credential.name);
  }
  // A partial response could contain part of the value, which can't be recognised.
  const sent = names.length > 0 ? withoutPlaceholder(rawHeaders, partial) : rawHeaders;
  return { verdict: "pass", rawHeaders: sent, names, body };
}

/**
 * Git LFS sends the `Authorization` that the server told it for an action, and that of git's settings too. The server's is
 * the one for it (git-lfs docs/api/batch.md, "header"); some servers repeat the credential's, whose placeholder it has then.
 */
function withOneKey(
  { rawHeaders }: Pick<JudgedRequest, "rawHeaders">,
  credentials: readonly BoundCredential[],
): string[] {
  const pairs = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ""]] : []));
  const isKey = ([name = ""]: readonly string[]) => sameName(name, "authorization");
  const keys = new Set(pairs.filter(isKey).map(([, value = ""]) => value));
  const told = [...keys].filter((value) => {
    const readings = readingsOf(value);
    return !credentials.some(({ placeholder }) => isIn(readings, placeholder));
  });
  const [key, ...more] = told.length > 0 ? told : keys;
  if (key === undefined || more.length > 0) return [...rawHeaders];
  return [...pairs.filter((pair) => !isKey(pair)).flat(), "Authorization", key];
}

/** The first credential whose placeholder is in the request line. Pure. */
function inRequestLine(url: string, credentials: readonly BoundCredential[]): BoundCredential | undefined {
  const readings = [url, unescaped(url)];
  return credentials.find(({ placeholder }) => isIn(readings, placeholder));
}

/** The first credential whose placeholder is anywhere in the request's line or header. Pure. */
export function findPlaceholder(
  { url, rawHeaders }: JudgedRequest,
  credentials: readonly BoundCredential[],
): BoundCredential | undefined {
  if (credentials.length === 0) return undefined;
  const values = rawHeaders.flatMap((text, index) => (index % 2 === 0 ? [] : readingsOf(text)));
  const names = rawHeaders.filter((_text, index) => index % 2 === 0);
  return (
    inRequestLine(url, credentials) ??
    credentials.find(
      ({ placeholder }) => isIn(values, placeholder) || names.some((name) => isName(name, placeholder)),
    )
  );
}

/** The header's value with the credential in it; undefined where this isn't how it is sent. */
function replaceIn(name: string, value: string, credential: BoundCredential): string | undefined {
  const { as, placeholder, value: whole } = credential;
  const header = name.toLowerCase();
  if (typeof as === "object") return sameName(as.header, name) && value === placeholder ? whole : undefined;
  if (as === undefined && header !== "authorization") {
    return keyHeaders.includes(header) && value === placeholder ? whole : undefined;
  }
  const [, scheme = "", sent = ""] = /^(\S+) +(\S+)$/.exec(value) ?? [];
  if (header !== "authorization") return undefined;
  if (/^(bearer|token)$/i.test(scheme)) {
    return as !== "basic" && sent === placeholder ? `${scheme} ${whole}` : undefined;
  }
  if (!/^basic$/i.test(scheme) || as === "bearer") return undefined;
  const pair = replacePair(Buffer.from(sent, "base64").toString("latin1"), credential);
  return pair === undefined ? undefined : `${scheme} ${Buffer.from(pair, "latin1").toString("base64")}`;
}

/** `user:password` with the credential in it (RFC 7617). A value with its own user replaces both. */
function replacePair(pair: string, { placeholder, value }: BoundCredential): string | undefined {
  const colon = pair.indexOf(":");
  const user = pair.slice(0, Math.max(0, colon));
  const hasUser = value.includes(":");
  if (colon !== -1 && pair.slice(colon + 1) === placeholder) return hasUser ? value : `${user}:${value}`;
  return pair === `${placeholder}:` && !hasUser ? `${value}:` : undefined;
}

function judgeLimits(
  request: JudgedRequest,
  credential: BoundCredential,
): string | { readonly needsBody: boolean } {
  const { name, methods, paths, access } = credential;
  if (methods === undefined && paths === undefined && (access ?? "write") === "write")
    return { needsBody: false };
  const override = overrideIn(request.url, request.rawHeaders);
  if (override !== undefined)
    return `${name} is limited to methods or paths, and ${override} may change them`;
  if (methods !== undefined && !methods.includes(request.method)) {
    return `${name} is used only with ${methods.join(", ")}, not with ${request.method}`;
  }
  const path = pathOf(request.url);
  // Everything that git asks of a repository is below its path.
  const isOfGit = typeof access === "object";
  const patterns = paths?.flatMap((one) => (isOfGit ? withRepository(one) : [one]));
  if (patterns !== undefined && !patterns.some((pattern) => matchesPath(pattern, path))) {
    const why = isAmbiguousPath(path) ? ", which servers may interpret in two ways" : "";
    return `${name} is used only with ${(paths ?? []).join(", ")}, not with ${path}${why}`;
  }
  if (isOfGit) return judgeGit(request, credential, access);
  if (access !== "read") return { needsBody: false };
  if (!isSafe(request) && isAmbiguousPath(path))
    return `${name} is for reading only (access "read"), and servers may interpret this path in two ways`;
  const reading = readingOf(request);
  if (reading === "writes") return `${name} is for reading only (access "read"), and this request writes`;
  return { needsBody: reading === "body" };
}

/** A repository's path, and all below it. */
const withRepository = (pattern: string) =>
  pattern.endsWith("*") ? [pattern] : [pattern, `${pattern.replace(/\/$/, "")}/*`];

/** A credential for some of git's services is used with nothing else. */
function judgeGit(
  request: JudgedRequest,
  { name }: BoundCredential,
  services: readonly GitService[],
): string | { readonly needsBody: boolean } {
  const list = services.join(", ");
  const gitRequest = gitRequestOf(request);
  if (gitRequest === undefined || isAmbiguousPath(pathOf(request.url)))
    return `${name} is only for git's services (access ${list}), and this is another request`;
  const missing = gitRequest.services.find((service) => !services.includes(service));
  if (missing !== undefined) return `${name} isn't for git's service ${missing} (access ${list})`;
  // A caller that may push may also upload.
  return { needsBody: gitRequest.body === true && !services.includes("push") };
}

function formOf({ as }: BoundCredential): string {
  if (as === undefined) return `in ${keyHeaders.join(", ")}`;
  if (typeof as === "object") return `as the whole value of ${as.header}`;
  return `as ${as === "basic" ? "Basic" : "Bearer"} in Authorization`;
}

/** A header's value in every reading: unchanged, percent-decoded, and with its base64 decoded. */
function readingsOf(value: string): readonly string[] {
  const parts = value.split(/[\s,;="]+/).filter((part) => part.length >= 16);
  return [value, unescaped(value), ...parts.map((part) => Buffer.from(part, "base64").toString("latin1"))];
}

/** Headers that request a part of a response (RFC 9110 section 14). A server may ignore them. */
const partial: readonly string[] = ["range", "if-range"];

function withoutPlaceholder(rawHeaders: readonly string[], names: readonly string[]): string[] {
  return rawHeaders.filter(
    (_text, index) => !names.includes(rawHeaders[index - (index % 2)]?.toLowerCase() ?? ""),
  );
}

const isIn = (texts: readonly string[], part: string) => texts.some((text) => text.includes(part));
/** Header names come in any case. */
const isName = (name: string, part: string) => name.toLowerCase().includes(part.toLowerCase());
const sameName = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
const refuse = (reason: string): CredentialVerdict => ({ verdict: "refuse", reason });
