import { type Capability, capabilities, isCapability, messageOf } from "@ambit/core";
import type { VerifyReport } from "@ambit/testkit";
import type { Overrides } from "../../configuration/load.js";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { keepVerification } from "../../verifications.js";
import { columnsOf } from "../display/layout.js";
import { Progress } from "../display/progress.js";
import { verifyReport } from "../display/verify-report.js";
import { exitCodes } from "../exit-codes.js";
import { explain } from "../explain.js";
import { openForCommand } from "../open-command.js";

export interface VerifyOptions extends Overrides {
  /** A sandbox by name. Default: the first configured. */
  readonly sandbox?: string;
  readonly capability?: readonly string[];
  readonly json?: boolean;
  /** Every attack, with what was seen of it. */
  readonly verbose?: boolean;
}

/**
 * `ambit verify`: runs every attack of the conformance kit on this host, each with its control. Nothing
 * destructive runs outside a sandbox, and no setting of the host is changed.
 */
export async function verify(options: VerifyOptions): Promise<number> {
  // This module isn't in the bundle, whose `explain` doesn't recognise its error classes.
  const progress = new Progress();
  return attack(options, progress)
    .catch((error: unknown) => {
      progress.end();
      return explain(error, process.stderr);
    })
    .finally(() => progress.end());
}

async function attack(options: VerifyOptions, progress: Progress): Promise<number> {
  const ambit = await openForCommand(options, { logLevel: "silent", keepsEvidence: false });
  const wanted = capabilitiesOf(options.capability ?? []);
  const sandboxes = ambit.registry.knownCandidates().sandboxes.map(({ actor }) => actor);
  const backend = sandboxes.find(({ name }) => name === (options.sandbox ?? name));
  if (backend === undefined) {
    const loaded = sandboxes.map(({ name }) => name).join(", ");
    throw new ConfigurationInvalid("--sandbox", [
      `must name a loaded sandbox: ${loaded || "none is loaded"}`,
    ]);
  }
  // The first word comes before anything that takes long.
  const { length } = wanted;
  process.stderr.write(
    `Attacking the sandbox ${backend.name}: ${length} ${length === 1 ? "capability" : "capabilities"}\n`,
  );
  progress.step("probing it first");
  const { operatorControl, runAttacks } = await import("@ambit/testkit");
  let begun = 0;
  let made = 0;
  const report: VerifyReport = await runAttacks(backend, {
    control: operatorControl(backend),
    capabilities: wanted,
    probeMs: ambit.settings.probes.timeoutMs,
    onBegin: (capability) => {
      begun += 1;
      progress.step(`${begun} of ${length} · ${capability}`);
    },
    onAttack: ({ id }) => {
      made += 1;
      progress.detail(`attack ${made}, ${id.slice(id.indexOf("/") + 1)}`);
    },
  });
  progress.end();
  await keepVerification(report).catch((error: unknown) =>
    process.stderr.write(`ambit: the result isn't kept for GET /host: ${messageOf(error)}\n`),
  );
  process.stdout.write(
    options.json === true
      ? `${JSON.stringify(report, undefined, 2)}\n`
      : verifyReport(report, { columns: columnsOf(process.stdout), verbose: options.verbose === true }),
  );
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
