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
