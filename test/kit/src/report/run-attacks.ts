import { release } from "node:os";
import { type Capability, capabilities, type SandboxBackend } from "@ambit/core/plugin";
import { type CapabilityReport, type JudgeOptions, judgeCapability } from "../judge/judge-capability.js";
import { probeWithin } from "../stage/kit-scope.js";

export interface RunAttacksOptions extends JudgeOptions {
  /** Default: the whole vocabulary. */
  readonly capabilities?: readonly Capability[];
  /** Milliseconds for the backend's own probe. Default: two minutes. */
  readonly probeMs?: number;
  /** Called before each capability, for progress. */
  onBegin?(capability: Capability): void;
  /** Called after each capability, for progress. */
  onCapability?(report: CapabilityReport): void;
}

/** The result of every attack on one backend on this host. This is also the JSON format. */
export interface VerifyReport {
  readonly backend: string;
  /** The control, in which the attacks had to work. */
  readonly control: string;
  /** ISO 8601. */
  readonly at: string;
  readonly host: { readonly platform: string; readonly release: string; readonly uid: number | null };
  readonly capabilities: readonly CapabilityReport[];
  /** Whether every capability is proven or honestly refused. */
  readonly holds: boolean;
}

/** Probes a backend and runs every attack on it, one after the other. */
export async function runAttacks(backend: SandboxBackend, options: RunAttacksOptions): Promise<VerifyReport> {
  const findings = await probeWithin(backend, options.probeMs);
  const reports: CapabilityReport[] = [];
  for (const capability of options.capabilities ?? capabilities) {
    options.onBegin?.(capability);
    const report = await judgeCapability(backend, findings, capability, options);
    reports.push(report);
    options.onCapability?.(report);
  }
  return {
    backend: backend.name,
    control: options.control.what,
    at: new Date().toISOString(),
    host: { platform: process.platform, release: release(), uid: process.getuid?.() ?? null },
    capabilities: reports,
    holds: reports.every(({ assurance }) => assurance === "proven" || assurance === "refused"),
  };
}
