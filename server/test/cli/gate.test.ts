import { type ActorDescription, type Capability, capabilities } from "@ambit/core";
import { candidates, sandbox } from "@ambit/fakes/actors";
import { describe, expect, it } from "vitest";
import { doctorReport, isLacking } from "../../src/cli/display/doctor-report.js";
import { gatesOf, parseRequire, requireText, rulesOf } from "../../src/gate.js";
import { newToken } from "../../src/tenants/caller.js";
import { tenantsSchema } from "../../src/tenants/schema.js";

const gateFor = (text: string, claims: readonly Capability[]) => {
  const rules = [{ name: "--require", required: parseRequire(text) }];
  return gatesOf(rules, candidates({ sandboxes: [sandbox({ claims })] }));
};
const basis: readonly Capability[] = ["process.contained", "environment.named-only"];

describe("what a deployment requires", () => {
  it.each<[text: string, claims: readonly Capability[], met: boolean]>([
    ["network=off", ["network.deny", ...basis], true],
    ["network=off", ["network.deny"], false],
    ["network=allowlist", ["network.allow-host", ...basis], false],
    ["network=allowlist", ["network.allow-host", "network.allow-cidr", ...basis], true],
    ["network=off,filesystem=workspace", ["network.deny", ...basis], false],
    ["filesystem=readonly", ["filesystem.read-only", "filesystem.host-hidden", ...basis], true],
    ["memoryMb=64,secrets=hidden", ["resources.memory", "secrets.hidden", ...basis], true],
    ["diskMb=64", ["resources.memory", ...basis], false],
  ])("%s with the claims %j: %s", (text, claims, met) => {
    const [gate] = gateFor(text, claims);
    expect(gate?.metBy).toEqual(met ? ["local"] : []);
    expect(gate?.gaps.length === 0).toBe(met);
  });

  it("is read and written in one form", () => {
    const text = "network=off,filesystem=workspace,secrets=hidden,memoryMb=2048";
    expect(requireText(parseRequire(text))).toBe(text);
  });

  it.each([
    ["netwrk=off", "did you mean `network`?"],
    ["network=maybe", "network"],
    ["memoryMb=much", "resources.memoryMb"],
    ["", "must say what to guarantee"],
  ])("refuses %j", (text, problem) => {
    expect(() => parseRequire(text)).toThrow(problem);
  });

  it("has the rules of tenants too, each for the sandboxes that the tenant may use", () => {
    const required = { network: "off" } as const;
    const tokens = tenantsSchema.parse([
      { token: newToken().hash, project: "one", require: { filesystem: "off" } },
      { token: newToken().hash, project: "two", sandboxes: ["docker"] },
      { token: newToken().hash, project: "three" },
    ]);
    const rules = rulesOf({ require: required, tokens });
    expect(rules.map(({ name }) => name)).toEqual(["require", "tokens[0].require", "require for tokens[1]"]);
    const gates = gatesOf(rules, candidates({ sandboxes: [sandbox({ claims: capabilities })] }));
    expect(gates.map(({ metBy }) => metBy)).toEqual([["local"], ["local"], []]);
  });
});

describe("the report of doctor", () => {
  const warning = "an old bubblewrap";
  const actor: Omit<ActorDescription, "findings"> = {
    plugin: "sandbox-local",
    kind: "sandbox",
    name: "local",
    site: "sandbox",
    claims: [...capabilities],
    probedAt: "2026-01-01T00:00:00.000Z",
  };
  const proven = capabilities.map((capability) => ({
    capability,
    proven: true as const,
    how: `tried ${capability}`,
    warning,
  }));
  const unproven = capabilities.map((capability) => ({
    capability,
    proven: false as const,
    reason: "no user namespaces",
    fix: "allow them",
  }));

  it.each([80, 120])("fits %i columns, with a line for each capability", (columns) => {
    for (const findings of [proven, unproven]) {
      const report = doctorReport(
        { actors: [{ ...actor, findings }], gates: [], notices: ["a notice ".repeat(30).trim()] },
        { columns, verbose: true },
      );
      for (const line of report.split("\n")) expect(line.length).toBeLessThanOrEqual(columns);
      for (const capability of capabilities)
        expect(report).toMatch(new RegExp(`^  [✔✖] ${capability.replaceAll(".", "\\.")} `, "m"));
    }
  });

  it("begins with the verdict, and says each reason and each warning once", () => {
    const options = { columns: 120, verbose: false };
    const good = { actors: [{ ...actor, findings: proven }], gates: [], notices: [] };
    expect(doctorReport(good, options)).toMatch(/^✔ This host guarantees every boundary/);
    expect(doctorReport(good, options).split(warning)).toHaveLength(2);
    expect(doctorReport(good, options)).not.toContain("tried");
    expect(isLacking(good)).toBe(false);
    const source = { ...actor, kind: "toolSource" as const, name: "mcp-http-client", findings: proven };
    expect(doctorReport({ ...good, actors: [source] }, options)).toContain("✔ tool source mcp-http-client");
    const bad = { actors: [{ ...actor, findings: unproven }], gates: [], notices: [] };
    expect(doctorReport(bad, options)).toMatch(/^✖ This host guarantees nothing/);
    expect(doctorReport(bad, options).split("no user namespaces")).toHaveLength(2);
    expect(isLacking(bad)).toBe(true);
  });
});
