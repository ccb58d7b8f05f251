import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { probeSpec } from "@ambit/backend-kit";
import { type Capability, messageOf } from "@ambit/core/plugin";
import { type BridgeMutantRow, runBridgeMutants } from "@ambit/fakes/run-bridge-mutants";
import type { z } from "zod";
import { claims, DockerSandbox } from "../../dist/backend.js";
import { configSchema } from "../../dist/config.js";
import { changingEngine, type EngineChange } from "./changing-engine.ts";
import { type Mutant, mutants } from "./mutants.ts";

/** What notices that a mechanism of a container's order is missing. */
export interface DockerMutantRow {
  readonly name: string;
  /** What is read back from an engine that ignored it; undefined if nothing is noticed. */
  readonly readBack: string | undefined;
  /** What the probe doesn't prove of a backend that forgot it; empty if it notices nothing. */
  readonly probe: readonly { readonly capability: Capability; readonly reason: string }[];
}

export const isNoticed = ({ readBack, probe }: DockerMutantRow) => readBack !== undefined && probe.length > 0;

/** As Markdown. */
export function renderDockerMutants(rows: readonly DockerMutantRow[]): string {
  const lines = rows.map(
    ({ name, readBack, probe }) =>
      `| ${name} | ${readBack === undefined ? "–" : "refused"} | ${probe.map(({ capability }) => `\`${capability}\``).join(", ") || "–"} |`,
  );
  return [
    "| removed mechanism | what is read back | the probe doesn't prove |",
    "|---|---|---|",
    ...lines,
  ].join("\n");
}

const timeoutMs = 120_000;
const plugin = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Takes each mechanism out of the orders of containers, one by one, and records what notices: what is read back from an engine
 * that ignored it, and the probe if the backend had forgotten it.
 *
 * @param settings of the backend, on an engine at a Unix socket.
 * @param options `isWhole`: everything that a mechanism enforces is probed. Default: one capability, which has to notice.
 */
export async function runDockerMutants(
  socket: string,
  settings: z.input<typeof configSchema>,
  { isWhole = false }: { readonly isWhole?: boolean } = {},
): Promise<readonly DockerMutantRow[]> {
  const rows: DockerMutantRow[] = [];
  const wanted = mutants
    .map((mutant) => (isWhole ? mutant : { ...mutant, breaks: mutant.breaks.slice(0, 1) }))
    .entries();
  const lane = async () => {
    for (const [index, mutant] of wanted) rows[index] = await rowOf(mutant, socket, settings);
  };
  expectNothing(await rowOf(complete, socket, settings));
  await Promise.all([lane(), lane()]);
  return rows;
}

/** An order that nothing is taken out of. */
const complete: Mutant = {
  name: "nothing",
  change: (order) => order,
  // A busy host may have too few processors to show their limit.
  breaks: claims.filter((capability) => capability !== "resources.cpu"),
};

/** Otherwise a mutant might be noticed for another reason than what was taken out. @throws Error */
function expectNothing({ readBack, probe }: DockerMutantRow): void {
  const noticed = [readBack, ...probe.map(({ capability, reason }) => `${capability}: ${reason}`)];
  const [first] = noticed.filter((one) => one !== undefined);
  if (first !== undefined) throw new Error(`nothing was taken out, and yet: ${first}`);
}

async function rowOf(
  mutant: Mutant,
  socket: string,
  settings: z.input<typeof configSchema>,
): Promise<DockerMutantRow> {
  const { name, change, breaks } = mutant;
  const readBack = await withBackend(socket, settings, { change, isConcealed: false }, openOnce);
  const findings = await withBackend(socket, settings, { change, isConcealed: true }, (backend) =>
    backend.probe(AbortSignal.timeout(timeoutMs), breaks),
  );
  return { name, readBack, probe: findings.flatMap((one) => (one.proven ? [] : [one])) };
}

/** @returns why it doesn't open. */
async function openOnce(backend: DockerSandbox): Promise<string | undefined> {
  const scope = { signal: AbortSignal.timeout(timeoutMs), defer: () => undefined };
  const spec = probeSpec({
    network: { mode: "off", rules: [] },
    resources: { memoryMb: 128, processes: 40, cpus: 0.5, diskMb: 16 },
  });
  try {
    const sandbox = await backend.open(
      { ...spec, requiredPaths: [{ path: import.meta.dirname, what: "a folder" }] },
      scope,
    );
    await sandbox.close();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

async function withBackend<Result>(
  socket: string,
  settings: z.input<typeof configSchema>,
  change: EngineChange,
  use: (backend: DockerSandbox) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-docker-mutant-"));
  const engine = changingEngine(socket, change);
  const path = join(folder, "engine.sock");
  await engine.listen(path);
  const backend = new DockerSandbox(
    configSchema.parse({ ...settings, engine: `unix://${path}`, dataFolder: folder }),
  );
  try {
    return await use(backend);
  } finally {
    await backend.close();
    await engine.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Takes each mechanism of connections into a container out of the bridge's code, one by one. */
export async function runDockerBridgeMutants(
  socket: string,
  settings: z.input<typeof configSchema>,
): Promise<readonly BridgeMutantRow[]> {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-mutant-"));
  const config = configSchema.parse({ ...settings, engine: `unix://${socket}`, dataFolder });
  try {
    return await runBridgeMutants(plugin, async (url) => {
      const changed: typeof import("../../dist/backend.js") = await import(url);
      const backend = new changed.DockerSandbox(config);
      const findings = await backend.probe(AbortSignal.timeout(timeoutMs), ["inbound.ports"]);
      await backend.close();
      return findings;
    });
  } finally {
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  }
}
