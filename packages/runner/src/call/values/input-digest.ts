import { createHash } from "node:crypto";
import { canonicalJson } from "../../canonical-json.js";
import { comparable } from "./same-arguments.js";

/** The same for equal arguments. A digest, since arguments may be long and only their equality counts. */
export function digestOf(input: unknown): string {
  return createHash("sha256")
    .update(canonicalJson(comparable(input)))
    .digest("base64url");
}
