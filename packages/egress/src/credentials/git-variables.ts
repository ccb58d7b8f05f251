import type { BoundCredential } from "./bound.js";

/**
 * Git's settings for one process, without changing a repository (git-config, "ENVIRONMENT"): the placeholder
 * is sent with every request to its hosts, and remotes over SSH are reached by HTTPS instead.
 *
 * @param given variables that the process has already: settings in them stay.
 */
export function gitVariables(
  credentials: readonly BoundCredential[],
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const settings = gitSettings(credentials);
  const before = given.GIT_CONFIG_COUNT ?? "0";
  // An invalid count: git itself reports it.
  if (settings.length === 0 || !/^\d{1,4}$/.test(before)) return {};
  const first = Number(before);
  return Object.fromEntries([
    ["GIT_CONFIG_COUNT", String(first + settings.length)],
    ...settings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${first + index}`, key],
      [`GIT_CONFIG_VALUE_${first + index}`, value],
    ]),
  ]);
}

type Setting = readonly [key: string, value: string];

/** One credential per URL, passwords first, since git would send two headers with the same name. */
function gitSettings(credentials: readonly BoundCredential[]): readonly Setting[] {
  const byRank = credentials.toSorted((one, other) => rankOf(one) - rankOf(other));
  const headers = new Map<string, string>();
  const remotes = new Map<string, string>();
  for (const credential of byRank) {
    const header = headerOf(credential);
    if (header === undefined) continue;
    for (const endpoint of credential.endpoints) {
      const name = endpoint.replace(/:443$/, "");
      const origin = `https://${name}/`;
      for (const path of credential.paths ?? ["/"]) {
        // Git takes `/app.git` and `/app.git/` for the same place, and would send the header for each of them.
        const place =
          origin +
          path
            .slice(1)
            .replace(/[^/]*\*$/, "")
            .replace(/\/$/, "");
        if (!headers.has(place)) headers.set(place, header);
      }
      if (!name.includes(":")) {
        for (const remote of [`git@${name}:`, `ssh://git@${name}/`]) remotes.set(remote, origin);
      }
    }
  }
  // A path within another comes first: git then uses only its header.
  const places = [...headers].toSorted(([one], [other]) => other.length - one.length);
  return [
    ...places.map(([place, header]): Setting => [`http.${place}.extraHeader`, header]),
    ...[...remotes].map(([remote, origin]): Setting => [`url.${origin}.insteadOf`, remote]),
  ];
}

const rankOf = ({ as }: BoundCredential) => (as === "basic" ? 0 : as === "bearer" ? 1 : 2);

/** The header that git sends for it; undefined for a model's key. */
function headerOf({ as, placeholder }: BoundCredential): string | undefined {
  if (as === undefined) return undefined;
  if (typeof as === "object") return `${as.header}: ${placeholder}`;
  if (as === "bearer") return `Authorization: Bearer ${placeholder}`;
  return `Authorization: Basic ${Buffer.from(`x-access-token:${placeholder}`).toString("base64")}`;
}
