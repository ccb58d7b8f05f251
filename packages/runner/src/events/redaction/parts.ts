import { isJsonObject, parseBoundedJson, suggestsSecret } from "@ambit/core/contract";

/** Characters of a line of a key or certificate; shorter ones aren't secret. */
const minLineLength = 16;

/**
 * A credential, and the parts of it that are secret by themselves: the password of a connection string, a key within
 * JSON, the lines of a key that has several. A program may print one of them alone. Pure.
 */
export function inCredential(value: string): string[] {
  return [value, ...inUrl(value), ...inConnectionString(value), ...inJson(value), ...linesOf(value)];
}

/**
 * The user info and the secret-looking query values of `scheme://user:password@host/?token=…`, as written and
 * decoded. A user alone is a token, as in `https://TOKEN@github.com`. Pure.
 */
export function inUrl(url: string): string[] {
  const [, authority = "", rest = ""] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#\s]*)(.*)$/is.exec(url) ?? [];
  const at = authority.lastIndexOf("@");
  const info = at < 0 ? "" : authority.slice(0, at);
  const colon = info.indexOf(":");
  const parts = info === "" ? [] : colon < 0 ? [info] : [info, info.slice(colon + 1)];
  const query = /\?([^#]*)/.exec(rest)?.[1] ?? "";
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && suggestsSecret(pair.slice(0, equals))) parts.push(pair.slice(equals + 1));
  }
  return parts.flatMap((part) => [part, decoded(part)]);
}

/** `host=x password=y`, `Server=x;Password=y`, `user:password@tcp(host)/name`. */
function inConnectionString(value: string): string[] {
  const assigned = [...value.matchAll(/([a-z_-]{1,40})\s?=\s?("[^"]*"|'[^']*'|[^;\s]+)/gi)].flatMap(
    ([, name = "", text = ""]) => (suggestsSecret(name) ? [text.replace(/^(["'])(.*)\1$/s, "$2")] : []),
  );
  const parts = /^[^:@/\s]*:(.*)@[a-z]*\(/is.exec(value);
  return parts?.[1] === undefined ? assigned : [...assigned, parts[1]];
}

function inJson(value: string): string[] {
  if (!value.trimStart().startsWith("{")) return [];
  try {
    return secretsWithin(parseBoundedJson(value), 8);
  } catch {
    // Not JSON: taken as a plain value.
    return [];
  }
}

function secretsWithin(value: unknown, levels: number): string[] {
  if (!isJsonObject(value) || levels === 0) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (typeof inner !== "string") return secretsWithin(inner, levels - 1);
    return suggestsSecret(name) ? [inner, ...linesOf(inner)] : [];
  });
}

function linesOf(value: string): string[] {
  const lines = value.split("\n").map((line) => line.trim());
  if (lines.length < 2) return [];
  return lines.filter((line) => line.length >= minLineLength && !line.startsWith("-----"));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // A literal percent sign.
    return part;
  }
}
