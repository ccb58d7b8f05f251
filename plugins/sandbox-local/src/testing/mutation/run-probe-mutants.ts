import { tmpdir } from "node:os";
import { probeSandboxes } from "@ambit/attacks/standard-probe";
import { type Capability, capabilities, type NetworkBoundary, type SandboxBackend } from "@ambit/core/plugin";
import { inside } from "../../confined/launch/inside.js";
import { filterParts, type JailChange, type Mechanism, WeakenedSandboxes } from "../weakened/index.js";

/** What the standard probe doesn't prove of jails that lack something. */
export interface ProbeMutantRow {
  readonly name: string;
  readonly unproven: readonly { readonly capability: Capability; readonly reason: string }[];
}

interface Mutant {
  readonly name: string;
  readonly without: readonly Mechanism[];
  readonly change: JailChange;
  /** What is probed: what the mechanism enforces, and others in whose place it could be noticed. */
  readonly claims: readonly Capability[];
}

const networks = ["network.deny", "network.allow-cidr", "network.allow-host"] as const;
const files = [
  "filesystem.read-only",
  "filesystem.workspace-only",
  "filesystem.none",
  "filesystem.host-hidden",
] as const;

const enforced: readonly (readonly [Mechanism, readonly Capability[]])[] = [
  ["network namespace", networks],
  ["allowlist", networks],
  ["pid namespace", ["process.contained"]],
  ["ipc namespace", ["process.contained"]],
  ["system call filter", [...networks, "process.contained"]],
  ["hidden host files", files],
  ["workspace mode", files],
  ["cleared environment", ["environment.named-only"]],
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

function mutants(): readonly Mutant[] {
  const filters = filterParts().filter(({ name }) => calls.includes(name));
  return [
    ...enforced.map(([name, claims]) => ({ name, without: [name], change: {}, claims })),
    ...filters.map(({ name, filter }) => ({
      name: `\`${name}\` of the filter`,
      without: [],
      change: { filter },
      claims: ["network.deny", "process.contained"] as const,
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

/** Of every jail: its user, its proxy, and what keeps programs from looking at other processes. */
const variables = [
  ...["LOGNAME", "PWD", "USER", "ASAN_OPTIONS", "LSAN_OPTIONS", "NODE_OPTIONS", "NODE_USE_ENV_PROXY"],
  ...[
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
  ],
];

const timeoutMs = 120_000;

/**
 * Runs the standard probe on the local sandbox's jails without each mechanism. Undefined for another backend.
 *
 * @throws Error if it doesn't prove what complete jails enforce.
 */
export async function runProbeMutants(
  backend: SandboxBackend,
): Promise<readonly ProbeMutantRow[] | undefined> {
  const weakened = WeakenedSandboxes.of(backend);
  if (weakened === undefined) return undefined;
  const [first] = (await probed(weakened, complete)).unproven;
  if (first !== undefined)
    throw new Error(`nothing was taken out, and yet: ${first.capability}: ${first.reason}`);
  const rows: ProbeMutantRow[] = [];
  const waiting = mutants().entries();
  const lane = async () => {
    for (const [index, mutant] of waiting) rows[index] = await probed(weakened, mutant);
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
      node: process.execPath,
      scratch: [inside.toolHome],
      variables,
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
