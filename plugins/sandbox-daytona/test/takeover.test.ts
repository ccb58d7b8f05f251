import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Sandbox, SandboxSpec } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { DaytonaSandbox } from "../src/index.js";
import { closed } from "./support/boundaries.js";
import {
  configFor,
  expectNothingLeft,
  left,
  logged,
  printed,
  scopeOf,
  specOf,
  useLoopback,
} from "./support/loopback.js";

// What holds for every backend with a takeover is the kit's: `conformance.test.ts`.
describe("a sandbox of a runner that is dead", () => {
  const loopback = useLoopback();

  async function taken(backend: DaytonaSandbox, spec: SandboxSpec, handover: string): Promise<Sandbox> {
    const sandbox = await backend.takeover.takeOver(spec, handover, scopeOf());
    onTestFinished(() => sandbox.close());
    return sandbox;
  }

  it("is reaped after its waiting time, unless another runner has taken it over", {
    timeout: 180_000,
  }, async () => {
    const config = await configFor(loopback(), { takeoverMinutes: 0.15, reapMinutes: 0.002 });
    const boundary = {
      ...closed,
      network: { mode: "allowlist", rules: [name] } as const,
      secrets: "hidden" as const,
    };
    const [taken1, waiting] = await Promise.all(["taken", "waiting"].map((id) => died(config, id)));
    const { log, lines } = logged();
    const next = new DaytonaSandbox(config);
    const secrets = [{ name: "KEY", value: "value", hosts: ["name.example.test"] }];
    const spec = specOf({ id: "taken", boundary, secrets, fence: 3, log });
    // Its labels and limits decide before anything runs inside.
    const refused = (change: Partial<SandboxSpec>) =>
      expect(next.takeover.takeOver({ ...spec, ...change }, taken1 ?? "none", scopeOf())).rejects;
    await refused({ fence: 1 }).toThrow("has another owner");
    await refused({ id: "else" }).toThrow("has another owner");
    await refused({ fence: 2, boundary: closed }).toThrow("no longer matches the request");
    const second = await taken(next, spec, taken1 ?? "none");
    expect(second.placeholders?.KEY).toMatch(/./);
    expect(waiting).toContain("machine");
    // It wasn't taken at the first look.
    const machines = () => left(loopback()).filter((found) => found.startsWith("ambit-"));
    const placeholders = () =>
      loopback()
        .secrets()
        .map(({ placeholder }) => placeholder);
    expect(machines().toSorted()).toEqual(["ambit-taken", "ambit-waiting"]);
    await expect.poll(machines, { timeout: 30_000 }).toEqual(["ambit-taken"]);
    // Its secret was the dead runner's by its label, and is its own nevertheless.
    await expect.poll(placeholders, { timeout: 10_000 }).toEqual([second.placeholders?.KEY]);
    await expect.poll(() => lines.join()).toContain("ambit-waiting");
    expect(await printed(second, "echo here")).toBe("here\n");
    expect(placeholders()).toHaveLength(1);
    await second.close();
    await expectNothingLeft(loopback());
  });
});

const name = { kind: "host", name: "name.example.test", subdomains: false } as const;

/** The leftovers of a runner that was killed with an open sandbox. */
async function died(settings: object, id: string): Promise<string> {
  const file = fileURLToPath(new URL("./support/runner.mjs", import.meta.url));
  const runner = spawn(process.execPath, [file, JSON.stringify({ settings, id, fence: 1 })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [handover] = await once(runner.stdout, "data");
  const gone = once(runner, "exit");
  runner.kill("SIGKILL");
  await gone;
  return String(handover).trim();
}
