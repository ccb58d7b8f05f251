import type { HiddenCredential } from "@ambit/core/plugin";
import type { Target } from "../target.js";
import { placeholderFor } from "./placeholder.js";

/** A credential with its placeholder and its destinations. */
export interface BoundCredential extends HiddenCredential {
  readonly placeholder: string;
  /** `host:port`, canonical. */
  readonly endpoints: ReadonlySet<string>;
  /** The secret part of the value: all of it, or the password of `user:password`. */
  readonly secret: string;
}

export function bindCredential(credential: HiddenCredential): BoundCredential {
  const secret = secretPartOf(credential);
  return {
    ...credential,
    placeholder: placeholderFor(secret),
    endpoints: endpointsOf(credential),
    secret,
  };
}

const endpointsOf = ({ hosts }: Pick<HiddenCredential, "hosts">): ReadonlySet<string> =>
  new Set(hosts.map((host) => (host.includes(":") ? host : `${host}:443`)));

/** One that another process bound. */
export const bindAgain = (credential: Omit<BoundCredential, "endpoints">): BoundCredential => ({
  ...credential,
  endpoints: endpointsOf(credential),
});

/** The same credential with another value. Its placeholder stays: programs inside have it already. */
export function withValue(credential: BoundCredential, value: string): BoundCredential {
  return { ...credential, value, secret: secretPartOf({ value, as: credential.as }) };
}

function secretPartOf({ value, as }: Pick<HiddenCredential, "value" | "as">): string {
  const colon = as === "basic" ? value.indexOf(":") : -1;
  const password = value.slice(colon + 1);
  // A password too short to distinguish from other text is hidden as a part of the whole.
  return password.length < minSecretLength ? value : password;
}

const minSecretLength = 8;

export function isBoundTo(
  { endpoints }: BoundCredential,
  { host, port }: Pick<Target, "host" | "port">,
): boolean {
  return endpoints.has(`${host}:${port}`);
}
