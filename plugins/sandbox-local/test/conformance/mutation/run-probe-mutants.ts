import { tmpdir } from "node:os";
import { probeSandboxes } from "@ambit/attacks/standard-probe";
import { type Capability, capabilities, type NetworkBoundary } from "@ambit/core/plugin";
import { jailsUnderProbe } from "../../../dist/probe/probe.js";
import {
  filterParts,
  type JailChange,
  type LocalSetup,
  type RemovableMechanism,
  WeakenedSandboxes,
} from "../../weakened/jails/index.ts";

/** What the standard probe doesn't prove of jails that lack something. */
export interface ProbeMutantRow {
  readonly name: string;
  readonly unproven: readonly { readonly capability: Capability; readonly reason: string }[];
}

interface Mutant {
  readonly name: string;
  readonly without: readonly RemovableMechanism[];
  readonly change: JailChange;
  /** What the mechanism enforces, first what is probed in any case. */
  readonly claims: readonly Capability[];
}

const networks = ["network.deny", "network.allow-cidr", "network.allow-host"] as const;
const files = [
  "filesystem.workspace-only",
  "filesystem.read-only",
  "filesystem.none",
  "filesystem.host-hidden",
] as const;

const enforced: readonly (readonly [RemovableMechanism, readonly Capability[]])[] = [
  ["network namespace", networks],
  ["allowlist", ["network.allow-cidr", "network.allow-host", "network.deny"]],
  ["pid namespace", ["process.contained"]],
  ["ipc namespace", ["process.contained"]],
  ["system call filter", [...networks, "process.contained"]],
  ["hidden host files", files],
  ["workspace mode", ["filesystem.read-only", ...files]],
  ["cleared environment", ["environment.named-only"]],
  ["inbound port list", ["inbound.ports"]],
  ["inbound relay", ["inbound.ports"]],
];

/** The calls that it tries of every backend, since no namespace separates what they reach. */
const calls = [
  "socket",
  "io_uring_setup",
  "io_uring_enter",
  "io_uring_register",
  "add_key",
  "request_key",
  "keyctl",
];

const keyCalls: readonly string[] = ["add_key", "request_key", "keyctl"];
const networkOnly = ["network.deny", "process.contained"] as const;

function mutants(): readonly Mutant[] {
  const filters = filterParts().filter(({ name }) => calls.includes(name));
  return [
    ...enforced.map(([name, claims]) => ({ name, without: [name], change: {}, claims })),
    ...filters.map(({ name, filter }) => ({
      name: `\`${name}\` of the filter`,
      without: [],
      change: { filter },
      claims: keyCalls.includes(name) ? (["process.contained"] as const) : networkOnly,
    })),
    { name: "limits", without: ["limits"], change: {}, claims: ["resources.memory", "resources.processes"] },
  ];
}

/** Jails that lack nothing. */
const complete: Mutant = {
  name: "nothing",
  without: [],
  change: {},
  // Credentials would need an authority that the weakened jails don't trust.
  claims: capabilities.filter((one) => !one.startsWith("resources.") && one !== "secrets.hidden"),
};

/** Lists what the probe must not reach. */
const everyDecoy: NetworkBoundary = {
  mode: "allowlist",
  rules: [
    { kind: "host", name: "localhost", subdomains: true },
    { kind: "range", cidr: "127.0.0.1/32", family: 4 },
  ],
};

const timeoutMs = 120_000;

/**
 * Runs the standard probe on the local sandbox's jails without each mechanism.
 *
 * @param isWhole whether everything that a mechanism enforces is probed. Default: one capability, which has to notice.
 * @throws Error if it doesn't prove what complete jails enforce.
 */
export async function runProbeMutants(
  setup: LocalSetup,
  isWhole = false,
): Promise<readonly ProbeMutantRow[]> {
  const weakened = new WeakenedSandboxes(setup);
  const [first] = (await probed(weakened, complete)).unproven;
  if (first !== undefined)
    throw new Error(`nothing was taken out, and yet: ${first.capability}: ${first.reason}`);
  const rows: ProbeMutantRow[] = [];
  const waiting = mutants().entries();
  const lane = async () => {
    for (const [index, mutant] of waiting)
      rows[index] = await probed(
        weakened,
        isWhole ? mutant : { ...mutant, claims: mutant.claims.slice(0, 1) },
      );
  };
  await Promise.all([lane(), lane()]);
  return rows;
}

async function probed(
  weakened: WeakenedSandboxes,
  { name, without, change, claims }: Mutant,
): Promise<ProbeMutantRow> {
  // What is shown in place of hidden files is where the probe puts its decoys.
  const decoys = { folders: [tmpdir()], environment: { AMBIT_UNNAMED: "1" } };
  const findings = await probeSandboxes(
    {
      claims,
      open: (spec, _scope, { lookup }) =>
        weakened.open(
          spec,
          without,
          decoys,
          everyDecoy,
          { ...change, isOpenedAnyway: true },
          lookup === undefined ? {} : { lookup },
        ),
      ...(await jailsUnderProbe()),
      // As of a backend that has only Node.js inside.
      hasShell: false,
      fixFor: () => "use the whole jail",
    },
    AbortSignal.timeout(timeoutMs),
  );
  return { name, unproven: findings.flatMap((one) => (one.proven ? [] : [one])) };
}

/** As Markdown. */
export function renderProbeMutants(rows: readonly ProbeMutantRow[]): string {
  const lines = rows.map(
    ({ name, unproven }) =>
      `| ${name} | ${unproven.map(({ capability }) => `\`${capability}\``).join(", ") || "–"} |`,
  );
  return ["| removed mechanism | the probe doesn't prove |", "|---|---|", ...lines].join("\n");
}
