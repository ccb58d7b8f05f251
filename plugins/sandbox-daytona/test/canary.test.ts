import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding } from "@ambit/core/plugin";
import { type LoopbackDaytona, startLoopbackDaytona } from "@ambit/daytona-loopback";
import { HttpRelay } from "@ambit/fakes/http-relay";
import { describe, expect, it, onTestFinished } from "vitest";
import { DaytonaSandbox } from "../src/index.js";
import { closed } from "./support/boundaries.js";
import {
  backendFor,
  configFor,
  expectNothingLeft,
  scopeOf,
  specOf,
  useLoopback,
} from "./support/loopback.js";
import { loopbackOptions, settingsFor } from "./support/settings.js";

const never = new AbortController().signal;

async function findingsOf(backend: DaytonaSandbox): Promise<Record<string, Finding>> {
  return Object.fromEntries((await backend.probe(never)).map((finding) => [finding.capability, finding]));
}

const proof = (text: RegExp) => ({ proven: true, how: expect.stringMatching(text) });
const gap = (reason: RegExp, fix: RegExp = /./) => ({
  proven: false,
  reason: expect.stringMatching(reason),
  fix: expect.stringMatching(fix),
});
const creates = (daytona: LoopbackDaytona) =>
  daytona.requests().filter(({ method, url }) => method === "POST" && url === "/api/sandbox").length;

