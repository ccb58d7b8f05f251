import {
  type Boundary,
  boundaryGaps,
  type Candidates,
  type Gap,
  gapLines,
  normaliseBoundary,
  sandboxPermissionSchema,
  settingsProblems,
} from "@ambit/core";
import { type MinimumBoundary, minimumBoundarySchema } from "@ambit/runner";
import type { Settings } from "./configuration/load.js";
import { ConfigurationInvalid } from "./configuration/problems.js";

/** A boundary that a deployment must be able to guarantee, and whether this host does. */
export interface Gate {
  /** What requires it: "require of the configuration". */
  readonly name: string;
  readonly required: MinimumBoundary;
  /** The loaded sandboxes that guarantee it here. Empty: a run with this boundary is refused. */
  readonly metBy: readonly string[];
  /** What each of the others lacks. Empty where no sandbox is loaded. */
  readonly gaps: readonly Gap[];
}

/** One boundary to check, for some sandboxes or all. */
interface GateRule {
  readonly name: string;
  readonly required: MinimumBoundary;
  readonly sandboxes?: readonly string[] | undefined;
}

/** The rules that hold on this server: its own, and those of its tenants' tokens. Pure. */
export function rulesOf({ require, tokens }: Pick<Settings, "require" | "tokens">): readonly GateRule[] {
  const ofTokens = tokens.flatMap(({ require: required, sandboxes }, index) => [
    { name: `tokens[${index}].require`, required, sandboxes },
    // The server's rule holds for a tenant too, who may have fewer sandboxes.
    ...(sandboxes === undefined
      ? []
      : [{ name: `require for tokens[${index}]`, required: require, sandboxes }]),
  ]);
  return [{ name: "require", required: require }, ...ofTokens].filter(({ required }) => isRule(required));
}

function isRule({ network, filesystem, secrets, resources = {} }: MinimumBoundary): boolean {
  return [network, filesystem, secrets, ...Object.values(resources)].some((value) => value !== undefined);
}

/** Which sandboxes guarantee the boundary of each rule, by the evidence that the candidates have. Pure. */
export function gatesOf(rules: readonly GateRule[], { sandboxes }: Candidates): readonly Gate[] {
  return rules.map(({ name, required, sandboxes: allowed }) => {
    const boundary = boundaryOf(required);
    const considered = sandboxes.filter(({ actor }) => allowed?.includes(actor.name) !== false);
    const judged = considered.map((probed) => ({
      name: probed.actor.name,
      gaps: boundaryGaps(boundary, probed),
    }));
    return {
      name,
      required,
      metBy: judged.filter(({ gaps }) => gaps.length === 0).map((one) => one.name),
      gaps: judged.flatMap(({ gaps }) => gaps),
    };
  });
}

/** A destination of each kind that a list may have. Nothing is sent there: these blocks are for documentation. */
const allowlist = ["example.com:443", "192.0.2.1:443"];

/** The boundary of a request that restricts just what is required. */
function boundaryOf({ network, ...others }: MinimumBoundary): Boundary {
  const permission = { ...others, network: network === "allowlist" ? { allowlist } : network };
  return normaliseBoundary(sandboxPermissionSchema.parse(permission)).boundary;
}

const limits = ["memoryMb", "processes", "cpus", "diskMb"] as const;

/**
 * The rule that `--require` writes as `network=off,filesystem=workspace,secrets=hidden,memoryMb=2048`.
 * @throws ConfigurationInvalid
 */
export function parseRequire(text: string): MinimumBoundary {
  const resources: Record<string, unknown> = {};
  const others: Record<string, unknown> = {};
  for (const part of text.split(",").filter((one) => one.trim() !== "")) {
    const [name = "", value = ""] = part.split("=").map((one) => one.trim());
    if (limits.some((limit) => limit === name)) resources[name] = Number(value);
    else others[name] = value;
  }
  const rule = { ...others, ...(Object.keys(resources).length === 0 ? {} : { resources }) };
  const parsed = minimumBoundarySchema.safeParse(rule);
  if (!parsed.success)
    throw new ConfigurationInvalid("--require", settingsProblems(parsed.error, minimumBoundarySchema, rule));
  if (!isRule(parsed.data))
    throw new ConfigurationInvalid("--require", [
      "must say what to guarantee, such as network=off,filesystem=workspace,memoryMb=2048",
    ]);
  return parsed.data;
}

/** The same form that `parseRequire` reads. Pure. */
export function requireText({ resources = {}, ...others }: MinimumBoundary): string {
  return Object.entries({ ...others, ...resources })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

/** What each sandbox lacks, a line for each reason. Pure. */
export function gateGaps({ gaps }: Gate): readonly string[] {
  return gapLines(gaps.map(({ requiredBy: _, ...gap }) => gap));
}
