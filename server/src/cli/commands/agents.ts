import type { Registry } from "@ambit/core";
import type { Overrides } from "../../configuration/load.js";
import { agentsIn, versionText } from "../../host.js";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { openForCommand } from "../open-command.js";

/** `ambit agents`: the loaded agents with their versions, and how to install those that are missing. */
export async function agents(options: Overrides & { readonly json?: boolean }): Promise<number> {
  const rows = await agentsIn(await loadedRegistry(options));
  if (options.json === true) {
    process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const cells = rows.map(({ id, title, installed, comesAlong, pinned }) => [
    id,
    title,
    comesAlong ? "included" : installed === null ? "–" : installedText(installed),
    pinned.map(({ name, version }) => `${name}@${version}`).join(" ") || "–",
  ]);
  process.stdout.write(
    table(["agent", "", "installed", "installs"], cells, { shrinks: ["installs", "installed"] }),
  );
  const missing = rows.filter(({ comesAlong, installed }) => !comesAlong && installed === null);
  if (missing.length > 0)
    process.stdout.write(
      `\nTo install one: ambit agents install ${missing.map(({ id }) => id).join(" | ")}\n`,
    );
  return exitCodes.ok;
}

/** An adapter's version says little: the agent's own stands before it. */
function installedText(installed: {
  readonly version: string;
  readonly tested: string;
  readonly agent?: { readonly name: string; readonly version: string; readonly tested?: string };
}): string {
  const { agent } = installed;
  if (agent === undefined) return versionText(installed);
  const { version, tested = version } = agent;
  return `${versionText({ version, tested })}, adapter ${versionText(installed)}`;
}

/** `ambit agents install <id>`. */
export async function installAgent(name: string, options: Overrides): Promise<number> {
  const all = (await loadedRegistry(options)).knownCandidates().harnesses.map(({ actor }) => actor);
  const harness = all.find(({ id, aliases }) => id === name || aliases.includes(name));
  const installable = all.filter(({ installation }) => installation !== undefined).map(({ id }) => id);
  const say = (line: string) => process.stderr.write(`${line}\n`);
  if (harness === undefined) {
    say(`ambit: no agent '${name}' is loaded: ${installable.join(", ")} can be installed`);
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
  say(
    `\nNext, with its model's key in your environment:\n  ambit run --agent ${harness.id} --folder . "What does this project do?"`,
  );
  return exitCodes.ok;
}

async function loadedRegistry(options: Overrides): Promise<Registry> {
  return (await openForCommand(options, { keepsEvidence: false })).registry;
}
