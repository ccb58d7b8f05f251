// needs: jail
import { join } from "node:path";
import type { VerifyReport } from "@ambit/testkit";
import { execa } from "execa";
import { expect, it } from "vitest";
import { repository } from "../support/ambit.js";

/** What a host with bubblewrap guarantees an ordinary user; limits need delegated cgroups. */
const guaranteed = [
  "network.deny",
  "network.allow-cidr",
  "network.allow-host",
  "filesystem.read-only",
  "filesystem.workspace-only",
  "filesystem.none",
  "filesystem.host-hidden",
  "process.contained",
  "environment.named-only",
  "environment.per-tool",
  "inbound.ports",
];

it("an ordinary user's sandbox withstands every attack", { timeout: 400_000, retry: 0 }, async () => {
  const { stdout } = await execa("node", [join(repository, "scripts/verify-as-user.mjs")]);
  const report: VerifyReport = JSON.parse(stdout);
  expect(report.host.uid).not.toBe(0);
  expect(report.holds).toBe(true);
  const proven = report.capabilities.filter(({ assurance }) => assurance === "proven");
  expect(proven.map(({ capability }) => capability)).toEqual(expect.arrayContaining(guaranteed));
});
