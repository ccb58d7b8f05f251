/** The parts of a request that a credential's limits check. */
export interface RequestLine {
  readonly method: string;
  /** Origin form, with its query. */
  readonly url: string;
}

const safeMethods: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/** Whether the request reads whatever its path is. Pure. */
export const isSafe = ({ method }: RequestLine): boolean => safeMethods.includes(method);

/**
 * Whether a request only reads: `body` if only its body can tell (git LFS).
 * Git's smart protocol reads by POST too (gitprotocol-http); everything else that isn't safe by its method writes. Pure.
 */
export function readingOf(request: RequestLine): "reads" | "writes" | "body" {
  const { method, url } = request;
  const path = pathOf(url);
  if (/git[-_]?receive[-_]?pack/i.test(unescaped(url))) return "writes";
  if (isSafe(request)) return "reads";
  if (method !== "POST") return "writes";
  if (path.endsWith("/git-upload-pack")) return "reads";
  return path.endsWith("/info/lfs/objects/batch") ? "body" : "writes";
}

/** With each percent-encoded byte as one character. Pure. */
export function unescaped(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_match, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

/** What separates segments, or does in a server that decodes the path. */
const separator = /\/|%2F/g;
/** Characters of a path (RFC 3986 section 3.3), without `;`: some servers cut parameters off there. */
const written = /^(?:[A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-F]{2})*$/;
/** Separators and escapes of paths, and control characters, which some programs drop. */
const meaningful = /[/\\%;?#\p{Cc}]/u;
/** npm's path of a package with a scope: `/@acme%2fname`, the same as `/@acme/name`. */
const scopedPackage = /\/(@[a-z0-9~-][a-z0-9._~-]*)%2F(?=[a-z0-9~-])/gi;

/** A path without its query, with escapes in capitals. */
export function pathOf(url: string): string {
  const query = url.indexOf("?");
  return capitalised(query === -1 ? url : url.slice(0, query));
}

const capitalised = (path: string) => path.replaceAll(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());

/**
 * Whether servers could interpret the path differently: encoded separators, dots, parameters and control characters,
 * characters that become one of these, other encodings than UTF-8, empty or dot segments. Pure.
 *
 * @param path of `pathOf`.
 */
export function isAmbiguousPath(path: string): boolean {
  return areAmbiguous(withScopes(path).slice(1));
}

/**
 * Whether a pattern of `paths` matches the path, and what the pattern leaves open isn't ambiguous. An encoded slash
 * matches only where the pattern has one, and in npm's names of packages. Pure.
 *
 * @param path of `pathOf`.
 */
export function matchesPath(pattern: string, path: string): boolean {
  return [path, withScopes(path)].some((each) => {
    if (!pattern.endsWith("*")) return each === capitalised(pattern);
    const prefix = capitalised(pattern.slice(0, -1));
    if (!each.startsWith(prefix)) return false;
    const last = [...prefix.matchAll(separator)].at(-1);
    return !areAmbiguous(each.slice(last === undefined ? 0 : last.index + last[0].length));
  });
}

const withScopes = (path: string) => path.replaceAll(scopedPackage, "/$1/");

function areAmbiguous(segments: string): boolean {
  if (!written.test(segments)) return true;
  return segments.split("/").some((segment, index, all) => {
    // A path may end in a slash.
    if (segment === "") return index < all.length - 1;
    const text = decoded(segment);
    return text === undefined || meaningful.test(text) || /^[.\s]*$/.test(text);
  });
}

/** As lenient servers read it, with wide forms of separators and dots as plain ones; undefined if it isn't UTF-8. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment).normalize("NFKC");
  } catch {
    return undefined;
  }
}

/** Names of headers, with dashes: servers with a CGI heritage take `_` for one. */
const headers =
  /^(?:(?:x-)?(?:http-)?method(?:-override)?|x-(?:rewrite|original|forwarded|proxy|envoy-original)-(?:method|url|uri|path|prefix|host)|x-http-destinationurl|destination)$/;
/** Names of parameters that frameworks take the method from, whatever their value. */
const parameters = /^(?:[_$](?:http-?)?method|(?:x-)?http-method(?:-override)?|x-method(?:-override)?)$/;
/** A parameter of APIs for their own methods, and of others for HTTP's. */
const ambiguousParameter = /^(?:http-?)?method$/;
const methods = /^(?:get|head|options|post|put|patch|delete|copy|move|link|unlink)$/i;

/**
 * What makes some servers use another method, path or host than the request line's: a header, a parameter of the query,
 * or the target of WebDAV's COPY and MOVE. As in "the header X-HTTP-Method-Override"; undefined if there is none. Pure.
 */
export function overrideIn(url: string, rawHeaders: readonly string[]): string | undefined {
  const header = rawHeaders.find((name, index) => index % 2 === 0 && headers.test(plain(name)));
  if (header !== undefined) return `the header ${header}`;
  const query = url.indexOf("?");
  if (query === -1) return undefined;
  for (const [name, value] of new URLSearchParams(url.slice(query + 1))) {
    if (parameters.test(plain(name)) || (ambiguousParameter.test(plain(name)) && methods.test(value)))
      return `the parameter ${name}`;
  }
  return undefined;
}

/** The sign before a parameter's name stays. */
const plain = (name: string) => name.toLowerCase().replaceAll(/(?!^)_/g, "-");
