import { type Capability, capabilities, isCapability } from "@ambit/core";
import type { VerifyReport } from "@ambit/testkit";
import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { openAmbit } from "../../open.js";
import { endsCommand } from "../ends-command.js";
import { exitCodes } from "../exit-codes.js";
import { explain } from "../explain.js";

export interface VerifyOptions extends Overrides {
  /** A sandbox by name. Default: the first configured. */
  readonly sandbox?: string;
  readonly capability?: readonly string[];
  readonly json?: boolean;
}

/**
 * `ambit verify`: runs every attack of the conformance kit on this host, each with its control. Nothing
 * destructive runs outside a sandbox, and no setting of the host is changed.
 */
export async function verify(options: VerifyOptions): Promise<number> {
  // This module isn't in the bundle, whose `explain` doesn't recognise its error classes.
  return attack(options).catch((error: unknown) => explain(error, process.stderr));
}

async function attack(options: VerifyOptions): Promise<number> {
  const environment = takeEnvironment(process.env);
  const ambit = await openAmbit({
    environment,
    overrides: options,
    logLevel: "silent",
    unhandled: endsCommand,
  });
  const wanted = capabilitiesOf(options.capability ?? []);
  const sandboxes = ambit.registry.knownCandidates().sandboxes.map(({ actor }) => actor);
  const backend = sandboxes.find(({ name }) => name === (options.sandbox ?? name));
  if (backend === undefined) {
    const loaded = sandboxes.map(({ name }) => name).join(", ");
    throw new ConfigurationInvalid("--sandbox", [
      `must name a loaded sandbox: ${loaded || "none is loaded"}`,
    ]);
  }
  const { operatorControl, renderVerifyTable, runAttacks } = await import("@ambit/testkit");
  const report: VerifyReport = await runAttacks(backend, {
    control: operatorControl(backend),
    capabilities: wanted,
    probeMs: ambit.settings.probes.timeoutMs,
    onCapability: ({ capability, assurance }) =>
      process.stderr.write(`${assurance.padEnd(9)} ${capability}\n`),
  });
  const width = process.stdout.isTTY ? process.stdout.columns : 200;
  const text =
    options.json === true ? JSON.stringify(report, undefined, 2) : renderVerifyTable(report, { width });
  process.stdout.write(`${text}\n`);
  if (!report.holds) return exitCodes.runFailed;
  // Nothing was attacked: the sandbox can't be opened here.
  return report.capabilities.some(({ assurance }) => assurance === "proven")
    ? exitCodes.ok
    : exitCodes.boundaryRefused;
}

function capabilitiesOf(names: readonly string[]): readonly Capability[] {
  const unknown = names.filter((name) => !isCapability(name));
  if (unknown.length > 0) {
    throw new ConfigurationInvalid(
      "--capability",
      unknown.map((name) => `'${name}' is no capability; expected one of ${capabilities.join(", ")}`),
    );
  }
  return names.length === 0 ? capabilities : names.filter(isCapability);
}
