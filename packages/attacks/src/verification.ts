import type { Capability, SandboxBackend } from "@ambit/core/plugin";

/** What attacks on a backend have to know of it, for `ambit verify` and the conformance kit. */
export interface Verification {
  /** A module whose default export makes the backend, for attacks that kill its runner. Absent: they aren't made. */
  readonly runnerModule?: URL;
  /** Why an attack, by its id, breaks no promise here: "the kernel inside is its own". Every report shows it. */
  readonly exempt?: Readonly<Record<`${Capability}/${string}`, string>>;
}

/** A backend that says more for attacks than its claims. */
export interface VerifiableBackend extends SandboxBackend {
  readonly verification: Verification;
}

const isVerifiable = (backend: SandboxBackend): backend is VerifiableBackend =>
  "verification" in backend && typeof backend.verification === "object" && backend.verification !== null;

/** Nothing for a backend that says nothing. */
export const verificationOf = (backend: SandboxBackend): Verification =>
  isVerifiable(backend) ? backend.verification : {};
