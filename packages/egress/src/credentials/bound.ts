import { randomInt } from "node:crypto";
import type { HiddenCredential } from "@ambit/core/plugin";
import type { Target } from "../target.js";

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

/**
 * Prefixes that the issuers' own clients check before they send a key. The placeholder repeats nothing else of the
 * value.
 */
const prefixes = [
  "sk-ant-api03-",
  "sk-ant-oat01-",
  "sk-ant-",
  "sk-proj-",
  "sk-or-v1-",
  "sk-",
  "sk_live_",
  "sk_test_",
  "github_pat_",
  "ghp_",
  "gho_",
  "ghu_",
  "ghs_",
  "ghr_",
  "glpat-",
  "glptt-",
  "npm_",
  "pypi-",
  "dckr_pat_",
  "xoxb-",
  "xoxp-",
  "xapp-",
  "AIza",
  "ya29.",
  "hf_",
  "gsk_",
  "xai-",
  "pk_live_",
  "pk_test_",
  "rk_live_",
];

const minLength = 32;
const max = 256;
const hexadecimal = "0123456789abcdef";
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** A random text that clients accept as the value: with its issuer's prefix, about its length and character set. */
export function placeholderFor(value: string): string {
  if (/^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(value)) return webToken();
  const prefix = prefixes.find((one) => value.startsWith(one)) ?? "";
  const secretPart = value.slice(prefix.length);
  const length = Math.min(max, Math.max(minLength, secretPart.length));
  return prefix + randomText(length, /^[0-9a-f]+$/.test(secretPart) ? hexadecimal : letters);
}

/** Shaped as in RFC 7519, for clients that decode it: without a subject, valid until 2100. */
function webToken(): string {
  const part = (content: object) => Buffer.from(JSON.stringify(content)).toString("base64url");
  const claims = { jti: randomText(minLength, letters), exp: 4_102_444_800 };
  return `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}.${randomText(43, letters)}`;
}

function randomText(length: number, characters: string): string {
  return Array.from({ length }, () => characters[randomInt(characters.length)]).join("");
}
