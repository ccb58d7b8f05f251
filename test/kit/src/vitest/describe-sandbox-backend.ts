import {
  attacks,
  type ChangingNames,
  type CredentialHost,
  type Endpoint,
  repetitions,
  verificationOf,
} from "@ambit/attacks";
import { callPure, pluginReturns } from "@ambit/core";
import {
  type Capability,
  capabilities,
  type Finding,
  promises,
  type SandboxBackend,
  type SandboxLayers,
} from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import { contractChecks } from "../contract/checks.js";
import { Contract, type SessionShape, SharedSandbox, shapesOf } from "../contract/contract.js";
import { layerChecks } from "../contract/layer-checks.js";
import { bareControl, type Control } from "../control/control.js";
import { type CapabilityReport, judgeCapability, missingOption } from "../judge/judge-capability.js";
import { probeWithin } from "../stage/kit-scope.js";
import { describeTakeover, type TakeoverOptions } from "./describe-takeover.js";
import { mustProve } from "./must-prove.js";
import { showSkips, skip } from "./skip.js";
import { describeWithoutProgram } from "./without-program.js";

export interface SandboxSuiteOptions {
  /**
   * Where attacks must work, or a function that makes that place for the backend under test. Default: a bare process on
   * this host, as an unprivileged user, with decoys only.
   */
  readonly control?: Control | ((backend: SandboxBackend) => Control);
  /**
   * A plain module (`.mjs`) whose default export makes the backend, `() => new X()`. It enables attacks that need a
   * separate runner: inherited descriptors, a killed runner. Default: the backend's `verification`.
   */
  readonly runnerModule?: URL;
  /** The backend's resolver: enables attacks with names that change their address. Decoys listen where it leads. */
  readonly names?: ChangingNames;
  /** The host of credentials: enables attacks with placeholders. */
  readonly credentialHost?: CredentialHost;
  /**
   * Servers that a sandbox without limits reaches, for a platform whose sandboxes reach neither this host nor each other. Those
   * within a boundary must not reach them.
   */
  readonly beyond?: readonly Endpoint[];
  /** As in the backend's `verification`, for what is so only where the suite runs. It is made and shown nevertheless. */
  readonly exempt?: Readonly<Record<string, string>>;
  /** The capabilities that are attacked, or whose refusal is checked. Default: all. */
  readonly capabilities?: readonly Capability[];
  /** Whether the contract is also tested without a boundary if one is proven. Default: it is. */
  readonly contractWithoutBoundary?: boolean;
  /** Other runners for a backend that offers `takeover`: required there. */
  readonly takeover?: TakeoverOptions;
  /**
   * Makes the backend where its platform's program isn't there: `() => new MySandbox({ engine: "/nonexistent" })`. Its probe and
   * `open` must say so, and leave no error unhandled.
   */
  readonly withoutProgram?: () => SandboxBackend;
  /** Leftovers of sandboxes on this host, in the author's words. Called at the end, and must be empty. */
  readonly remains?: () => Promise<readonly string[]>;
}

/** Of one check. With AMBIT_SOAK it opens fifty sandboxes, each of which may take seconds. */
const checkMs = repetitions({ short: 120_000, soak: 900_000 });
const capabilityMs = repetitions({ short: 300_000, soak: 1_200_000 });

/**
 * The requirements on a sandbox backend, as a suite: the contract of every sandbox, and for every capability either its
 * refusal or the attacks on it, each with its control.
 */
