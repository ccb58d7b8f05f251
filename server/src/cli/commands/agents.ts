import type { Harness } from "@ambit/core/plugin";
import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { openAmbit } from "../../open.js";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";

/** `ambit agents`: the loaded agents with their versions, and how to install those that are missing. */
export async function agents(options: Overrides & { readonly json?: boolean }): Promise<number> {
  const rows = (await harnesses(options)).map(({ id, aliases, installation }) => ({
    id,
    aliases,
    title: installation?.title ?? id,
    pinned: installation?.packages ?? [],
    // An agent without an installation is part of its plugin.
    installed: installation === undefined ? null : (installation.installed() ?? null),
    comesAlong: installation === undefined,
  }));
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const cells = rows.map(({ id, title, installed, comesAlong, pinned }) => [
    id,
    title,
    comesAlong ? "included" : installed === null ? "–" : versionText(installed),
    pinned.map(({ name, version }) => `${name}@${version}`).join(" ") || "–",
    comesAlong || installed !== null ? (installed?.path ?? "") : `ambit agents install ${id}`,
  ]);
  process.stdout.write(table(["agent", "", "installed", "installs", ""], cells));
  return exitCodes.ok;
}

/** A version other than the tested one may behave differently: its permissions were never tried. */
export function versionText({
  version,
  tested,
}: {
  readonly version: string;
  readonly tested: string;
}): string {
  return version === tested ? version : `${version} (tested: ${tested})`;
}

/** `ambit agents install <id>`. */
export async function installAgent(name: string, options: Overrides): Promise<number> {
  const all = await harnesses(options);
  const harness = all.find(({ id, aliases }) => id === name || aliases.includes(name));
  const known = all.filter(({ installation }) => installation !== undefined).map(({ id }) => id);
  const say = (line: string) => process.stderr.write(`${line}\n`);
  if (harness === undefined) {
    say(`ambit: no agent '${name}' is loaded: ${known.join(", ")} can be installed`);
    return exitCodes.usage;
  }
  const { installation } = harness;
  if (installation === undefined) {
    say(`${harness.id} is part of its plugin: nothing to install`);
    return exitCodes.ok;
  }
  const versions = installation.packages.map(({ name: pinned, version }) => `${pinned}@${version}`);
  say(`Installing ${installation.title}: ${versions.join(", ")}`);
  const { path } = await installation.install(say);
  process.stdout.write(`${path}\n`);
  return exitCodes.ok;
}

async function harnesses(options: Overrides): Promise<readonly Harness[]> {
  const environment = takeEnvironment(process.env);
  const { registry } = await openAmbit({ environment, overrides: options, logLevel: "warn" });
  return registry.knownCandidates().harnesses.map(({ actor }) => actor);
}
