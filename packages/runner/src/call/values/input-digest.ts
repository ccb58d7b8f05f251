import { createHash } from "node:crypto";
import { isJsonObject, parseBoundedJson } from "@ambit/core/contract";
import { canonicalJson } from "../../canonical-json.js";
import { pathBeyondDepth } from "../../parse/depth.js";

/** The same for equal arguments. A digest, since arguments may be long and only their equality counts. */
export function digestOf(input: unknown): string {
  return createHash("sha256")
    .update(canonicalJson(comparable(input)))
    .digest("base64url");
}

/** Characters of a text that is read as JSON. A longer one is compared as it is. */
const maxQuoted = 65_536;

/**
 * A call's arguments in the form in which two calls are compared. Agents that repeat a call may send a list or an object
 * as its JSON text, or the text as what it means: both are the same arguments. Pure.
 */
export function comparable(input: unknown): unknown {
  const given = unquoted(input) ?? {};
  if (!isJsonObject(given)) return given;
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, unquoted(value)]));
}

function unquoted(value: unknown): unknown {
  if (typeof value !== "string" || value.length > maxQuoted || !/^\s*[{[]/.test(value)) return value;
  try {
    const meant = parseBoundedJson(value);
    // The comparison recurses.
    return pathBeyondDepth(meant) === undefined ? meant : value;
  } catch {
    return value;
  }
}