export function describeSandboxBackend(
  makeBackend: () => SandboxBackend,
  options: SandboxSuiteOptions = {},
): void {
  const backend = makeBackend();

  describe(`sandbox backend ${backend.name}`, async () => {
    showSkips();
    // Before the tests, since their list depends on what is proven here.
    const findings = await probeWithin(backend);

    it("describes itself as data, and its gaps without a side effect", () => {
      expect(backend.site).toBe("sandbox");
      callPure(backend, "touches", pluginReturns.domains, () => backend.touches());
      expect(new Set(backend.claims).size, "each claim may be listed once").toBe(backend.claims.length);
      for (const finding of findings) expect(backend.claims).toContain(finding.capability);
      const silent = backend.claims.filter(
        (claim) => !findings.some(({ capability }) => capability === claim),
      );
      expect(silent, "the probe has no finding for a claim").toEqual([]);
      for (const { boundary } of shapesOf([])) {
        const given = structuredClone(boundary);
        const gaps = () => callPure(backend, "gaps", pluginReturns.gaps, () => backend.gaps(given));
        expect(gaps()).toEqual(gaps());
        expect(given).toEqual(boundary);
      }
    });

    if (backend.claims.length > 0 && !findings.some(({ proven }) => proven)) {
      it("proves something on this host", (context) => {
        const [first] = findings;
        const reason = first?.proven === false ? `${first.reason}: ${first.fix}` : "its probe found nothing";
        skip(context, `the probe of ${backend.name} proves nothing, so no attack was made: ${reason}`);
      });
    }
    const shapes = shapesOf(findings);
    const tried = options.contractWithoutBoundary === false ? shapes.slice(-1) : shapes;
    for (const shape of tried) {
      describeContract(backend, shape);
      if (backend.layers?.supports(shape.boundary)) describeLayers(backend, backend.layers, shape);
    }
    if (shapes.length === 1 && backend.claims.length > 0) {
      it("fulfils the contract within a boundary", (context) => {
        skip(context, `no boundary is proven here for ${backend.name}`);
      });
    }
    const [loose, tight] = shapes;
    if (backend.takeover !== undefined && loose !== undefined)
      describeTakeover(backend, [loose, tight], findings, options.takeover);
    for (const capability of options.capabilities ?? capabilities)
      describeCapability(backend, findings, capability, options);

    describeWithoutProgram(options.withoutProgram);

    const { remains } = options;
    if (remains === undefined) return;
    // What a closed sandbox leaves may still be being removed.
    it("leaves nothing behind", () => expect.poll(remains, { timeout: 10_000 }).toEqual([]), 20_000);
  });
}

/** The requirements on a backend whose platform keeps prepared files. */
function describeLayers(backend: SandboxBackend, layers: SandboxLayers, shape: SessionShape): void {
  describe(`a sandbox that begins with prepared files, ${shape.name}`, () => {
    for (const { title, check } of layerChecks) {
      it(title, { timeout: checkMs }, async () => {
        const contract = new Contract(backend, shape);
        try {
          await check(contract, layers);
        } finally {
          await contract.close();
        }
      });
    }
  });
}

function describeContract(backend: SandboxBackend, shape: SessionShape): void {
  describe(`every sandbox, ${shape.name}`, () => {
    const shared = new SharedSandbox(backend, shape);
    afterAll(() => shared.close(), checkMs);
    for (const { title, check } of contractChecks) {
      it(title, { timeout: checkMs }, async () => {
        const contract = new Contract(backend, shape, shared);
        try {
          await check(contract);
        } catch (error) {
          await shared.close();
          throw error;
        } finally {
          await contract.close();
        }
      });
    }
  });
}

function describeCapability(
  backend: SandboxBackend,
  findings: readonly Finding[],
  capability: Capability,
  options: SandboxSuiteOptions,
): void {
  const isClaimed = backend.claims.includes(capability);
  const isProven = findings.some((finding) => finding.capability === capability && finding.proven);
  describe(`${capability}: ${promises[capability]}`, () => {
    let report: CapabilityReport;
    beforeAll(async () => {
      const { control: given = bareControl(), runnerModule, names, credentialHost, exempt, beyond } = options;
      const control = typeof given === "function" ? given(backend) : given;
      const judging = { control, runnerModule, names, credentialHost, exempt, beyond };
      report = await judgeCapability(backend, findings, capability, judging);
    }, capabilityMs);

    if (isClaimed && isProven) {
      it("is enforced", () => expect(report.assurance, report.reason).toBe("proven"));
      const runnerModule = options.runnerModule ?? verificationOf(backend).runnerModule;
      for (const attack of attacks[capability]) {
        const { id, title } = attack;
        const option = missingOption(attack, { ...options, runnerModule });
        it(`can't ${title}`, (context) => {
          if (option !== undefined)
            skip(context, `the suite has no option ${option}, which this attack needs`);
          assertHeld(report, id, context);
        });
      }
      return;
    }
    it(isClaimed ? "is refused because it isn't proven" : "isn't claimed, so it is refused", (context) => {
      expect(report.assurance, report.reason).toBe("refused");
      const fix = report.fix === undefined ? "" : `: ${report.fix}`;
      const reason = `${capability} isn't proven here: ${report.reason}${fix}`;
      if (mustProve(backend, capability)) expect.fail(reason);
      if (isClaimed) skip(context, reason);
    });
  });
}

function assertHeld({ attacks: rows }: CapabilityReport, id: string, context: TestContext): void {
  const row = rows.find((one) => one.id === id);
  if (row === undefined) throw new Error(`the attack ${id} wasn't made`);
  const { verdict, control, guarded } = row;
  const outcomes = `control ${control.result} (${control.detail}), guarded ${guarded.result} (${guarded.detail})`;
  if (verdict === "unproven" || verdict === "impossible") {
    skip(context, `it can't be shown here: ${outcomes}`);
  }
  expect(verdict, outcomes).toBeOneOf(["proven", "refused", "exempt"]);
}
