import type { Overrides } from "../../configuration/load.js";
import { configurationJsonSchema } from "../../configuration/schema.js";
import { Progress } from "../display/progress.js";
import { table } from "../display/table.js";
import { exitCodes } from "../exit-codes.js";
import { openForCommand, probeAll } from "../open-command.js";

export interface PluginsOptions extends Overrides {
  readonly json?: boolean;
  /** Probes first what isn't proven yet. */
  readonly probe?: boolean;
}

/** `ambit plugins`: what is loaded, of every kind; with `--json` also the findings, and how each plugin is configured. */
export async function plugins(options: PluginsOptions): Promise<number> {
  const ambit = await openForCommand(options);
  const { registry } = ambit;
  const progress = new Progress();
  if (options.probe === true) await probeAll(ambit, progress).finally(() => progress.end());
  const actors = registry.evidence();
  if (options.json === true) {
    const described = {
      configurationSchema: configurationJsonSchema(),
      plugins: registry.plugins,
      offers: registry.offers,
      actors: registry.known(),
    };
    process.stdout.write(`${JSON.stringify(described, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const rows = registry.offers.map(({ plugin, kind, name }) => {
    const registered = registry.registrations.find(
      (one) => one.plugin === plugin && one.kind === kind && one.actor.name === name,
    );
    const claims = registered?.actor.claims ?? [];
    const probed = actors.find((one) => one.plugin === plugin && one.kind === kind && one.name === name);
    const proven = probed?.findings.filter((finding) => finding.proven).length;
    return [
      plugin,
      kind,
      name,
      registered?.actor.site ?? "",
      claims.length === 0 ? "" : `${proven ?? "?"} of ${claims.length}`,
    ];
  });
  const idle = registry.plugins.filter(({ name }) => !registry.offers.some(({ plugin }) => plugin === name));
  rows.push(...idle.map(({ name }) => [name, "–", "offers nothing as it is configured", "", ""]));
  process.stdout.write(
    table(["plugin", "kind", "name", "site", "proven"], rows, { shrinks: ["name", "plugin"] }),
  );
  const isProbed = actors.length === registry.registrations.length;
  process.stdout.write(
    isProbed
      ? "\n`ambit doctor` shows what this host guarantees, and the fix for what it doesn't.\n"
      : "\n? isn't probed yet on this host: `ambit plugins --probe` does, and `ambit doctor` says what is proven.\n",
  );
  return exitCodes.ok;
}
