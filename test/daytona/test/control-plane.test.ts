import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { useLoopback } from "./loopback.js";

describe("the control plane", () => {
  const fixture = useLoopback({ startDelayMs: 150, organization: { maxMemory: 4 } });

  it("accepts a name once, and finds a sandbox by it", async () => {
    const { daytona } = fixture();
    const sandbox = await daytona.create({ name: "twice", snapshot: "ambit" });
    await expect(daytona.create({ name: "twice", snapshot: "ambit" })).rejects.toMatchObject({
      statusCode: 409,
      message: "Sandbox with name twice already exists",
    });
    expect((await daytona.get("twice")).id).toBe(sandbox.id);
    await sandbox.delete();
  });

  it("responds to a create from an image while it is creating", async () => {
    const { daytona, loopback } = fixture();
    const creating = daytona.create({ image: "debian:12", name: "slow", autoStopInterval: 0 });
    await expect.poll(() => loopback.sandboxes().map(({ state }) => state)).toContain("creating");
    const sandbox = await creating;
    expect(sandbox.state).toBe("started");
    expect(
      loopback.requests().filter(({ url }) => url === `/api/sandbox/${sandbox.id}`).length,
    ).toBeGreaterThan(0);
    await sandbox.delete();
  });

  it.each([
    [
      { networkAllowList: "10.0.0.0" },
      'Invalid network format: "10.0.0.0". Missing CIDR prefix length (e.g., /24)',
    ],
    [
      { networkAllowList: "::1/128" },
      'Invalid IP address: "::1" in network "::1/128". Must be a valid IPv4 address',
    ],
    [
      { networkAllowList: "10.0.0.0/33" },
      "Invalid CIDR prefix length: 10.0.0.0/33. Prefix must be between 0 and 32",
    ],
    [
      { networkAllowList: Array.from({ length: 11 }, (_, index) => `10.0.${index}.0/24`).join(",") },
      "Network allow list cannot contain more than 10 networks",
    ],
    [{ domainAllowList: "localhost" }, 'Invalid domain: "localhost". Must be a valid domain name'],
    [{ domainAllowList: "a.*.com" }, 'Invalid domain: "a.*.com". Must be a valid domain name'],
    [
      { domainAllowList: Array.from({ length: 11 }, (_, index) => `a${index}.com`).join(",") },
      "Domain allow list cannot contain more than 10 domains",
    ],
    [{ snapshot: "nowhere" }, "Snapshot nowhere not found. Did you add it through the Daytona Dashboard?"],
  ])("refuses %j", async (params, message) => {
    const { daytona, loopback } = fixture();
    // One of an earlier test may still be ending.
    const ids = () => loopback.sandboxes().map(({ id }) => id);
    const before = ids();
    await expect(daytona.create({ snapshot: "ambit", ...params })).rejects.toMatchObject({
      statusCode: 400,
      message,
    });
    expect(ids().filter((id) => !before.includes(id))).toEqual([]);
  });

  it("refuses more than the organisation's maximum", async () => {
    const { daytona } = fixture();
    await expect(daytona.create({ image: "debian:12", resources: { memory: 5 } })).rejects.toMatchObject({
      statusCode: 403,
    });
  });

  it("lists by labels in pages, without the network's limits", async () => {
    const { daytona, loopback } = fixture();
    const names = ["page-1", "page-2", "page-3"];
    const made = await Promise.all(
      names.map((name) =>
        daytona.create({
          name,
          snapshot: "ambit",
          labels: { page: "yes" },
          networkBlockAll: true,
          autoStopInterval: 0,
        }),
      ),
    );
    const found: string[] = [];
    for await (const each of daytona.list({ labels: { page: "yes" }, limit: 2 })) found.push(each.name);
    expect(found.sort()).toEqual(names);
    const response = await fetch(
      `${loopback.apiUrl}/sandbox?labels=${encodeURIComponent('{"page":"yes"}')}`,
      {
        headers: { authorization: `Bearer ${loopback.apiKey}` },
      },
    );
    expect(await response.text()).not.toContain("networkBlockAll");
    expect((await daytona.get("page-1")).networkBlockAll).toBe(true);
    await Promise.all(made.map((sandbox) => sandbox.delete()));
  });

  it("has snapshots, including the default one", async () => {
    const { daytona } = fixture();
    const { items } = await daytona.snapshot.list();
    expect(items.map(({ name }) => name)).toEqual(["daytona-small", "ambit"]);
    const snapshot = await daytona.snapshot.get("ambit");
    expect(snapshot).toMatchObject({ state: "active", cpu: 1, mem: 1, disk: 3 });
    await expect(daytona.snapshot.get("nowhere")).rejects.toMatchObject({ statusCode: 404 });
  });
});

describe("the control plane's intervals", () => {
  // Longer than the SDK takes to see that all four have started, also on a busy machine.
  const fixture = useLoopback({ minuteMs: 3_000 });

  it("stop inactive sandboxes, delete ephemeral ones, and end those past their time to live", async () => {
    const { daytona, loopback } = fixture();
    const names = () => loopback.sandboxes().map(({ name }) => name);
    const create = (name: string, params: object) => daytona.create({ name, snapshot: "ambit", ...params });
    await Promise.all([
      create("idle", { autoStopInterval: 1, autoDeleteInterval: 1_000 }),
      create("ephemeral", { autoStopInterval: 1, ephemeral: true }),
      create("short", { autoStopInterval: 0, ttlMinutes: 2 }),
      create("kept", { autoStopInterval: 1_000 }),
    ]);
    await expect.poll(names, { timeout: 30_000 }).toEqual(["idle", "kept"]);
    const states = () => loopback.sandboxes().map(({ state }) => state);
    await expect.poll(states, { timeout: 30_000 }).toEqual(["stopped", "started"]);
  });

  it("restart with every activity", async () => {
    const { daytona, loopback } = fixture();
    const sandbox = await daytona.create({ snapshot: "ambit", autoStopInterval: 1_000 });
    const last = () => loopback.sandboxes().find(({ id }) => id === sandbox.id)?.lastActivityAt ?? 0;
    for (const act of [() => sandbox.refreshActivity(), () => sandbox.process.executeCommand("true")]) {
      const before = last();
      await sleep(5);
      await sandbox.refreshData();
      expect(last()).toBe(before);
      await act();
      expect(last()).toBeGreaterThan(before);
    }
  });
});
