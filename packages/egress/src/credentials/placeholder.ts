import { randomInt } from "node:crypto";

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
  const rest = value.slice(prefix.length);
  const length = Math.min(max, Math.max(minLength, rest.length));
  return prefix + randomText(length, /^[0-9a-f]+$/.test(rest) ? hexadecimal : letters);
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
