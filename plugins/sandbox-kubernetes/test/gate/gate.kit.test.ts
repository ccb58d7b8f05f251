import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding, Sandbox, SandboxBackend } from "@ambit/core/plugin";
import { makeAuthority } from "@ambit/egress/credentials";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { ChangingNames, CredentialHost, type JudgeOptions, judgeCapability } from "@ambit/testkit";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { PodShape } from "../../src/enter.js";
import { configSchema, KubernetesSandbox } from "../../src/index.js";
import { admitsAll, gateControl } from "../support/gate-control.js";
import { gateMutants } from "../support/gate-mutants.js";
import { gateVariant } from "../support/gate-variant.js";
import { TestNamespace } from "../support/on-cluster.js";
import { replaced } from "../support/replaced.js";

/** The program of the gates that are opened now; undefined: the real one. */
const opened = vi.hoisted((): { program: Buffer | undefined } => ({ program: undefined }));
vi.mock("@ambit/egress/remote", async (original) => {
  const real = await original<typeof import("@ambit/egress/remote")>();
  return { ...real, gateProgram: async () => opened.program ?? (await real.gateProgram()) };
});

async function withProgram(program: Buffer, open: () => Promise<Sandbox>): Promise<Sandbox> {
  opened.program = program;
  try {
    return await open();
  } finally {
    opened.program = undefined;
  }
}

const isThorough = process.env.AMBIT_SOAK !== undefined;
const shapes: readonly PodShape[] = isThorough ? ["user-namespace", "baseline"] : ["user-namespace"];
const capabilities = ["network.allow-cidr", "network.allow-host", "secrets.hidden"] as const;
/** Nothing of this cluster has an IPv6 address. */
const notHere = "network.allow-cidr/other-family";

const reason = await ownUnavailableReason();
if (reason !== undefined)
  describe("the kit, through a gate", () => {
    it("isn't run", (context) => context.skip(`host: ${reason}`));
  });
else
  describe.each(shapes)("the kit, through a gate in the shape %s", { timeout: 600_000 }, (shape) => {
    let place: GateKit;
    beforeAll(async () => {
      place = await openPlace(shape);
    }, 600_000);
    afterAll(() => place?.close());

    it.each(capabilities)("keeps %s, and lets through what is listed", async (capability) => {
      const report = await judgeCapability(place.backend, place.findings, capability, place.options);
      const others = report.attacks.filter(({ id, verdict }) => verdict !== "proven" && id !== notHere);
      expect(others, report.reason).toEqual([]);
      expect(report.assurance, report.reason).toBe("proven");
    });

    for (const { name, patches, capability, caughtBy } of gateMutants) {
      it(`notices: ${name}`, async () => {
        const program = await gateVariant(patches);
        const { backend, findings, options } = place;
        const open: SandboxBackend["open"] = (...given) => withProgram(program, () => backend.open(...given));
        const weakened = replaced(backend, { open });
        const only = [`${capability}/${caughtBy}`];
        const { attacks } = await judgeCapability(weakened, findings, capability, { ...options, only });
        expect(attacks).toMatchObject([{ id: only[0], control: { result: "reached" }, verdict: "escaped" }]);
      });
    }
  });

interface GateKit {
  readonly backend: SandboxBackend;
  readonly findings: readonly Finding[];
  readonly options: JudgeOptions;
  close(): Promise<void>;
}

/** Servers at this host's addresses, which the cluster's pods reach, and sandboxes whose gates find them by the kit's names. */
async function openPlace(shape: PodShape): Promise<GateKit> {
  const namespace = await TestNamespace.open({ enforced: shape === "baseline" });
  const { hostAddress: address, neighbourAddress: neighbour } = namespace.own.place;
  const names = new ChangingNames({ address, neighbour });
  const folder = await mkdtemp(join(tmpdir(), "ambit-gate-kit-"));
  const { credentialHost, authorityFile } = await CredentialHost.openIn(folder, makeAuthority, names.place);
  const config = configSchema.parse({
    ...namespace.settings,
    egress: "gate",
    hostUsers: shape === "baseline" ? "off" : "require",
    trustedAuthorities: [authorityFile],
  });
  const backend = new KubernetesSandbox(config, names.lookup);
  const unguarded = new KubernetesSandbox(config, names.lookup);
  const openGate = await gateVariant(admitsAll);
  const control = gateControl(unguarded, (open) => withProgram(openGate, open));
  const claims = ["network.deny", ...capabilities] as const;
  const findings = await backend.probe(AbortSignal.timeout(500_000), claims);
  return {
    backend,
    findings,
    options: { control, names, credentialHost, controlOutcomes: new Map() },
    close: async () => {
      await Promise.all([backend.close(), unguarded.close(), credentialHost.close()]);
      await namespace.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
