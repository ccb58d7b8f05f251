import type { BoundCredential } from "./bound.js";

/** The trust stores' paths, as seen inside. */
export interface TrustFiles {
  /** The session's authority alone, for variables that add to a store. */
  readonly authority: string;
  /** The system's authorities and the session's, for variables that replace a store. */
  readonly bundle: string;
}

/** Variables by which programs inside trust the session's authority. */
export function trustVariables({ authority, bundle }: TrustFiles): Readonly<Record<string, string>> {
  return {
    // OpenSSL, Go, Python, Bun, codex.
    SSL_CERT_FILE: bundle,
    CURL_CA_BUNDLE: bundle,
    REQUESTS_CA_BUNDLE: bundle,
    PIP_CERT: bundle,
    GIT_SSL_CAINFO: bundle,
    npm_config_cafile: bundle,
    CARGO_HTTP_CAINFO: bundle,
    AWS_CA_BUNDLE: bundle,
    CODEX_CA_CERTIFICATE: bundle,
    NODE_EXTRA_CA_CERTS: authority,
    DENO_CERT: authority,
  };
}

/**
 * Git's settings for one process, which leave no trace in a repository (git-config, "ENVIRONMENT"): the placeholder
 * goes with every request to its hosts, and remotes over SSH are reached by HTTPS instead.
 *
 * @param given variables that the process has already: settings in them stay.
 */
export function gitVariables(
  credentials: readonly BoundCredential[],
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const settings = credentials.flatMap((credential) => settingsFor(credential));
  const before = given.GIT_CONFIG_COUNT ?? "0";
  // A count that git itself would refuse: it says so better than we could.
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

function settingsFor({
  as,
  endpoints,
  paths,
  placeholder,
}: BoundCredential): readonly (readonly [string, string])[] {
  if (as === undefined) return [];
  const pair = Buffer.from(`x-access-token:${placeholder}`).toString("base64");
  const header =
    typeof as === "object"
      ? `${as.header}: ${placeholder}`
      : `Authorization: ${as === "basic" ? `Basic ${pair}` : `Bearer ${placeholder}`}`;
  return [...endpoints].flatMap((endpoint) => {
    const [, name = endpoint, port = ""] = /^(.*):(\d+)$/.exec(endpoint) ?? [];
    const origin = port === "443" ? `https://${name}/` : `https://${endpoint}/`;
    const below = paths ?? ["/"];
    const places = new Set(below.map((path) => origin + path.slice(1).replace(/[^/]*\*$/, "")));
    const overSsh = port === "443" ? [`git@${name}:`, `ssh://git@${name}/`] : [];
    return [
      ...[...places].map((place) => [`http.${place}.extraHeader`, header] as const),
      ...overSsh.map((remote) => [`url.${origin}.insteadOf`, remote] as const),
    ];
  });
}
