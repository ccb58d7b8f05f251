import {
  closingAfter,
  filesystem,
  findingsOf,
  type Outcome,
  probeSpec,
  runInTurn,
  unproven,
} from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Boundary, Finding, NetworkRule, SandboxSpec, Scope } from "@ambit/core/plugin";
import { type Claim, claims } from "../claims.js";
import type { DockerConfig } from "../config.js";
import { fixFor } from "../engine/failure.js";
import type { Bench } from "./bench.js";
import { type Decoys, makeDecoys } from "./decoys.js";
import { trials } from "./trials.js";

type Open = (spec: SandboxSpec, scope: Scope) => Promise<RemoteSandbox>;

const limits = { memoryMb: 128, processes: 40, cpus: 0.1, diskMb: 16 } as const;

/** Tries every claim in containers of the engine, beside a control. */
export async function probeEngine(
  open: Open,
  config: DockerConfig,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const decoys = await makeDecoys();
  const opened: Promise<RemoteSandbox>[] = [];
  const closeAll = async () => {
    const settled = await Promise.allSettled(opened);
    await Promise.all(settled.map((one) => (one.status === "fulfilled" ? one.value.close() : undefined)));
  };
  const openWith = async (boundary: Partial<Boundary>) => {
    signal.throwIfAborted();
    const sandbox = open(probeSpec(boundary), { signal, defer: () => undefined });
    opened.push(sandbox);
    return await sandbox;
  };
  const fix = (error: unknown) => fixFor(error, config);
  try {
    return await closingAfter(signal, closeAll, async () => {
      // By itself: it finds out how this engine hides processes, and when it fails there is one reason for everything.
      const closed = await openWith({ network: closedNetwork, filesystem: filesystem("workspace") });
      const [listed, empty, slow] = await Promise.all([
        openWith({
          network: listedNetwork(decoys),
          filesystem: filesystem("readonly"),
          resources: { memoryMb: limits.memoryMb, processes: limits.processes },
        }),
        openWith({
          network: closedNetwork,
          filesystem: filesystem("off"),
          resources: { diskMb: limits.diskMb },
        }),
        openWith({ network: closedNetwork, resources: { cpus: limits.cpus } }),
      ]);
      const bench: Bench = { closed, listed, empty, slow, limits, decoys, config, signal };
      const outcomes: readonly Outcome<Claim>[] = await runInTurn(trials, bench, signal);
      return findingsOf(claims, outcomes, fix);
    });
  } catch (error) {
    return claims.map((claim) => unproven(claim, error, fix));
  } finally {
    await decoys.close();
  }
}

const closedNetwork: Boundary["network"] = { mode: "off", rules: [] };

function listedNetwork({ host, listedPort: port }: Decoys): Boundary["network"] {
  const rules: NetworkRule[] = [
    { kind: "host", name: "localhost", subdomains: false, port },
    { kind: "range", cidr: `${host}/32`, family: 4, port },
    { kind: "range", cidr: "::1/128", family: 6, port },
  ];
  return { mode: "allowlist", rules };
}
