import { fileURLToPath } from "node:url";
import { probeSpec } from "@ambit/backend-kit";
import { type Capability, messageOf } from "@ambit/core/plugin";
import { type BridgeMutantRow, runBridgeMutants } from "@ambit/fakes/run-bridge-mutants";
import type { V1Pod } from "@kubernetes/client-node";
import type { z } from "zod";
import { KubernetesSandbox } from "../../dist/backend.js";
import { configSchema } from "../../dist/config.js";
import { Cluster } from "../../dist/pod/cluster.js";
import { type Mutant, mutants } from "./mutants.ts";

/** What notices that a mechanism of a pod is missing. */
export interface PodMutantRow {
  readonly name: string;
  /** Why a pod isn't opened whose cluster left the mechanism out. */
  readonly readBack: string | undefined;
  /** Why no pod starts, or what the probe doesn't prove, of a backend that forgot it. */
  readonly forgotten: readonly string[];
  readonly secondLine: string | undefined;
}

export const isNoticed = ({ readBack, forgotten, secondLine }: PodMutantRow) =>
  readBack !== undefined && (forgotten.length > 0 || secondLine !== undefined);

/** As Markdown. */
export function renderPodMutants(rows: readonly PodMutantRow[]): string {
  return [
    "| removed mechanism | what is read back | a plugin that forgot it |",
    "|---|---|---|",
    ...rows.map(({ name, readBack, forgotten, secondLine }) => {
      const noticed = forgotten.join(", ");
      return `| ${name} | ${readBack === undefined ? "–" : "refused"} | ${noticed === "" ? `– (${secondLine})` : noticed} |`;
    }),
  ].join("\n");
}

const plugin = fileURLToPath(new URL("../../", import.meta.url));
const timeoutMs = 180_000;
const scope = { signal: new AbortController().signal, defer: () => undefined };

/** Takes each mechanism out of pods, one by one, and records what notices. @param settings of the backend, on a cluster. */
export async function runPodMutants(
  settings: z.input<typeof configSchema>,
): Promise<readonly PodMutantRow[]> {
  const rows: PodMutantRow[] = [];
  for (const mutant of mutants) rows.push(await rowOf(mutant, settings));
  return rows;
}

/** Takes each mechanism of connections into a pod out of the bridge's code, one by one. */
export function runPodBridgeMutants(
  settings: z.input<typeof configSchema>,
): Promise<readonly BridgeMutantRow[]> {
  return runBridgeMutants(plugin, async (url) => {
    const changed: typeof import("../../dist/backend.js") = await import(url);
    const backend = new changed.KubernetesSandbox(configSchema.parse(settings));
    const findings = await backend.probe(AbortSignal.timeout(timeoutMs), ["inbound.ports"]);
    await backend.close();
    return findings;
  });
}

async function rowOf(
  { name, change, breaks, secondLine }: Mutant,
  settings: z.input<typeof configSchema>,
): Promise<PodMutantRow> {
  const readBack = await withChange(change, false, settings, whyClosed);
  const forgotten = await withChange(change, true, settings, async (backend) => {
    const why = await whyClosed(backend);
    if (why !== undefined) return ["no pod starts"];
    return await unproven(backend, breaks);
  });
  return { name, readBack, forgotten, secondLine };
}

async function whyClosed(backend: KubernetesSandbox): Promise<string | undefined> {
  try {
    await (await backend.open({ ...probeSpec({}), id: "mutant" }, scope)).close();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

async function unproven(backend: KubernetesSandbox, breaks: readonly Capability[]): Promise<string[]> {
  const findings = await backend.probe(AbortSignal.timeout(timeoutMs), breaks);
  return findings.flatMap(({ capability, proven }) => (proven ? [] : [`\`${capability}\``]));
}

/**
 * A backend whose pods lack something.
 *
 * @param isConcealed whether what is read back shows the pod as it was asked for: the plugin has forgotten it.
 */
async function withChange<Result>(
  change: Mutant["change"],
  isConcealed: boolean,
  settings: z.input<typeof configSchema>,
  use: (backend: KubernetesSandbox) => Promise<Result>,
): Promise<Result> {
  const { createPod, pod: readPod } = Cluster.prototype;
  const asked = new Map<string, V1Pod>();
  Cluster.prototype.createPod = async function (this: Cluster, pod: V1Pod, signal?: AbortSignal) {
    const stored = await createPod.call(this, change(pod), signal);
    asked.set(stored.metadata.name, pod);
    return conceal(stored);
  };
  Cluster.prototype.pod = async function (this: Cluster, name: string, signal?: AbortSignal) {
    const stored = await readPod.call(this, name, signal);
    return stored && conceal(stored);
  };
  const conceal = <Stored extends { metadata: { name: string }; spec: object }>(stored: Stored): Stored => {
    const pod = asked.get(stored.metadata.name);
    return isConcealed && pod !== undefined ? { ...stored, spec: { ...pod.spec } } : stored;
  };
  const backend = new KubernetesSandbox(configSchema.parse(settings));
  try {
    return await use(backend);
  } finally {
    await backend.close();
    Object.assign(Cluster.prototype, { createPod, pod: readPod });
  }
}
