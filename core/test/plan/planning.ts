import { type ActorRow, boundaryOf, candidates, executor, request } from "@ambit/fakes/actors";
import { type Capability, capabilities } from "../../src/contract/index.js";
import { boundedRequest, type Candidates, planRun, type RunFacts } from "../../src/plan/index.js";

export const needed = ["process.contained", "environment.named-only"] as const;
export const tool = { name: "look_up", callRef: "r" };
export const off = { network: "off" };
export const http = { name: "docs", connection: { type: "http", url: "https://docs.example/mcp" } };
export const stdio = { name: "files", connection: { type: "stdio", command: "npx" } };

/** Local: confines nothing. Remote: blocks the network, knows no file system modes. Full: everything. */
export const local: ActorRow = { name: "local" };
export const remote: ActorRow = {
  name: "remote",
  claims: ["network.deny", "network.allow-cidr", "environment.per-tool", ...needed],
};
export const full: ActorRow = { name: "full", claims: capabilities };

export const callback = () => executor({ touches: ["network"] });
export const code = () =>
  executor({ kind: "code", site: "sandbox", touches: ["network", "process", "environment"] });
export const client = () => executor({ kind: "client", site: "caller" });

/** Of a run in which nothing happened. */
export const facts: RunFacts = {
  confinement: "confined",
  evidence: {},
  visibleCredentials: [],
  decisions: { allowed: 0, refused: 0 },
  session: { id: "s", history: "new" },
};

export function planned(body: object, rows: Partial<Candidates> = {}) {
  const asked = request(body);
  return planRun(boundedRequest(asked, boundaryOf(asked)), candidates(rows));
}

export function gapsIn(plan: ReturnType<typeof planned>): string[] {
  return plan.accepted
    ? []
    : plan.gaps.map(({ actor, capability, subject }) =>
        [actor, capability, subject].filter(Boolean).join(" "),
      );
}

export const lacks = (actor: string, names: readonly Capability[]) => names.map((name) => `${actor} ${name}`);
