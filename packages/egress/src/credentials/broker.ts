import {
  type Boundary,
  type HiddenCredential,
  type Hiding,
  readHost,
  type SandboxSpec,
} from "@ambit/core/plugin";
import { decideBeforeLookup } from "../decide.js";
import type { SessionAuthority } from "./authority.js";
import { gitVariables } from "./git.js";
import { readAuthorities, type SessionTrust, trustVariables } from "./trust.js";
import {
  type AskForSecret,
  type CredentialState,
  CredentialValues,
  HeldCredentials,
  type ProxyCredentials,
  type ServerTrust,
} from "./values.js";

export interface BrokerOptions extends ServerTrust {
  /** Asks for a new value of a credential that has `refresh`. Default: there is none. */
  readonly refresh?: AskForSecret | undefined;
}

/** One session's credentials, which its egress proxy adds to requests. Kept in memory only. */
export interface CredentialBroker extends ProxyCredentials, SessionTrust {
  /** The placeholder of each value, by name. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** For a proxy in another process. */
  readonly state: CredentialState;
  /** A server's certificate and its key in PEM, for a proxy in another process. */
  certificateFor(name: string): Promise<{ readonly key: string; readonly certificate: string }>;
}

/**
 * Creates placeholders and an authority for a session.
 * @throws TypeError for no credentials: none needs a broker; for one with `refresh` without a way to ask
 */
export async function openCredentialBroker(
  secrets: readonly HiddenCredential[],
  trust: BrokerOptions = {},
): Promise<CredentialBroker> {
  if (secrets.length === 0) throw new TypeError("A broker without credentials would only open TLS");
  const values = new CredentialValues(secrets, trust.refresh, () => {
    held.state = stateOf(values);
  });
  const held = new HeldCredentials(stateOf(values));
  const authority = await makeAuthority();
  return {
    placeholders: Object.fromEntries(values.current.map(({ name, placeholder }) => [name, placeholder])),
    authority: authority.certificate,
    get credentials() {
      return held.credentials;
    },
    get state() {
      return held.state;
    },
    trust,
    credentialsFor: (target) => held.credentialsFor(target),
    ready: (names) => values.ready(names),
    contextFor: (name) => authority.contextFor(name),
    certificateFor: (name) => authority.certificateFor(name),
    replacementsFor: (target) => held.replacementsFor(target),
    environment: (role, files, given) => ({
      ...trustVariables(files),
      ...given,
      ...(role === "agent" ? gitVariables(values.current, given) : {}),
    }),
  };
}

const stateOf = (values: CredentialValues): CredentialState => ({
  credentials: values.current,
  hidden: values.current.map((credential) => values.allOf(credential)),
});

/** An authority whose key stays in this process. */
export async function makeAuthority(): Promise<SessionAuthority> {
  // Creating certificates needs a library that takes 125 ms to load, and that most servers never need.
  const { SessionAuthority } = await import("./authority.js");
  return SessionAuthority.make();
}

export interface SessionBrokerOptions {
  /** The plugin with the setting `trustedAuthorities`, for errors: `sandbox-local`. */
  readonly plugin: string;
  /** Absolute paths of PEM files: authorities besides those of this host and Node. */
  readonly trustedAuthorities: readonly string[];
  /** Authorities in PEM that replace the host's and those of the files. Default: not replaced. */
  readonly trusted?: readonly string[] | undefined;
}

/**
 * The broker of a sandbox's secrets; undefined if it has none.
 *
 * @throws SandboxFailed for a file that can't be read.
 */
export async function openSessionBroker(
  spec: Pick<SandboxSpec, "secrets" | "refreshSecret">,
  { plugin, trustedAuthorities, trusted }: SessionBrokerOptions,
): Promise<CredentialBroker | undefined> {
  const { secrets = [] } = spec;
  if (secrets.length === 0) return undefined;
  const refresh = spec.refreshSecret?.bind(spec);
  // Also for a probe, which trusts other authorities: a file that can't be read is found before a run needs it.
  const added = await readAuthorities(trustedAuthorities, plugin);
  return openCredentialBroker(secrets, trusted === undefined ? { added, refresh } : { trusted, refresh });
}

/**
 * Whether the egress proxy can keep this credential outside: its hosts are names that the boundary lets the sandbox
 * reach. The answer of `SandboxBackend.hides` for every backend whose only way out is this proxy. Pure.
 */
export function proxyHides({ value, hosts }: HiddenCredential, { network }: Boundary): Hiding {
  if (!/^[\x20-\x7e]{8,4096}$/.test(value) || value.trim() !== value) {
    const fix = "use a key of 8 to 4,096 printable ASCII characters";
    return { reason: "it can't be sent in a header, or it is too short to be recognised", fix };
  }
  for (const entry of hosts) {
    const [, name = entry, digits = "443"] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
    const port = Number(digits);
    const reading = readHost(name);
    if (!reading.ok || reading.kind === "address") {
      return {
        reason: `${name} is not a host name, and certificates are issued for names`,
        fix: "use the server's name",
      };
    }
    const where = `${reading.host}:${port}`;
    const fix = `list "${where}" in sandboxPermission.network.allowlist`;
    if (network.mode === "on") {
      return {
        reason: "an unrestricted network has no proxy between the sandbox and the credential's hosts",
        fix,
      };
    }
    const decision = decideBeforeLookup({ host: reading.host, kind: "name", port }, network);
    if (!decision.allowed) return { reason: `${where} can't be reached: ${decision.reason}`, fix };
  }
  return hosts.length > 0 || { reason: "it has no host", fix: "name its hosts" };
}
