import { createHash } from "node:crypto";
import { Automaton, formsOf } from "@ambit/secret-forms";

/** Those in use, by a digest of their secrets: a run, its session and the log look for the same ones. */
const inUse = new Map<string, WeakRef<Automaton>>();
/** Beyond so many, entries whose automaton is gone are dropped. */
const many = 256;

export function automatonFor(secrets: readonly string[]): Automaton {
  const key = createHash("sha256").update(JSON.stringify(secrets.toSorted())).digest("base64url");
  const known = inUse.get(key)?.deref();
  if (known !== undefined) return known;
  const built = new Automaton(secrets.flatMap(formsOf));
  if (inUse.size >= many) {
    for (const [each, reference] of inUse) if (reference.deref() === undefined) inUse.delete(each);
  }
  inUse.set(key, new WeakRef(built));
  return built;
}
