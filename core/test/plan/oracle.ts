import type { Capability, Domain } from "../../src/contract/index.js";
import { connectionNames, kindNames, type Row, type Situation } from "./situation.js";

// The oracle: the design's table and rule, written down once more from the situation alone.

export function requiredIn(one: Situation): Set<Capability> {
  const required = new Set<Capability>();
  const hosts = one.network === "names" || one.network === "both";
  const ranges = one.network === "ranges" || one.network === "both";
  if (one.network === "off") required.add("network.deny");
  if (hosts) required.add("network.allow-host");
  if (ranges) required.add("network.allow-cidr");
  if (one.filesystem === "workspace") required.add("filesystem.workspace-only");
  if (one.filesystem === "readonly") required.add("filesystem.read-only");
  if (one.filesystem === "off") required.add("filesystem.none");
  if (one.filesystem !== "on") required.add("filesystem.host-hidden");
  for (const name of one.resources) {
    required.add(
      `resources.${name === "memoryMb" ? "memory" : name === "cpus" ? "cpu" : name === "diskMb" ? "disk" : "processes"}`,
    );
  }
  if (one.secrets === "hidden") required.add("secrets.hidden");
  if (one.ports.length > 0) required.add("inbound.ports");
  if (required.size > 0) required.add("process.contained").add("environment.named-only");
  if (one.tools.some(({ env }) => env)) required.add("environment.per-tool");
  for (const { type, env } of one.servers) {
    if (type !== "stdio") continue;
    required.add("process.contained");
    if (env) required.add("environment.per-tool");
  }
  return required;
}

export const domainIn = (capability: Capability) => capability.slice(0, capability.indexOf("."));

/** Required capabilities that this row leaves uncovered on its own, in the domains it touches. */
export function uncovered(each: Row, required: Set<Capability>, mediated?: Domain): Capability[] {
  return [...required].filter((capability) => {
    const touched = each.touches.some((domain) => domain === domainIn(capability) && domain !== mediated);
    return touched && !(each.claims.includes(capability) && each.proven.includes(capability));
  });
}

export function states(each: Row, required: Set<Capability>): boolean {
  return each.states.some((stated) =>
    [...required].some((capability) => domainIn(capability) === domainIn(stated)),
  );
}

/** Whether this actor, in the run, leaves something open that nothing may accept. */
export function breaks(
  each: Row,
  one: Situation,
  required: Set<Capability>,
  options: { tool?: true; mediated?: Domain },
) {
  if (each.site === "caller" && options.tool === true) return false;
  const leaves =
    states(each, required) ||
    (each.site !== "sandbox" && uncovered(each, required, options.mediated).length > 0);
  return leaves && !(each.site === "runner" && one.enforcement === "best_effort");
}

export function mayRun(one: Situation): boolean {
  const required = requiredIn(one);
  const holds = (each: Row) =>
    [...required].every(
      (capability) => each.claims.includes(capability) && each.proven.includes(capability),
    ) && !states(each, required);
  const candidates = one.named ? one.sandboxes.slice(0, 1) : one.sandboxes;
  if (!candidates.some(holds)) return false;
  if (breaks(one.harness, one, required, {})) return false;
  const delivers = one.tools.length + one.servers.length > 0;
  if (delivers && breaks(one.delivery, one, required, { mediated: "network" })) return false;
  const executorOf = (kind: string) => one.executors[kindNames.indexOf(kind)];
  const sourceOf = (type: string) => one.sources[connectionNames.indexOf(type)];
  for (const { kind, env } of one.tools) {
    const each = executorOf(kind);
    if (each === undefined || breaks(each, one, required, { tool: true })) return false;
    if (env && each.site === "sandbox" && required.has("secrets.hidden")) return false;
  }
  for (const { type, env } of one.servers) {
    const each = sourceOf(type);
    if (each === undefined || breaks(each, one, required, {})) return false;
    if (type === "stdio" && env && each.site === "sandbox" && required.has("secrets.hidden")) return false;
  }
  return !(one.visible && required.has("secrets.hidden"));
}
