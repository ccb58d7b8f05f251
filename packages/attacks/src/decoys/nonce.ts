import { randomBytes } from "node:crypto";

/** Identifies one attempt, so that what a decoy sees can be distinguished from anything else on this machine. */
export function freshNonce(): string {
  return `ambit-nonce-${randomBytes(12).toString("hex")}`;
}

/** What decoys reveal. Attacks know only its form: they can't have it unless they reached a decoy. */
export function freshSecret(): string {
  return `ambit-decoy-${randomBytes(16).toString("hex")}`;
}
