import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { labelsOfDeployment } from "@ambit/backend-kit";
import type { Finding } from "@ambit/core/plugin";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Account } from "../src/account.js";
import { claimsOf } from "../src/claims.js";
import { configSchema, DaytonaSandbox } from "../src/index.js";
import { lostToDaemon } from "../src/inside/daemon.js";
import { snapshotName } from "../src/layers/layer-snapshots.js";
import { closed, listing, unlimited } from "./support/boundaries.js";
import { logged, printed, scopeOf, specOf } from "./support/loopback.js";

/**
 * The real service, configured as by a deployer: `DAYTONA_API_KEY`, and `DAYTONA_SNAPSHOT` for one whose user is root
 * and that has nftables (the README explains how to make it); `DAYTONA_API_URL` for another Daytona. Costs a few cents:
 * two canaries and seven sandboxes, some seconds each, and a snapshot. Only these tests show how the platform itself behaves; their
 * output belongs in the README.
 */
describe("Daytona itself", () => {
  const key = process.env.DAYTONA_API_KEY;
  const snapshot = process.env.DAYTONA_SNAPSHOT;
  const limitMs = 60_000;
  let dataFolder = "";
  let findings: readonly Finding[] = [];
  beforeAll(async () => {
    dataFolder = await mkdtemp(join(tmpdir(), "ambit-live-"));
    if (key) findings = await backend().probe(AbortSignal.timeout(120_000));
  }, 130_000);
  afterAll(() => rm(dataFolder, { recursive: true, force: true }));
  beforeEach((context) => {
    if (!key) context.skip("host: DAYTONA_API_KEY isn't set, so the real service isn't tried");
  });
  const config = () =>
    configSchema.parse({
      dataFolder,
      deployment: "ambit-live-test",
      ttlMinutes: 15,
      target: process.env.DAYTONA_TARGET ?? "us",
      ...(process.env.DAYTONA_API_URL ? { apiUrl: process.env.DAYTONA_API_URL } : {}),
      ...(snapshot ? { snapshot } : {}),
    });
  const backend = () => new DaytonaSandbox(config());
  const isProven = (capability: string) =>
    findings.some((finding) => finding.capability === capability && finding.proven);

  it("returns a finding for every claim", () => {
    for (const finding of findings)
      console.log(finding.capability, finding.proven ? finding.how : `NOT PROVEN: ${finding.reason}`);
    expect(findings.map(({ capability }) => capability)).toEqual(claimsOf(config()));
    for (const finding of findings) if (!finding.proven) expect(finding.fix).not.toBe("");
  });

  it(
    "runs a program over a session's log, which shows that the streams have markers",
    async () => {
      const { log, lines } = logged();
      const sandbox = await backend().open(specOf({ boundary: unlimited, log }), scopeOf());
      try {
        expect(await printed(sandbox, "echo hello; echo aside >&2")).toBe("hello\n");
        // What the source of v0.190 showed, as it is today.
        const facts = [
          "uname -r; id; cat /etc/shells",
          "grep -E 'Cap(Eff|Bnd)|NoNewPrivs|Seccomp' /proc/self/status",
          "cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == \"0A\" { print $2, $8 }'",
          "cat /etc/resolv.conf; cat /proc/net/route; cat /proc/net/if_inet6",
          "ls -ld ~root ~root/.daytona /tmp/daytona-daemon.log 2>&1",
        ];
        console.log(sandbox.evidence, await printed(sandbox, facts.join("; ")), lines.join("\n"));
      } finally {
        await sandbox.close();
      }
    },
    limitMs,
  );

  it(
    "restricts its daemon to root if the snapshot lets the bridge close it, and claims nothing otherwise",
    async (context) => {
      if (!snapshot) context.skip("host: DAYTONA_SNAPSHOT isn't set, so no image with nftables is tried");
      const sandbox = await backend().open(specOf({ boundary: unlimited }), scopeOf());
      try {
        const isClosed = String(sandbox.evidence["daytona.daemon"]).startsWith("closed");
        for (const capability of lostToDaemon) if (!isClosed) expect(isProven(capability)).toBe(false);
        const order = `fetch("http://127.0.0.1:2280/process/execute", { method: "POST", body: JSON.stringify({ command: "id -u" }), signal: AbortSignal.timeout(5000) })`;
        const said = await printed(
          sandbox,
          `node -e '${order}.then((r) => r.text()).then(console.log, () => console.log("refused"))'`,
        );
        expect(said === "refused\n").toBe(isClosed);
        expect(isClosed).toBe(true);
      } finally {
        await sandbox.close();
      }
    },
    limitMs,
  );

  it(
    "closes the network once its rules are set, and prints how long that took",
    async (context) => {
      if (!isProven("network.deny"))
        context.skip("host: this organisation's canary doesn't prove network.deny");
      const began = performance.now();
      const sandbox = await backend().open(specOf({ boundary: closed }), scopeOf());
      try {
        console.log(
          "opened in",
          Math.round(performance.now() - began),
          "ms",
          sandbox.evidence["daytona.tried"],
        );
        expect(sandbox.evidence["daytona.tried"]).toMatch(
          /its gateway.*an IPv6 address of its own: none was reached/,
        );
      } finally {
        await sandbox.close();
      }
    },
    limitMs,
  );

  it(
    "reaches a listed name and no other",
    async (context) => {
      if (!isProven("network.allow-host"))
        context.skip("host: this organisation's canary doesn't prove network.allow-host");
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
    },
    limitMs,
  );

  it(
    "begins with prepared files that it keeps as a snapshot",
    async () => {
      const one = backend();
      const name = randomBytes(32).toString("hex");
      const spec = (use: "begin" | "make") => specOf({ boundary: closed, layer: { use, name } });
      const making = await one.open(spec("make"), scopeOf());
      try {
        await printed(making, "printf prepared > file");
        const began = performance.now();
        await making.keepAsLayer?.();
        console.log("kept in", Math.round(performance.now() - began), "ms");
      } finally {
        await making.close();
      }
      const service = await new Account(config()).service();
      try {
        const sandbox = await one.open(spec("begin"), scopeOf());
        try {
          expect(await printed(sandbox, "cat file")).toBe("prepared");
        } finally {
          await sandbox.close();
        }
      } finally {
        const found = await service.snapshot(snapshotName(config(), name));
        if (found !== undefined) await service.deleteSnapshot(found.id);
      }
    },
    2 * limitMs + configSchema.parse({}).layers.timeoutMs,
  );

  it(
    "leaves nothing of a creation that is aborted",
    async () => {
      const { log, lines } = logged();
      const stop = new AbortController();
      const opening = backend().open(specOf({ boundary: unlimited, log }), scopeOf(stop.signal));
      setTimeout(() => stop.abort(new Error("given up")), 300);
      await expect(opening).rejects.toThrow("given up");
      const service = await new Account(config()).service();
      const names = async () => {
        const found: string[] = [];
        for await (const { name } of service.list(labelsOfDeployment("ambit-live-test"))) found.push(name);
        return found;
      };
      await expect.poll(names, { timeout: limitMs - 5_000, interval: 2_000 }).toEqual([]);
      console.log(lines.join("\n"));
    },
    limitMs,
  );
});
