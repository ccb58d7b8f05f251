import type { AttackRow, CapabilityReport, VerifyReport } from "@ambit/testkit";
import { expect, it } from "vitest";
import { verifyReport } from "../../../src/cli/display/verify-report.js";

const reached = { result: "reached", detail: "a decoy saw it" } as const;
const blocked = { result: "blocked", detail: "EPERM ".repeat(30).trim() } as const;
const row = (name: string, guarded: AttackRow["guarded"]): AttackRow => ({
  id: `network.deny/${name}`,
  title: name,
  verdict: guarded.result === "reached" ? "escaped" : "proven",
  control: reached,
  guarded,
});
const reportOf = (capabilities: readonly CapabilityReport[]): VerifyReport => ({
  backend: "local",
  control: "a bare process",
  at: "2026-11-20T12:00:00.000Z",
  host: { platform: "linux", release: "6.18", uid: 0 },
  holds: true,
  capabilities,
});
const proven: CapabilityReport = {
  capability: "network.deny",
  assurance: "proven",
  reason: "it looked",
  attacks: [row("tcp", blocked), row("udp", blocked)],
  allowances: [],
};
const refused = (capability: CapabilityReport["capability"]): CapabilityReport => ({
  capability,
  assurance: "refused",
  reason: "no user namespaces",
  fix: "allow them",
  attacks: [],
  allowances: [],
});
const plain = { columns: 80, verbose: false };

it("begins with the verdict, and has a line for each capability", () => {
  const lines = verifyReport(reportOf([proven, refused("resources.disk")]), plain).split("\n");
  expect(lines.slice(0, 5)).toEqual([
    "✔ 2 attacks worked without the guard and failed in local: 1 of 2 capabilities",
    "  proven, 1 refused.",
    "",
    "  ✔ network.deny               proven    2 attacks failed",
    "  ✖ resources.disk             refused",
  ]);
});

it("says a reason once that many capabilities share, with its fix", () => {
  const all = reportOf([refused("resources.disk"), refused("network.deny"), refused("resources.cpu")]);
  const text = verifyReport(all, plain);
  expect(text).toMatch(/^✖ local guarantees nothing/);
  expect(text.split("no user namespaces")).toHaveLength(2);
  expect(text).toContain("✖ refused: all 3: no user namespaces\n    fix  allow them");
});

it("shows what got through, and every attack on request, within the columns", () => {
  const escaped = {
    ...proven,
    assurance: "escaped",
    attacks: [row("tcp", reached), row("udp", blocked)],
  } as const;
  expect(verifyReport(reportOf([escaped]), plain)).toMatch(
    /✖ local doesn't hold what it claims.*✖ tcp {2}escaped/s,
  );
  const verbose = verifyReport(reportOf([escaped]), { columns: 80, verbose: true });
  expect(verbose).toMatch(/^ {6}✔ udp {2}EPERM/m);
  for (const line of verbose.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});
