import { takeEnvironment } from "../../configuration/environment.js";
import type { Overrides } from "../../configuration/load.js";
import { configurationJsonSchema } from "../../configuration/schema.js";
import { printable } from "../../logging/printable.js";
import { openAmbit } from "../../open.js";
import { table } from "../display/table.js";
import { endsCommand } from "../ends-command.js";
import { exitCodes } from "../exit-codes.js";

/** `ambit plugins`: what is loaded; with `--json` also the findings, and how each plugin is configured. */
export async function plugins(options: Overrides & { readonly json?: boolean }): Promise<number> {
  const environment = takeEnvironment(process.env);
  const { registry } = await openAmbit({
    environment,
    overrides: options,
    logLevel: "warn",
    unhandled: endsCommand,
  });
  if (options.json === true) {
    const described = {
      configurationSchema: configurationJsonSchema(),
      plugins: registry.plugins,
      actors: await registry.describe(),
    };
    process.stdout.write(`${JSON.stringify(described, undefined, 2)}\n`);
    return exitCodes.ok;
  }
  const warnings = new Set<string>();
  const rows = (await registry.describe()).map(({ plugin, kind, name, site, claims, findings }) => {
    const proven = findings.filter((finding) => finding.proven);
    for (const { warning } of proven) if (warning !== undefined) warnings.add(`${name}: ${warning}`);
    return [
      plugin,
      kind,
      name,
      site,
      claims.length === 0 ? "–" : `${proven.length} of ${claims.length} proven here`,
    ];
  });
  process.stdout.write(table(["plugin", "kind", "name", "site", "claims"], rows));
  for (const warning of warnings) process.stdout.write(`\nwarning: ${printable(warning)}\n`);
  process.stdout.write(
    "\n`ambit doctor` shows how each claim was proven, and the fix for those that weren't.\n",
  );
  return exitCodes.ok;
}
