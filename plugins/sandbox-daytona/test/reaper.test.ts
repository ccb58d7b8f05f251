import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { labelsOf } from "@ambit/backend-kit";
import type { LoopbackDaytona } from "@ambit/daytona-loopback";
import { describe, expect, it, onTestFinished } from "vitest";
import { DaytonaSandbox } from "../src/index.js";
import {
  backendFor,
  configFor,
  left,
  logged,
  open,
  printed,
  scopeOf,
  specOf,
  useLoopback,
} from "./support/loopback.js";

const runnerFile = fileURLToPath(new URL("./support/runner.mjs", import.meta.url));

async function runnerWith(settings: object, id: string): Promise<ChildProcess> {
  const runner = spawn(process.execPath, [runnerFile, JSON.stringify({ settings, id })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    if (runner.exitCode !== null || runner.signalCode !== null) return;
    runner.kill("SIGKILL");
    await once(runner, "exit");
  });
  await once(runner.stdout, "data");
  return runner;
}

async function kill(runner: ChildProcess): Promise<void> {
  runner.kill("SIGKILL");
  await once(runner, "exit");
}

async function made(daytona: LoopbackDaytona, name: string, labels: object): Promise<void> {
  const answer = await fetch(`${daytona.apiUrl}/sandbox`, {
    method: "POST",
    headers: { authorization: `Bearer ${daytona.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name, labels }),
  });
  expect(answer.ok).toBe(true);
}

describe("leftovers of a dead runner", () => {
  const loopback = useLoopback();

  it("are deleted by the next one on its host, including secrets; a live runner's aren't", async () => {
    const daytona = loopback();
    const config = await configFor(daytona);
    const dead = await runnerWith(config, "of-the-dead");
    await runnerWith(config, "of-the-living");
    expect(left(daytona).filter((name) => name.startsWith("ambit-of-"))).toHaveLength(2);
    expect(daytona.secrets()).toHaveLength(2);
    await kill(dead);

    const { log, lines } = logged();
    const sandbox = await open(new DaytonaSandbox(config), { log });
    await expect.poll(() => left(daytona), { timeout: 10_000 }).not.toContain("ambit-of-the-dead");
    await expect.poll(() => daytona.secrets().length, { timeout: 10_000 }).toBe(1);
    await expect.poll(() => lines.join(), { timeout: 10_000 }).toContain("ambit-of-the-dead");
    expect(left(daytona)).toContain("ambit-of-the-living");
    expect(await printed(sandbox, "echo here")).toBe("here\n");
  });

  it("are deleted after their time to live on any host; other deployments' aren't", async () => {
    const daytona = loopback();
    const owner = { deployment: "ambit", replica: "0123456789ab-ba9876543210", session: "s" };
    const now = Math.floor(Date.now() / 1_000);
    await made(daytona, "expired", labelsOf({ ...owner, expires: now - 1 }));
    await made(daytona, "of-another-host", labelsOf({ ...owner, expires: now + 3_600 }));
    await made(
      daytona,
      "of-another-deployment",
      labelsOf({ ...owner, deployment: "other", expires: now - 1 }),
    );
    await made(daytona, "of-nobody", { app: "theirs" });
    await made(daytona, "half-ours", { ambit: "sandbox", "ambit-deployment": "ambit" });
    await open(await backendFor(daytona));
    await expect.poll(() => left(daytona), { timeout: 10_000 }).not.toContain("expired");
    expect(left(daytona)).toEqual(
      expect.arrayContaining(["of-another-host", "of-another-deployment", "of-nobody", "half-ours"]),
    );
  });

  it("don't fail a start if the platform doesn't respond: the sandbox opens, the log reports it", async () => {
    const daytona = loopback();
    daytona.faults.answer({ method: "GET", path: /\/api\/sandbox\?/, status: 500, times: 9 });
    const { log, lines } = logged();
    const spec = specOf({ log });
    const sandbox = await (await backendFor(daytona)).open(spec, scopeOf());
    await sandbox.close();
    expect(lines.join()).toContain("leftovers of dead runners couldn't be listed");
  });
});
