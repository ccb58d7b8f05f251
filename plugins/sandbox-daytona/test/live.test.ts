import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { configSchema, DaytonaSandbox } from "../src/index.js";
import { closed, listing } from "./support/boundaries.js";
import { printed, scopeOf, specOf } from "./support/loopback.js";

/**
 * The real service, with what a deployer would set. Costs money: two canaries and three sandboxes. What passes here,
 * and only here, says something of the platform.
 */
describe("Daytona itself", () => {
  const key = process.env.DAYTONA_API_KEY;
  let dataFolder = "";
  beforeAll(async () => {
    dataFolder = await mkdtemp(join(tmpdir(), "ambit-live-"));
  });
  afterAll(() => rm(dataFolder, { recursive: true, force: true }));
  beforeEach((context) => {
    if (!key) context.skip("host: DAYTONA_API_KEY isn't set, so the real service isn't tried");
  });
  const backend = () =>
    new DaytonaSandbox(
      configSchema.parse({
        dataFolder,
        deployment: "ambit-live-test",
        ttlMinutes: 15,
        target: process.env.DAYTONA_TARGET ?? "us",
        ...(process.env.DAYTONA_SNAPSHOT ? { snapshot: process.env.DAYTONA_SNAPSHOT } : {}),
      }),
    );

  it("shows what it enforces", async () => {
    const findings = await backend().probe(new AbortController().signal);
    for (const finding of findings) {
      console.log(
        finding.capability,
        finding.proven ? finding.how : `NOT PROVEN: ${finding.reason}: ${finding.cure}`,
      );
    }
    const proven = findings.filter(({ proven }) => proven).map(({ capability }) => capability);
    expect(proven).toEqual(expect.arrayContaining(["process.contained", "environment.named-only"]));
  }, 300_000);

  it("opens a sandbox without network, runs a program in it and leaves nothing", async () => {
    const sandbox = await backend().open(specOf({ boundary: closed }), scopeOf());
    try {
      expect(await printed(sandbox, "echo hello")).toBe("hello\n");
      expect(sandbox.evidence["daytona.tried"]).toMatch(/none was reached/);
    } finally {
      await sandbox.close();
    }
  }, 300_000);

  it("reaches a listed name and no other", async () => {
    const sandbox = await backend().open(specOf({ boundary: listing("example.com") }), scopeOf());
    try {
      const get = (url: string) =>
        `node -e "fetch('${url}', { signal: AbortSignal.timeout(5000) }).then((r) => console.log(r.status), () => console.log('refused'))"`;
      const found = await printed(
        sandbox,
        [get("https://example.com/"), get("https://example.org/")].join("; "),
      );
      expect(found).toBe("200\nrefused\n");
    } finally {
      await sandbox.close();
    }
  }, 300_000);
});
