import { type Boundary, listsWideRanges } from "@ambit/core";
import type { filesystemModes, Issue, networkModes } from "@ambit/core/contract";
import { z } from "zod";

const most = (what: string) =>
  z
    .number()
    .positive()
    .optional()
    .meta({ description: `${what} that a request may ask for at most, and must name.` });

/** The least that the boundary of a request must restrict. */
export const minimumBoundarySchema = z.strictObject({
  network: z.enum(["allowlist", "off"]).optional().meta({
    description:
      "`allowlist`: an allowlist whose ranges hold less than a sixteenth of the IPv4 addresses and of the public IPv6 addresses, or `off`. `off`: only that.",
  }),
  filesystem: z.enum(["workspace", "readonly", "off"]).optional().meta({
    description: "This mode, or a stricter one: `workspace`, `readonly`, `off`.",
  }),
  resources: z
    .strictObject({
      memoryMb: most("MiB of memory"),
      processes: most("Processes"),
      cpus: most("Processors"),
      diskMb: most("MiB of disk"),
    })
    .optional(),
  secrets: z
    .literal("hidden")
    .optional()
    .meta({ description: "No credential may be visible in the sandbox." }),
  enforcement: z.literal("strict").optional().meta({ description: "`best_effort` is refused." }),
});
export type MinimumBoundary = z.output<typeof minimumBoundarySchema>;

/**
 * What a request's boundary lacks, one issue for each rule that it is below. Pure.
 * @param whose names the rules' owner: "this server", "this token".
 */
export function belowMinimum(boundary: Boundary, minimum: MinimumBoundary, whose: string): readonly Issue[] {
  const issue = (field: string, rule: string, value: unknown, fix: string): Issue => ({
    path: `sandboxPermission.${field}`,
    message: `is below the rule \`require.${rule}\` of ${whose} (${JSON.stringify(value)}): ${fix}`,
  });
  const issues: Issue[] = [];
  const { network, filesystem, resources = {}, secrets, enforcement } = minimum;
  if (network !== undefined && isLess(networkStrictness, boundary.network.mode, network)) {
    const fix = network === "off" ? 'send "off"' : 'send an allowlist, or "off"';
    issues.push(issue("network", "network", network, fix));
  }
  if (network !== undefined && listsWideRanges(boundary.network.rules)) {
    const fix = "list the destinations; its ranges hold a sixteenth of all addresses, or more";
    issues.push(issue("network.allowlist", "network", network, fix));
  }
  if (filesystem !== undefined && isLess(filesystemStrictness, boundary.filesystem.mode, filesystem))
    issues.push(
      issue("filesystem", "filesystem", filesystem, `send ${JSON.stringify(filesystem)}, or a stricter mode`),
    );
  for (const name of ["memoryMb", "processes", "cpus", "diskMb"] as const) {
    const max = resources[name];
    const requested = boundary.resources[name];
    if (max !== undefined && (requested === undefined || requested > max))
      issues.push(issue(`resources.${name}`, `resources.${name}`, max, `send ${max} or less`));
  }
  if (secrets === "hidden" && boundary.secrets !== "hidden")
    issues.push(issue("secrets", "secrets", secrets, 'send "hidden"'));
  if (enforcement === "strict" && boundary.enforcement !== "strict")
    issues.push(issue("enforcement", "enforcement", enforcement, 'send "strict", or leave it out'));
  return issues;
}

/** From the least to the most restricted. */
const networkStrictness: readonly (typeof networkModes)[number][] = ["on", "allowlist", "off"];
const filesystemStrictness: readonly (typeof filesystemModes)[number][] = [
  "on",
  "workspace",
  "readonly",
  "off",
];

function isLess<Mode>(order: readonly Mode[], mode: Mode, than: Mode): boolean {
  return order.indexOf(mode) < order.indexOf(than);
}
