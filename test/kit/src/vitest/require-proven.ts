import type { Capability, Finding, SandboxBackend } from "@ambit/core/plugin";
import { expect } from "vitest";
import { mustProve } from "./must-prove.js";

/**
 * Skips a test of a capability that the backend doesn't prove on this host, with the reason. Fails it if
 * `AMBIT_MUST_PROVE` names the capability.
 */
export function requireProven(
  { skip }: { skip(reason: string): unknown },
  backend: Pick<SandboxBackend, "name" | "claims">,
  findings: readonly Finding[],
  capability: Capability,
): void {
  const finding = findings.find((one) => one.capability === capability);
  if (finding?.proven === true) return;
  const reason = `${capability} isn't proven here: ${finding?.reason ?? "it wasn't probed"}`;
  if (mustProve(backend, capability)) expect.fail(reason);
  skip(`host: ${reason}`);
}
