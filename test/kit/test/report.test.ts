import { allowances, attacks } from "@ambit/attacks";
import { capabilities } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { renderEnforcementMatrix, type VerifyReport } from "../src/index.js";

const report: VerifyReport = {
  backend: "local",
  control: "a bare process",
  at: "2026-11-20T12:00:00.000Z",
  host: { platform: "linux", release: "6.18", uid: 0 },
  holds: false,
  capabilities: [
    {
      capability: "network.deny",
      assurance: "escaped",
      reason: "it looked",
      attacks: [
        {
          id: "network.deny/tcp",
          title: "connect",
          verdict: "escaped",
          control: { result: "reached", detail: "x" },
          guarded: { result: "reached", detail: "a decoy saw it\n\u001b[31m" },
        },
        {
          id: "network.deny/udp",
          title: "send",
          verdict: "proven",
          without: "network namespace",
          control: { result: "reached", detail: "x" },
          guarded: { result: "blocked", detail: "EPERM" },
        },
      ],
      allowances: [
        {
          id: "network.deny/own-channel",
          title: "its channel",
          outcome: { result: "blocked", detail: "EPERM" },
        },
      ],
    },
    {
      capability: "resources.disk",
      assurance: "refused",
      reason: "no | sized file system",
      fix: "mount one",
      attacks: [],
      allowances: [],
    },
  ],
};

describe("the matrix for the documentation", () => {
  it("has a row for every capability and every attack, and escapes table delimiters", () => {
    const text = renderEnforcementMatrix([{ title: "Debian 12, as root", report }]);
    for (const capability of capabilities) {
      expect(text).toContain(`### \`${capability}\``);
      for (const { title } of attacks[capability])
        expect(text).toContain(`| ${title.replaceAll("|", "\\|")} |`);
    }
    expect(text).toContain("| send a datagram to a UDP server of the host | network namespace | proven |");
    expect(text).toContain("| connect to a TCP server of the host | any guard | escaped |");
    expect(text).toContain("| `network.deny` | escaped |");
    expect(text).toContain("refused: no \\| sized file system");
    expect(text).toContain("| `resources.cpu` | not tested |");
  });
});

describe("the catalogue", () => {
  const all = capabilities.flatMap((capability) =>
    attacks[capability].map((attack) => ({ capability, attack })),
  );

  it("names every attack once, by its capability", () => {
    expect(new Set(all.map(({ attack }) => attack.id)).size).toBe(all.length);
    for (const { capability, attack } of all) {
      expect(attack.capability).toBe(capability);
      expect(attack.id.startsWith(`${capability}/`)).toBe(true);
    }
  });

  it("has more than one attack for every capability, and an allowance", () => {
    for (const capability of capabilities) {
      expect(attacks[capability].length, capability).toBeGreaterThan(1);
      expect(allowances[capability].length, capability).toBeGreaterThan(0);
    }
  });

  it("has unique names", () => {
    const names = capabilities.flatMap((capability) => allowances[capability].map(({ id }) => id));
    expect(new Set([...names, ...all.map(({ attack }) => attack.id)]).size).toBe(names.length + all.length);
  });
});
