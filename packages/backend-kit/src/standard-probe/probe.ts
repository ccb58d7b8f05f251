import {
  closingAfter,
  filesystem,
  findingsOf,
  type Outcome,
  probeSpec,
  runInTurn,
  runTrial,
  unproven,
} from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Boundary, Finding, NetworkRule, SandboxSpec, Scope } from "@ambit/core/plugin";
import { type Claim, claims } from "../claims.js";
import type { DockerConfig } from "../config.js";
import { fixFor } from "../engine/failure.js";
import type { TestOptions } from "../open/open.js";
import type { Bench } from "./bench.js";
import { type Decoys, makeDecoys } from "./decoys.js";
import { resourceTrials } from "./resources.js";
import { trials } from "./trials.js";

type Open = (spec: SandboxSpec, scope: Scope, options: TestOptions) => Promise<RemoteSandbox>;

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
  const openSpec = async (spec: SandboxSpec, options: TestOptions) => {
    signal.throwIfAborted();
    const sandbox = open(spec, { signal, defer: () => undefined }, options);
    opened.push(sandbox);
    return await sandbox;
  };
  const openWith = (boundary: Partial<Boundary>) => openSpec(probeSpec(boundary), {});
  const fix = (error: unknown) => fixFor(error, config);
  try {
    return await closingAfter(signal, closeAll, async () => {
      // By itself: it finds out how this engine hides processes, and when it fails there is one reason for everything.
      const closed = await openWith({ network: closedNetwork, filesystem: filesystem("workspace") });
      const [listed, empty] = await Promise.all([
        openWith({ network: listedNetwork(decoys), filesystem: filesystem("readonly") }),
        openWith({ network: closedNetwork, filesystem: filesystem("off") }),
      ]);
      const bench: Bench = { closed, listed, empty, open: openSpec, decoys, config, signal };
      const outcomes: readonly (readonly Outcome<Claim>[])[] = await Promise.all([
        Promise.all(trials.map((trial) => runTrial(trial, bench))),
        // These measure what they are given.
        runInTurn(resourceTrials, bench, signal),
      ]);
      return findingsOf(claims, outcomes.flat(), fix);
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
