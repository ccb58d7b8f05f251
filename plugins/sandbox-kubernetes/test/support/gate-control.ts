import { mechanismsAgainst } from "@ambit/attacks";
import { probeSpec } from "@ambit/backend-kit";
import type { Sandbox, SandboxBackend, SandboxSpec, Scope } from "@ambit/core/plugin";
import { type Attack, bareControl, type Control } from "@ambit/testkit";
import type { Patch } from "./gate-variant.js";
import { replaced } from "./replaced.js";

/** A gate that admits every destination, and compares no names. */
export const admitsAll: readonly Patch[] = [
  { file: "decide.js", find: 'if (network.mode === "on")', replace: "if (true)" },
  { file: "decide.js", find: 'if (!first.allowed || network.mode === "on")', replace: "if (true)" },
  {
    file: "proxy/http/destination.js",
    find: "function hostProblem(header, target) {",
    replace: "function hostProblem(header, target) {\n    return undefined;",
  },
  {
    file: "proxy/tunnel/first-flight.js",
    find: "return judgeServerName(target, hello.serverName);",
    replace: 'return { verdict: "pass" };',
  },
];

const openGate = "the list, and the comparison of names";

/** What an attack is made without. A process of this host shows nothing of what a gate reaches. */
function removedFor(attack: Attack): string | undefined {
  if (attack.id === "secrets.hidden/credential-authority") return undefined;
  if (attack.needsCredentials === true) return `${openGate}, and the credential broker`;
  if (!attack.capability.startsWith("network.allow-")) return undefined;
  return mechanismsAgainst(attack).includes("network namespace") ? "the boundary" : openGate;
}

/**
 * Sandboxes of the same cluster: an open one for what goes around the gate, and for the rest one whose gate lets everything
 * through. What has to do with neither is made by a bare process.
 *
 * @param withOpenGate opens with a gate that admits all while it runs
 */
export function gateControl(
  backend: SandboxBackend,
  withOpenGate: (open: () => Promise<Sandbox>) => Promise<Sandbox>,
): Control {
  const bare = bareControl();
  return {
    what: "a sandbox of the same cluster, open or with a gate that admits everything",
    without: (attack) => removedFor(attack) ?? "the whole pod",
    // A pod and its gate take seconds, and these attacks only connect.
    sharedBy: removedFor,
    open: async (attack, spec, scope, decoys) => {
      const removed = removedFor(attack);
      if (removed === undefined) return await bare.open(attack, spec, scope, decoys);
      if (removed === "the boundary") return await openFor(backend, spec, scope);
      const { secrets = [], ...rest } = spec;
      if (secrets.length > 0) spec.log.debug({ secrets }, "opened");
      const sandbox = await withOpenGate(() => backend.open({ ...rest, required: [] }, scope));
      // Nothing is hidden: the values are in place of the placeholders.
      return replaced(sandbox, {
        placeholders: Object.fromEntries(secrets.map(({ name, value }) => [name, value])),
      });
    },
    ...(bare.runnerModule === undefined ? {} : { runnerModule: bare.runnerModule }),
  };
}

async function openFor(backend: SandboxBackend, spec: SandboxSpec, scope: Scope): Promise<Sandbox> {
  return await backend.open({ ...spec, boundary: probeSpec({}).boundary, required: [] }, scope);
}
