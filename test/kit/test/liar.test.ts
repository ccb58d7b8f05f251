// needs: jail
import { attacks, ChangingNames } from "@ambit/attacks";
import { capabilities } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { bareControl } from "../src/control/control.js";
import { judgeCapability } from "../src/judge/judge-capability.js";
import { liar } from "./liar.js";

/** Assumes that these attacks work if nothing stops them: a working attack reports its target again. */
const shownElsewhere = { result: "reached", detail: "shown by the suites of sandboxes" } as const;

const runnerModule = new URL("../dist/control/bare-backend.js", import.meta.url);

describe("a backend that claims everything and enforces nothing", () => {
  it.for(capabilities)(
    "is caught on %s, by every attack that can be made here",
    { timeout: 120_000 },
    async (capability) => {
      const backend = liar();
      const findings = await backend.probe(AbortSignal.timeout(1_000));
      const report = await judgeCapability(backend, findings, capability, {
        control: bareControl(),
        runnerModule,
        names: new ChangingNames(),
        controlOutcomes: new Map(attacks[capability].map(({ id }) => [id, shownElsewhere])),
      });
      expect(report.assurance).toBe("escaped");
      // Attacks with credentials need a backend that trusts their host; its suite has their control.
      const made = attacks[capability].filter(({ needsCredentials }) => needsCredentials !== true);
      expect(report.attacks).toHaveLength(made.length);
      // Attacks that need a privilege fail, since its processes are unprivileged; all others expose it.
      const plain = new Set<string>(
        attacks[capability].filter(({ needs }) => needs === undefined).map(({ id }) => id),
      );
      // The liar's launches look for nothing in the workspace, so nothing can be exchanged under them.
      plain.delete("filesystem.workspace-only/exchange-under-a-launch");
      const held = report.attacks.filter(({ id, verdict }) => plain.has(id) && verdict !== "escaped");
      expect(held).toEqual([]);
    },
  );

  it.for([
    ["network.deny", ["network.deny/tcp-ipv6", "network.deny/udp-ipv6"]],
    ["network.allow-cidr", ["network.allow-cidr/other-family"]],
    ["network.allow-host", []],
  ] as const)(
    "is caught on %s where decoys listen at other addresses, over IPv4",
    { timeout: 120_000 },
    async ([capability, overIpv6]) => {
      const names = new ChangingNames({ address: "127.0.0.3", neighbour: "127.0.0.4" });
      const backend = liar(names);
      const findings = await backend.probe(AbortSignal.timeout(1_000));
      const options = { control: bareControl(), names };
      const report = await judgeCapability(backend, findings, capability, options);
      const privileged = new Set<string>(
        attacks[capability].filter(({ needs }) => needs !== undefined).map(({ id }) => id),
      );
      const held = report.attacks.filter(({ id, verdict }) => verdict !== "escaped" && !privileged.has(id));
      expect(held).toMatchObject(overIpv6.map((id) => ({ id, verdict: "impossible" })));
    },
  );
});

describe("a backend that claims nothing, but opens sandboxes anyway", () => {
  it("is caught on every capability", async () => {
    const { claims: _all, ...rest } = liar();
    const backend = { ...rest, claims: [] };
    for (const capability of capabilities) {
      const { assurance, reason } = await judgeCapability(backend, [], capability, {
        control: bareControl(),
      });
      expect([capability, assurance]).toEqual([capability, "weakened"]);
      expect(reason).toContain("open()");
    }
  });
});

describe("a backend that refuses everything it doesn't enforce", () => {
  it("passes", async () => {
    const backend = {
      ...liar(),
      claims: [],
      open: () => Promise.reject(new Error("nothing is enforced here")),
    };
    for (const capability of capabilities) {
      const { assurance } = await judgeCapability(backend, [], capability, { control: bareControl() });
      expect([capability, assurance]).toEqual([capability, "refused"]);
    }
  });

  it("reports why a claim can't be proven here", async () => {
    const backend = { ...liar(), open: () => Promise.reject(new Error("not here")) };
    const findings = [
      {
        capability: "network.deny",
        proven: false,
        reason: "no namespaces (EPERM)",
        fix: "run on docker",
      } as const,
    ];
    const options = { control: bareControl() };
    expect(await judgeCapability(backend, findings, "network.deny", options)).toMatchObject({
      assurance: "refused",
      reason: "no namespaces (EPERM)",
      fix: "run on docker",
    });
    expect(await judgeCapability(backend, [], "resources.cpu", options)).toMatchObject({
      assurance: "refused",
    });
  });
});
