import {
  type ActorRow,
  candidates,
  delivery,
  executor,
  harness,
  request,
  sandbox,
  toolSource,
} from "@ambit/fakes/actors";
import fc from "fast-check";
import { normaliseBoundary } from "../../src/boundary.js";
import {
  type Capability,
  capabilities,
  type Domain,
  domains,
  type RunRequest,
  type Site,
} from "../../src/contract/index.js";
import { boundedRequest, type Candidates, type Plan, planRun } from "../../src/plan/index.js";
import type { ActorGap } from "../../src/plugin/index.js";

/** A whole situation as data: the oracle below reads this and never the planner's own helpers. */
export interface Situation {
  readonly network: "on" | "off" | "names" | "ranges" | "both";
  readonly filesystem: "on" | "workspace" | "readonly" | "off";
  readonly resources: readonly ("memoryMb" | "processes" | "cpus" | "diskMb")[];
  readonly secrets: "visible" | "hidden";
  readonly ports: readonly number[];
  readonly enforcement: "strict" | "best_effort";
  readonly named: boolean;
  readonly tools: readonly { readonly kind: string; readonly env: boolean }[];
  readonly servers: readonly { readonly type: "http" | "stdio"; readonly env: boolean }[];
  readonly sandboxes: readonly Row[];
  readonly executors: readonly Row[];
  readonly delivery: Row;
  readonly harness: Row;
  readonly visible: boolean;
  readonly sources: readonly Row[];
}

export interface Row {
  readonly site: Site;
  readonly claims: readonly Capability[];
  readonly proven: readonly Capability[];
  readonly touches: readonly Domain[];
  readonly states: readonly Capability[];
}

export const kinds = ["callback", "code", "client"] as const;
export const kindNames: readonly string[] = kinds;
export const connections = ["http", "stdio"] as const;
export const connectionNames: readonly string[] = connections;

/** Mostly all or nothing: an accepted plan among random subsets would be a rare find. */
export const subset = <Item>(items: readonly Item[]) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant([...items]) },
    { weight: 1, arbitrary: fc.constant([]) },
    { weight: 2, arbitrary: fc.subarray([...items]) },
  );
export const few = <Item>(items: readonly Item[]) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.subarray([...items], { maxLength: 2 }) },
  );
export const row: fc.Arbitrary<Row> = fc.record({
  site: fc.constantFrom<Site>("sandbox", "runner", "caller"),
  claims: subset(capabilities),
  proven: subset(capabilities),
  touches: fc.subarray([...domains]),
  states: few(capabilities),
});
export const flag = fc.boolean();

export const situations: fc.Arbitrary<Situation> = fc.record({
  network: fc.constantFrom("on", "off", "names", "ranges", "both"),
  filesystem: fc.constantFrom("on", "workspace", "readonly", "off"),
  resources: few(["memoryMb", "processes", "cpus", "diskMb"] as const),
  secrets: fc.constantFrom("visible", "visible", "hidden"),
  ports: few([4_000, 5_173]),
  enforcement: fc.constantFrom("strict", "best_effort"),
  named: flag,
  tools: fc.array(fc.record({ kind: fc.constantFrom(...kinds), env: flag }), { maxLength: 3 }),
  servers: fc.array(fc.record({ type: fc.constantFrom(...connections), env: flag }), { maxLength: 2 }),
  sandboxes: fc.array(row, { minLength: 1, maxLength: 3 }),
  executors: fc.tuple(row, row, row),
  delivery: row,
  harness: row,
  visible: flag,
  sources: fc.tuple(row, row),
});

export const lists = { names: ["a.example"], ranges: ["10.0.0.0/8"], both: ["a.example", "10.0.0.0/8"] };

export function requestOf(one: Situation): RunRequest {
  const network =
    one.network === "on" || one.network === "off" ? one.network : { allowlist: lists[one.network] };
  const { filesystem, secrets, enforcement } = one;
  const resources = Object.fromEntries(one.resources.map((name) => [name, 64]));
  return request({
    ...(one.named ? { sandbox: "sandbox-0" } : {}),
    sandboxPermission: { network, filesystem, resources, secrets, enforcement },
    ports: one.ports.map((port) => ({ port, name: `port-${port}` })),
    customTools: one.tools.map(({ kind, env }, index) => ({
      name: `tool-${index}`,
      kind,
      ...(env ? { env: { KEY: "value" } } : {}),
    })),
    mcpServers: one.servers.map(({ type, env }, index) => ({
      name: `server-${index}`,
      connection:
        type === "http"
          ? { type, url: "https://mcp.example" }
          : { type, command: "x", ...(env ? { env: { KEY: "value" } } : {}) },
    })),
  });
}

export function actorRow(name: string, { states, ...rest }: Row): ActorRow {
  const gaps: ActorGap[] = states.map((capability) => ({ capability, reason: "stated", fix: "none" }));
  return { name, ...rest, states: gaps };
}

export function candidatesOf(one: Situation): Candidates {
  return candidates({
    sandboxes: one.sandboxes.map((each, index) => sandbox(actorRow(`sandbox-${index}`, each))),
    executors: kinds.map((kind, index) =>
      executor({ kind, ...actorRow(kind, one.executors[index] ?? one.harness) }),
    ),
    deliveries: [delivery(actorRow("delivery", one.delivery))],
    harnesses: [harness({ ...actorRow("harness", one.harness), visible: one.visible ? ["KEY"] : [] })],
    toolSources: connections.map((connection, index) =>
      toolSource({ connection, ...actorRow(connection, one.sources[index] ?? one.harness) }),
    ),
  });
}

export function planOf(one: Situation): Plan {
  const asked = requestOf(one);
  const { boundary } = normaliseBoundary(asked.sandboxPermission, asked.ports);
  return planRun(boundedRequest(asked, boundary), candidatesOf(one));
}
