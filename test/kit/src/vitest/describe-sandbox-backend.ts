import { type Capability, capabilities, type Finding, promises, type SandboxBackend } from "@ambit/core/plugin";
import { beforeAll, describe, expect, it, type TestContext } from "vitest";
import { attacks } from "../attacks/catalogue.js";
import { contractChecks } from "../contract/checks.js";
import { Contract, shapesOf } from "../contract/contract.js";
import { bareControl, type Control } from "../control/control.js";
import { type CapabilityReport, judgeCapability } from "../judge/judge-capability.js";
import type { AttackRow } from "../judge/verdict.js";
import { mustProve } from "./must-prove.js";

export interface SandboxSuiteOptions {
  /** Where attacks must work. Default: a bare process on this host, as an unprivileged user, with decoys only. */
  readonly control?: Control;
  /**
   * A plain module (`.mjs`) whose default export makes the backend, `() => new X()`. With it, attacks that need a runner
   * of their own are made too: inherited descriptors, a runner that is killed.
   */
  readonly runnerModule?: URL;
  /** Why an attack, by its id, breaks no promise of this backend. It is made and shown all the same. */
  readonly exempt?: Readonly<Record<string, string>>;
  /** What sandboxes have left on this host, in the author's words. Asked at the end, and must be nothing. */
  readonly remains?: () => Promise<readonly string[]>;
}

const probeMs = 60_000;
const checkMs = 120_000;
const capabilityMs = 300_000;

/**
 * Everything a sandbox backend has to hold, as a suite: the contract of every sandbox, and for every capability of the
 * vocabulary either its refusal or the attacks on it, each with its control.
 */
export function describeSandboxBackend(makeBackend: () => SandboxBackend, options: SandboxSuiteOptions = {}): void {
  const backend = makeBackend();
  let findings: readonly Finding[] = [];

  describe(`sandbox backend ${backend.name}`, () => {
    beforeAll(async () => {
      findings = await backend.probe(AbortSignal.timeout(probeMs));
    }, probeMs + 1_000);

    it("states itself as data, and its coverage without a side effect", () => {
      expect(backend.site).toBe("sandbox");
      expect(new Set(backend.claims).size).toBe(backend.claims.length);
      for (const finding of findings) expect(backend.claims).toContain(finding.capability);
      const [shape] = shapesOf([]);
      if (shape === undefined) throw new Error("there is no shape without a boundary");
      const boundary = structuredClone(shape.boundary);
      const twice = [backend.covers(boundary), backend.covers(boundary)];
      expect(twice[0]).toEqual(twice[1]);
      expect(boundary).toEqual(shape.boundary);
    });

    describeContract(backend, () => findings);
    for (const capability of capabilities) describeCapability(backend, () => findings, capability, options);

    it.runIf(options.remains !== undefined)("leaves nothing behind", async () => {
      expect(await options.remains?.()).toEqual([]);
    });
  });
}

function describeContract(backend: SandboxBackend, findingsOf: () => readonly Finding[]): void {
  for (const index of [0, 1]) {
    describe(index === 0 ? "every sandbox, without a boundary" : "every sandbox, within a boundary", () => {
      for (const { title, check } of contractChecks) {
        it(title, { timeout: checkMs }, async (context) => {
          const shape = shapesOf(findingsOf())[index];
          if (shape === undefined) return context.skip(`host: no boundary is proven here for ${backend.name}`);
          const contract = new Contract(backend, shape);
          try {
            await check(contract);
          } finally {
            await contract.close();
          }
        });
      }
    });
  }
}

function describeCapability(
  backend: SandboxBackend,
  findingsOf: () => readonly Finding[],
  capability: Capability,
  options: SandboxSuiteOptions,
): void {
  describe(`${capability}: ${promises[capability]}`, () => {
    let report: CapabilityReport;
    beforeAll(async () => {
      const { control = bareControl(), runnerModule, exempt } = options;
      report = await judgeCapability(backend, findingsOf(), capability, { control, runnerModule, exempt });
    }, capabilityMs);

    const isClaimed = backend.claims.includes(capability);
    it(isClaimed ? "is held, or refused where it can't be" : "isn't claimed, and is refused", (context) => {
      const refused = `${capability} isn't proven here: ${report.reason}${report.cure === undefined ? "" : `: ${report.cure}`}`;
      if (report.standing === "refused" && mustProve(backend, capability)) expect.fail(refused);
      if (report.standing === "refused" && isClaimed) return context.skip(`host: ${refused}`);
      expect(report.standing, describeFaults(report)).toBe(isClaimed ? "proven" : "refused");
    });
    if (!isClaimed) return;
    const made = attacks[capability].filter(({ needsRunner }) => needsRunner !== true || options.runnerModule !== undefined);
    for (const { id, title } of made) {
      it(`can't ${title}`, (context) => {
        const row = report.attacks.find((one) => one.id === id);
        if (row === undefined) return context.skip(`host: ${capability} isn't proven here: ${report.reason}`);
        assertHeld(row, context);
      });
    }
  });
}

function assertHeld(row: AttackRow, context: TestContext): void {
  const { verdict, control, guarded } = row;
  const outcomes = `control ${control.result} (${control.detail}), guarded ${guarded.result} (${guarded.detail})`;
  if (verdict === "unproven" || verdict === "impossible") context.skip(`host: it can't be shown here: ${outcomes}`);
  expect(verdict, outcomes).toBeOneOf(["proven", "exempt"]);
}

function describeFaults({ reason, attacks: rows, allowances }: CapabilityReport): string {
  const faults = [
    reason,
    ...rows
      .filter(({ verdict }) => ["escaped", "broken", "toothless"].includes(verdict))
      .map(({ title, verdict, guarded }) => `${verdict}: ${title} (${guarded.detail})`),
    ...allowances
      .filter(({ outcome }) => outcome.result !== "reached")
      .map(({ title, outcome }) => `must work: ${title} (${outcome.detail})`),
  ];
  return faults.join("\n");
}
