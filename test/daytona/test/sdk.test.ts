import { describe, expect, it } from "vitest";
import { useLoopback } from "./loopback.js";

describe("the official SDK, from create to delete", () => {
  const fixture = useLoopback({ startDelayMs: 50 });

  it("uses a sandbox from an image", async () => {
    const { daytona, loopback } = fixture();
    const sandbox = await daytona.create({
      name: "life",
      image: "node:22",
      resources: { cpu: 2, memory: 2, disk: 1 },
      envVars: { GREETING: "hello" },
      labels: { run: "r1", owner: "test" },
      autoStopInterval: 15,
      ttlMinutes: 60,
    });
    expect(sandbox).toMatchObject({ name: "life", state: "started", cpu: 2, memory: 2, disk: 1 });
    expect(sandbox.labels).toMatchObject({ run: "r1", owner: "test" });

    const done = await sandbox.process.executeCommand(
      "echo $GREETING $MORE; echo oops >&2; exit 3",
      undefined,
      {
        MORE: "there",
      },
    );
    expect(done).toMatchObject({ exitCode: 3, result: "hello there\noops\n" });

    await sandbox.process.createSession("s1");
    const both = await sandbox.process.executeSessionCommand("s1", { command: "echo out; echo err >&2" });
    expect(both).toMatchObject({ exitCode: 0, stdout: "out\n", stderr: "err\n" });
    const { cmdId = "" } = await sandbox.process.executeSessionCommand("s1", {
      command: "read -r line; echo got $line",
      runAsync: true,
      suppressInputEcho: true,
    });
    // The command's pipe doesn't exist yet when the response to its start arrives.
    const sent = () =>
      sandbox.process.sendSessionCommandInput("s1", cmdId, "ping").then(() => "sent", String);
    await expect.poll(sent, { timeout: 10_000 }).toBe("sent");
    let followed = "";
    await sandbox.process.getSessionCommandLogs(
      "s1",
      cmdId,
      (text) => {
        followed += text;
      },
      () => {},
    );
    expect(followed).toBe("got ping\n");
    expect(await sandbox.process.getSessionCommand("s1", cmdId)).toMatchObject({ exitCode: 0 });
    await sandbox.process.deleteSession("s1");

    await sandbox.fs.createFolder("w", "755");
    await sandbox.fs.uploadFile(Buffer.from("content"), "w/a.txt");
    expect((await sandbox.fs.downloadFile("w/a.txt")).toString()).toBe("content");

    expect(await sandbox.setLabels({ only: "this" })).toEqual({ only: "this" });
    const listed = [];
    for await (const each of daytona.list({ labels: { only: "this" } })) listed.push(each.id);
    expect(listed).toEqual([sandbox.id]);

    await sandbox.refreshActivity();
    await sandbox.setTtl(30);
    await sandbox.setAutostopInterval(5);
    await sandbox.stop();
    expect(sandbox.state).toBe("stopped");
    await sandbox.start();
    expect((await sandbox.fs.downloadFile("w/a.txt")).toString()).toBe("content");
    await sandbox.delete(60, true);
    await expect(daytona.get("life")).rejects.toMatchObject({ statusCode: 404 });
    expect(loopback.sandboxes()).toEqual([]);
  });

  it("polls instead of listening to events, because there is no socket.io", async () => {
    const { loopback } = fixture();
    const events = loopback.requests().filter(({ url }) => url.startsWith("/api/socket.io/"));
    expect(events.length).toBeGreaterThan(0);
    expect(new Set(events.map(({ status }) => status))).toEqual(new Set([404]));
  });
});