describe("a canary, in an organisation that may restrict the network", () => {
  const loopback = useLoopback();

  it("proves every claim against a control without limits, leaves nothing, and runs once in hours", async () => {
    const daytona = loopback();
    const config = await configFor(daytona);
    const found = await findingsOf(new DaytonaSandbox(config));
    expect(found, JSON.stringify(found)).toMatchObject({
      "network.deny": proof(
        /10\.99\.0\.10:80, name\.example\.test:80, other\.example\.test:80, 10\.99\.0\.12:7777, lookup of name/,
      ),
      "network.allow-cidr": proof(
        /10\.99\.0\.10\/32 listed 10\.99\.0\.10:80 was reached, and none of name\.example\.test:80/,
      ),
      "network.allow-host": proof(
        /name\.example\.test listed name\.example\.test:80 was reached.*with \*\.name\.example\.test listed it wasn't/,
      ),
      "process.contained": proof(
        /not in another.*requests of root on 2280, 22220, 22222, 33333, and none of a tool/,
      ),
      "environment.named-only": proof(/not in a process of the run.*and none of a tool/),
      "environment.per-tool": proof(/by no other.*and none of a tool/),
      "secrets.hidden": proof(/only its placeholder.*and none of a tool/),
      "inbound.ports": proof(/answered until its sandbox closed; no other port, no other session's server/),
    });
    await expectNothingLeft(daytona);
    // The findings are stored on disk, without the key.
    const sent = creates(daytona);
    // As after a restart.
    const again = await new DaytonaSandbox(config).probe(never);
    expect(again.map(({ capability, proven }) => [capability, proven])).toEqual(
      Object.values(found).map(({ capability, proven }) => [capability, proven]),
    );
    // The finding shows how old it is.
    for (const finding of again)
      expect(finding).toMatchObject(proof(/\(seen by the canary of 20\d\d-.*Z\)$/));
    expect(creates(daytona)).toBe(sent);
    const { dataFolder = "" } = config;
    const files = await readdir(dataFolder);
    const kept = files.filter((name) => name.startsWith("canary-"));
    expect(kept).toHaveLength(1);
    for (const name of kept) {
      expect(name + (await readFile(join(dataFolder, name), "utf8"))).not.toContain(daytona.apiKey);
    }
    // Another snapshot needs another canary.
    const stop = new AbortController();
    const rejection = expect(
      new DaytonaSandbox({ ...config, snapshot: undefined }).probe(stop.signal),
    ).rejects.toThrow("seen");
    await expect.poll(() => creates(daytona), { timeout: 10_000 }).toBeGreaterThan(sent);
    stop.abort(new Error("seen"));
    await rejection;
  });

  it("proves no network claim if nothing responds without limits either", async () => {
    const canary = {
      address: "10.99.0.77:80",
      name: "nobody.example.test:80",
      forbidden: ["10.99.0.78:80"],
      attemptMs: 300,
    };
    const found = await findingsOf(await backendFor(loopback(), { canary }));
    for (const claim of ["network.deny", "network.allow-cidr", "network.allow-host"]) {
      expect(found[claim]).toMatchObject(gap(/without limits/, /canary\.address/));
    }
  });

  it("reports a key that may not store secrets; the other claims stand", async () => {
    const daytona = loopback();
    daytona.faults.answer({ method: "POST", path: /\/api\/secret/, status: 403, times: 9 });
    const found = await findingsOf(await backendFor(daytona));
    expect(found["secrets.hidden"]).toMatchObject(
      gap(/Forbidden/i, /write and delete sandboxes, secrets and snapshots/),
    );
    expect(found["network.deny"]).toMatchObject({ proven: true });
  });

  it("waits for a decoy that a busy platform starts late", async () => {
    const folder = await mkdtemp(join(tmpdir(), "ambit-late-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await chmod(folder, 0o755);
    // Only a session's shell discards its output: a search has a shell of its own, and isn't late.
    const late = '[ "$(readlink /proc/$$/fd/1)" = /dev/null ] && sleep 2';
    await writeFile(join(folder, "late.sh"), late);
    const snapshot = {
      user: "root" as const,
      binds: { [folder]: "/opt/late" },
      env: { BASH_ENV: "/opt/late/late.sh" },
    };
    const daytona = await startLoopbackDaytona(loopbackOptions({ snapshots: { late: snapshot } }));
    onTestFinished(() => daytona.close());
    const found = await findingsOf(await backendFor(daytona, { snapshot: "late" }));
    expect(found["process.contained"], JSON.stringify(found)).toMatchObject({ proven: true });
  });

  it("ends when it is aborted, and leaves nothing", async () => {
    const daytona = loopback();
    const stop = new AbortController();
    const probing = (await backendFor(daytona)).probe(stop.signal);
    const rejection = expect(probing).rejects.toThrow("enough");
    await expect
      .poll(() => daytona.sandboxes().filter(({ state }) => state === "started").length, { timeout: 10_000 })
      .toBe(2);
    stop.abort(new Error("enough"));
    await rejection;
    await expectNothingLeft(daytona);
  });

  it("yields a finding for each claim if the key is refused", async () => {
    const daytona = loopback();
    daytona.faults.expireKey();
    const found = await findingsOf(await backendFor(daytona));
    for (const finding of Object.values(found)) expect(finding).toMatchObject(gap(/./, /set a valid one/));
  });

  it("reports a missing key without a request", async () => {
    const daytona = loopback();
    const before = daytona.requests().length;
    const backend = await backendFor(daytona, {
      apiKey: undefined,
      apiKeyVariable: "AMBIT_TEST_NO_SUCH_KEY",
    });
    const found = await findingsOf(backend);
    expect(Object.keys(found)).toEqual(backend.claims);
    for (const finding of Object.values(found))
      expect(finding).toMatchObject(gap(/no API key/, /AMBIT_TEST_NO_SUCH_KEY/));
    await expect(backend.open(specOf(), scopeOf())).rejects.toThrow(
      /no API key is set: set AMBIT_TEST_NO_SUCH_KEY/,
    );
    expect(daytona.requests()).toHaveLength(before);
  });

  it("reads the key from the environment when it is needed", async () => {
    const daytona = loopback();
    const backend = await backendFor(daytona, { apiKey: undefined, apiKeyVariable: "AMBIT_TEST_KEY" });
    process.env.AMBIT_TEST_KEY = daytona.apiKey;
    onTestFinished(() => {
      delete process.env.AMBIT_TEST_KEY;
    });
    const sandbox = await backend.open(specOf(), scopeOf());
    await sandbox.close();
  });
});

describe("a canary, in an organisation that", () => {
  const organisation = async (options: object): Promise<LoopbackDaytona> => {
    const daytona = await startLoopbackDaytona(loopbackOptions({ organization: options }));
    onTestFinished(() => daytona.close());
    return daytona;
  };
  // Skipped with the reason that the suite above gives.
  useLoopback();

  it("accepts that a sandbox is gone only a moment after it was found", async () => {
    // Of its own, since what it doesn't let be deleted stays there.
    const daytona = await organisation({});
    const { apiUrl } = daytona;
    let isDeleted = false;
    const relay = new HttpRelay(
      { port: Number(new URL(apiUrl).port) },
      {
        request: (asked) => {
          isDeleted ||= asked.method === "DELETE" && asked.url.startsWith("/api/sandbox/");
          // It is found by its name, as it was, and then not by its id.
          if (isDeleted && asked.method === "DELETE") return { ...asked, method: "GET" };
          const isById = /^\/api\/sandbox\/[0-9a-f]{8}-/.test(asked.url);
          return isDeleted && isById ? { ...asked, url: "/api/sandbox/gone" } : asked;
        },
      },
    );
    onTestFinished(() => relay.close());
    const found = await findingsOf(
      await backendFor(daytona, { apiUrl: `http://127.0.0.1:${await relay.listen()}/api` }),
    );
    expect(found["process.contained"], JSON.stringify(found)).toMatchObject({ proven: true });
  });

  it("may not restrict the network: no network claim is proven, the others stand", async () => {
    const daytona = await organisation({ networkOverride: "refused" });
    const backend = await backendFor(daytona);
    const found = await findingsOf(backend);
    for (const claim of ["network.deny", "network.allow-cidr", "network.allow-host"]) {
      expect(found[claim]).toMatchObject(gap(/./, /tier 3 or 4/));
    }
    expect(found["process.contained"]).toMatchObject({ proven: true });
    await expect(backend.open(specOf({ boundary: closed }), scopeOf())).rejects.toThrow(/tier 3 or 4/);
    await expectNothingLeft(daytona);
  });

  it("reports limits that it doesn't apply: found by trying, also in an open sandbox", async () => {
    const daytona = await organisation({ networkOverride: "ignored" });
    const config = await configFor(daytona);
    const backend = new DaytonaSandbox(config);
    const found = await findingsOf(backend);
    for (const claim of ["network.deny", "network.allow-cidr", "network.allow-host"]) {
      expect(found[claim]).toMatchObject(gap(/is reached nevertheless/));
    }
    await expect(backend.open(specOf({ boundary: closed }), scopeOf())).rejects.toThrow(
      /reports that it limits the network, but .*10\.99\.0\.10:80.* was reached/,
    );
    await expectNothingLeft(daytona);
    // That removes the stored findings.
    const files = await readdir(config.dataFolder ?? "");
    expect(files.filter((name) => name.startsWith("canary-"))).toEqual([]);
  });

  // apps/runner/pkg/docker/create.go: a goroutine, after the start.
  it("sets its limits after the start: the check waits for them", async () => {
    const daytona = await organisation({ rulesDelayMs: 1_500 });
    const { canary } = settingsFor(daytona);
    const backend = await backendFor(daytona, { canary: { ...canary, settleMs: 10_000 } });
    const found = await findingsOf(backend);
    for (const claim of ["network.deny", "network.allow-cidr", "network.allow-host"])
      expect(found[claim], claim).toMatchObject({ proven: true });
    const sandbox = await backend.open(specOf({ boundary: closed }), scopeOf());
    expect(sandbox.evidence["daytona.tried"]).toMatch(/none was reached/);
    await sandbox.close();
    const hasty = await backendFor(daytona, { canary: { ...canary, settleMs: 0 } });
    await expect(hasty.open(specOf({ boundary: closed }), scopeOf())).rejects.toThrow(/but .* was reached/);
    await expectNothingLeft(daytona);
  });
});
