import { describe, expect, it } from "vitest";
import { connect, useLoopback } from "./loopback.js";

describe("faults", () => {
  const fixture = useLoopback();

  it("include 429, with headers that say when to retry, for a number of requests", async () => {
    const { daytona, loopback } = fixture();
    loopback.faults.answer({ method: "POST", path: "/api/sandbox", status: 429, times: 2 });
    for (let times = 0; times < 2; times += 1) {
      const error = await daytona.create({ snapshot: "ambit" }).catch((reason) => reason);
      expect(error).toMatchObject({ statusCode: 429 });
      expect(error.headers["retry-after-sandbox-create"]).toBe("1");
      expect(error.headers["x-ratelimit-limit-sandbox-create"]).toBe("300");
    }
    await (await daytona.create({ snapshot: "ambit" })).delete();
  });

  it.each([401, 403, 404, 408, 409, 410, 422, 500, 502, 503])("include %i", async (status) => {
    const { daytona, loopback } = fixture();
    loopback.faults.answer({ path: /^\/api\/sandbox/, status, message: "as asked" });
    await expect(daytona.get("whatever")).rejects.toMatchObject({ statusCode: status, message: "as asked" });
  });

  it("include a lost response to a successful create", async () => {
    const { daytona, loopback } = fixture();
    loopback.faults.answer({ method: "POST", path: "/api/sandbox", status: 502, afterwards: true });
    await expect(daytona.create({ name: "lost", snapshot: "ambit" })).rejects.toMatchObject({
      statusCode: 502,
    });
    const sandbox = await daytona.get("lost");
    await sandbox.waitUntilStarted();
    await sandbox.delete();
  });

  it("include a cut connection", async () => {
    const { daytona, loopback } = fixture();
    loopback.faults.answer({ method: "POST", path: "/api/sandbox", status: "cut", times: 9 });
    await expect(daytona.create({ name: "cut", snapshot: "ambit" })).rejects.toMatchObject({
      name: "DaytonaConnectionError",
    });
    loopback.faults.clear();
    expect(loopback.sandboxes().map(({ name }) => name)).not.toContain("cut");
  });

  it("include a sandbox that never starts", async () => {
    const { daytona, loopback } = fixture();
    loopback.faults.nextSandbox("never_starts");
    await expect(daytona.create({ name: "never", snapshot: "ambit" }, { timeout: 1 })).rejects.toThrow(
      /timeout|within/,
    );
    const sandbox = await daytona.get("never");
    expect(sandbox.state).toBe("creating");
    // apps/api/src/sandbox/services/sandbox.service.ts: nothing is deleted while its state changes.
    await expect(sandbox.delete()).rejects.toMatchObject({
      statusCode: 409,
      message: "Sandbox state change in progress",
    });
    await expect
      .poll(() => sandbox.delete().then(() => "deleted", String), { timeout: 10_000 })
      .toBe("deleted");
    await expect.poll(() => loopback.sandboxes()).toEqual([]);
  });

  it("include a sandbox that fails, with its reason", async () => {
    const { daytona, loopback } = fixture();
    loopback.faults.nextSandbox("error");
    await expect(daytona.create({ name: "failed", snapshot: "ambit" })).rejects.toMatchObject({
      message: "Sandbox failed to start: Failed to start the container",
    });
    expect(loopback.sandboxes()).toMatchObject([{ name: "failed", state: "error" }]);
    await (await daytona.get("failed")).delete();
    loopback.faults.nextSandbox("build_failed");
    await expect(daytona.create({ name: "unbuilt", image: "debian:12" })).rejects.toThrow(/build_failed/);
    await (await daytona.get("unbuilt")).delete();
  });

  it("include a sandbox that stops during a run: its log streams end without a message, and its toolbox is gone", async () => {
    const { daytona, loopback } = fixture();
    const sandbox = await daytona.create({ snapshot: "ambit", name: "stops" });
    await sandbox.process.createSession("s");
    const { cmdId = "" } = await sandbox.process.executeSessionCommand("s", {
      command: "echo up; sleep 60",
      runAsync: true,
    });
    let text = "";
    const followed = sandbox.process.getSessionCommandLogs(
      "s",
      cmdId,
      (chunk) => {
        text += chunk;
      },
      () => {},
    );
    await expect.poll(() => text).toBe("up\n");
    await loopback.faults.stop("stops");
    await followed;
    await expect(sandbox.process.executeCommand("true")).rejects.toMatchObject({ statusCode: 400 });
    await sandbox.refreshData();
    expect(sandbox.state).toBe("stopped");
    await sandbox.delete();
  });

  it("include a crashed sandbox", async () => {
    const { daytona, loopback } = fixture();
    const sandbox = await daytona.create({ snapshot: "ambit" });
    await loopback.faults.crash(sandbox.id);
    await sandbox.refreshData();
    expect(sandbox).toMatchObject({ state: "error", errorReason: "Sandbox container exited unexpectedly" });
    await sandbox.delete();
  });

  it("include cut log streams, which start again at the first byte", async () => {
    const { daytona, loopback } = fixture();
    const sandbox = await daytona.create({ snapshot: "ambit" });
    await sandbox.process.createSession("s");
    const { cmdId = "" } = await sandbox.process.executeSessionCommand("s", {
      command: "echo first; read -r line; echo $line",
      runAsync: true,
      suppressInputEcho: true,
    });
    const texts = ["", ""];
    const follow = (number: number) =>
      sandbox.process.getSessionCommandLogs(
        "s",
        cmdId,
        (chunk) => {
          texts[number] += chunk;
        },
        () => {},
      );
    const first = follow(0);
    await expect.poll(() => texts[0]).toBe("first\n");
    expect(loopback.faults.cutLogStreams()).toBe(1);
    await first;
    const second = follow(1);
    await sandbox.process.sendSessionCommandInput("s", cmdId, "second");
    await second;
    expect(texts).toEqual(["first\n", "first\nsecond\n"]);
    await sandbox.delete();
  });

  it("include an expired key, for requests and streams, and no other key is valid", async () => {
    const { daytona, loopback } = fixture();
    const stranger = connect({ apiUrl: loopback.apiUrl, apiKey: "another" });
    await expect(stranger.get("x")).rejects.toMatchObject({ statusCode: 401 });
    await stranger[Symbol.asyncDispose]();
    const sandbox = await daytona.create({ snapshot: "ambit" });
    loopback.faults.expireKey();
    await expect(daytona.get(sandbox.id)).rejects.toMatchObject({ statusCode: 401 });
    await expect(sandbox.process.executeCommand("true")).rejects.toMatchObject({ statusCode: 401 });
    loopback.faults.renewKey();
    await sandbox.delete();
  });
});
