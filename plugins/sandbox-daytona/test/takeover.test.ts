import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Sandbox, SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { DaytonaSandbox } from "../src/index.js";
import { closed } from "./support/boundaries.js";
import {
  backendFor,
  configFor,
  expectNothingLeft,
  left,
  logged,
  printed,
  scopeOf,
  specOf,
  useLoopback,
} from "./support/loopback.js";

describe("a sandbox of a runner that is dead, or only unreachable", () => {
  const loopback = useLoopback();

  /** Opened by one runner; another has a separate data folder, as on another host. */
  async function opened(more: Partial<SandboxSpec> = {}) {
    const one = await backendFor(loopback());
    const spec = specOf({ fence: 1, ...more });
    const sandbox = await one.open(spec, scopeOf());
    onTestFinished(() => sandbox.close());
    return { one, spec, sandbox, handover: sandbox.handover ?? "none" };
  }
  async function taken(backend: DaytonaSandbox, spec: SandboxSpec, handover: string): Promise<Sandbox> {
    const sandbox = await backend.takeover.takeOver(spec, handover, scopeOf());
    onTestFinished(() => sandbox.close());
    return sandbox;
  }

  it("is taken over by another runner: its files are there, and the first runner can't use or delete it", async () => {
    const first = await opened();
    expect(await printed(first.sandbox, "echo of the first > kept && cat kept")).toBe("of the first\n");
    const second = await taken(await backendFor(loopback()), { ...first.spec, fence: 2 }, first.handover);
    expect(await printed(second, "cat kept")).toBe("of the first\n");
    await expect(printed(first.sandbox, "echo again > kept")).rejects.toThrow(SandboxFailed);
    await first.sandbox.close();
    expect(left(loopback())).toEqual([`ambit-${first.spec.id}`]);
    expect(await printed(second, "cat kept")).toBe("of the first\n");
    // And back again, to the runner that had released it.
    const third = await taken(first.one, { ...first.spec, fence: 3 }, second.handover ?? "none");
    await second.close();
    expect(await printed(third, "cat kept")).toBe("of the first\n");
    await third.close();
    await expectNothingLeft(loopback());
  });

  it("isn't taken over with other limits, with an older fence, or under another session's name", async () => {
    const { spec, handover } = await opened({ fence: 2 });
    const other = await backendFor(loopback());
    const boundary = { ...spec.boundary, network: { mode: "allowlist", rules: [name] } as const };
    await expect(other.takeover.takeOver({ ...spec, fence: 2 }, handover, scopeOf())).rejects.toThrow(
      "has another owner",
    );
    await expect(
      other.takeover.takeOver({ ...spec, id: "else", fence: 3 }, handover, scopeOf()),
    ).rejects.toThrow("has another owner");
    await expect(
      other.takeover.takeOver({ ...spec, boundary, fence: 3 }, handover, scopeOf()),
    ).rejects.toThrow("no longer matches the request");
    await other.takeover.discard({ ...spec, fence: 3 }, handover);
    await expectNothingLeft(loopback());
    await other.takeover.discard({ ...spec, fence: 4 }, handover);
  });

  it("of a dead runner is reaped after its waiting time, unless another runner has taken it over", {
    timeout: 60_000,
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
    const spec = specOf({ id: "taken", boundary, secrets, fence: 2, log });
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
