import { describe, expect, it } from "vitest";
import WebSocket from "ws";
import { useLoopback, useSandbox } from "./loopback.js";

/** Frames of a log stream, as they arrive. Resolves when it is closed. */
async function frames(
  url: string,
  apiKey: string,
  headers: Readonly<Record<string, string>> = { "X-Daytona-Split-Output": "true" },
): Promise<{ sizes: number[]; data: Buffer; code: number }> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${apiKey}`, ...headers } });
  const chunks: Buffer[] = [];
  socket.on("message", (data: Buffer) => chunks.push(data));
  const code = await new Promise<number>((resolve, reject) =>
    socket.once("close", resolve).once("error", reject),
  );
  return { sizes: chunks.map(({ length }) => length), data: Buffer.concat(chunks), code };
}

describe("sessions", () => {
  const fixture = useLoopback({ sessionGraceMs: 300 });
  const sandbox = useSandbox(fixture);

  let number = 0;
  async function session(): Promise<string> {
    number += 1;
    const id = `session-${number}`;
    await sandbox().process.createSession(id);
    return id;
  }

  async function begin(id: string, command: string, suppressInputEcho = true): Promise<string> {
    const request = { command, runAsync: true, suppressInputEcho };
    const { cmdId = "" } = await sandbox().process.executeSessionCommand(id, request);
    return cmdId;
  }

  /** The first input to a command, whose pipe doesn't exist yet when the response to its start arrives. */
  async function send(id: string, cmdId: string, data: string): Promise<void> {
    const sent = () =>
      sandbox()
        .process.sendSessionCommandInput(id, cmdId, data)
        .then(() => "sent", String);
    await expect.poll(sent, { timeout: 10_000 }).toBe("sent");
  }

  const exitCode = async (id: string, cmdId: string) =>
    (await sandbox().process.getSessionCommand(id, cmdId)).exitCode;
  const finished = (id: string, cmdId: string) =>
    expect.poll(() => exitCode(id, cmdId), { timeout: 10_000 }).toBeDefined();

  const logsUrl = (id: string, cmdId: string) =>
    `${sandbox().toolboxProxyUrl.replace("http", "ws")}/${sandbox().id}/process/session/${id}/command/${cmdId}/logs?follow=true`;

  it("mark every line of both streams, in frames of at most 1,024 bytes", async () => {
    const id = await session();
    const cmdId = await begin(id, "head -c 5000 /dev/zero | tr '\\0' x; echo; printf 'no newline' >&2");
    const { sizes, data, code } = await frames(logsUrl(id, cmdId), fixture().loopback.apiKey);
    expect(Math.max(...sizes)).toBe(1024);
    const text = data.toString("latin1");
    expect(text).toContain(`\x01\x01\x01${"x".repeat(5000)}\n`);
    expect(text).toContain("\x02\x02\x02no newline\n");
    expect(code).toBe(1000);
  });

  // apps/daemon/pkg/session/common.go and log.go.
  it("remove the markers for a client that neither names a version of the SDK nor requests them", async () => {
    const id = await session();
    const cmdId = await begin(id, "echo out; echo err >&2");
    const seen = async (headers: Readonly<Record<string, string>>) => {
      const { data } = await frames(logsUrl(id, cmdId), fixture().loopback.apiKey, headers);
      return data.toString("latin1").split("\n").sort().join("|");
    };
    const labelled = "|\x01\x01\x01out|\x02\x02\x02err";
    expect(await seen({})).toBe("|err|out");
    expect(await seen({ "X-Daytona-SDK-Version": "0.26.9" })).toBe("|err|out");
    expect(await seen({ "X-Daytona-SDK-Version": "0.27.0" })).toBe(labelled);
    expect(await seen({ "X-Daytona-Split-Output": "true" })).toBe(labelled);
  });

  // apps/daemon/pkg/session/input.go: it opens the command's pipe, and doesn't wait until the pipe exists.
  it("refuse input at once while its pipe doesn't exist", async () => {
    const id = await session();
    // Its second command waits for the first, and has no pipe until then.
    const first = await begin(id, "sleep 3");
    const cmdId = await begin(id, "cat");
    await expect(sandbox().process.sendSessionCommandInput(id, cmdId, "early\n")).rejects.toMatchObject({
      statusCode: 500,
      message: expect.stringContaining("failed to open input pipe"),
    });
    expect(await exitCode(id, first)).toBeUndefined();
  });

  it("end a followed log only after about fifty reads without output after the exit", async () => {
    const id = await session();
    const cmdId = await begin(id, "echo done");
    const order: string[] = [];
    const stream = frames(logsUrl(id, cmdId), fixture().loopback.apiKey).then(() =>
      order.push("stream ended"),
    );
    await finished(id, cmdId);
    order.push("command ended");
    await stream;
    expect(order).toEqual(["command ended", "stream ended"]);
  });

  it("stream from the first byte at every connection", async () => {
    const id = await session();
    const cmdId = await begin(id, "echo one; echo two");
    await finished(id, cmdId);
    const { apiKey } = fixture().loopback;
    const [first, second] = await Promise.all([
      frames(logsUrl(id, cmdId), apiKey),
      frames(logsUrl(id, cmdId), apiKey),
    ]);
    expect(first.data.toString()).toBe("\x01\x01\x01one\n\x01\x01\x01two\n");
    expect(second.data.equals(first.data)).toBe(true);
  });

  it("keep tabs, carriage returns, escapes and UTF-8, and drop NULs", async () => {
    const id = await session();
    const command = `printf 'a\\tb\\rc\\033[1m \\\\n é\\0after\\n'`;
    const { stdout } = await sandbox().process.executeSessionCommand(id, { command });
    expect(stdout).toBe("a\tb\rc\x1b[1m \\n éafter\n");
  });

  it("append a newline to input, and echo it unless that is turned off", async () => {
    const id = await session();
    const echoed = await begin(id, "read -r line; echo got:$line", false);
    await send(id, echoed, "loud");
    await finished(id, echoed);
    expect((await sandbox().process.getSessionCommandLogs(id, echoed)).stdout?.split("\n").sort()).toEqual([
      "",
      "got:loud",
      "loud",
    ]);
    const silent = await begin(id, "read -r line; echo got:$line");
    await send(id, silent, "quiet\n");
    await finished(id, silent);
    expect((await sandbox().process.getSessionCommandLogs(id, silent)).stdout).toBe("got:quiet\n");
  });

  it("never end the input of an asynchronous command, and give a synchronous one none", async () => {
    const id = await session();
    expect(await sandbox().process.executeSessionCommand(id, { command: "cat; echo over" })).toMatchObject({
      stdout: "over\n",
    });
    const cmdId = await begin(id, "cat; echo over");
    await send(id, cmdId, "line");
    const text = async () => (await sandbox().process.getSessionCommandLogs(id, cmdId)).stdout;
    await expect.poll(text).toBe("line\n");
    expect(await exitCode(id, cmdId)).toBeUndefined();
    await sandbox().process.deleteSession(id);
  });

  it("carry a line of a megabyte in both directions", async () => {
    const id = await session();
    const cmdId = await begin(id, "head -n 1 | wc -c; head -n 1");
    const line = "é".repeat(500_000);
    await send(id, cmdId, line);
    await send(id, cmdId, line);
    await finished(id, cmdId);
    expect((await sandbox().process.getSessionCommandLogs(id, cmdId)).stdout).toBe(`1000001\n${line}\n`);
  });

  it("keep variables and folder between commands", async () => {
    const id = await session();
    await sandbox().process.executeSessionCommand(id, { command: "cd /tmp; KEPT=yes" });
    const { stdout } = await sandbox().process.executeSessionCommand(id, { command: 'echo "$PWD $KEPT"' });
    expect(stdout).toBe("/tmp yes\n");
  });

  // libs/common-go/pkg/errors/middleware.go has the codes, apps/daemon/pkg/session/input.go the conditions.
  it("refuse a second session with an id, input to an ended command, and unknown ids", async () => {
    const id = await session();
    const { process } = sandbox();
    await expect(process.createSession(id)).rejects.toMatchObject({ statusCode: 409, code: "CONFLICT" });
    const cmdId = await begin(id, "true");
    await finished(id, cmdId);
    await expect(process.sendSessionCommandInput(id, cmdId, "late")).rejects.toMatchObject({
      statusCode: 410,
      code: "GONE",
    });
    await expect(process.getSession("nowhere")).rejects.toMatchObject({ statusCode: 404 });
    await expect(process.getSessionCommand(id, "nothing")).rejects.toMatchObject({ statusCode: 404 });
    await expect(process.executeSessionCommand("nowhere", { command: "true" })).rejects.toMatchObject({
      statusCode: 500,
      message: expect.stringMatching(/failed to execute command: .*session not found/),
    });
  });

  it("notice the end of a command only by its pipe until a client asks for its exit code", async () => {
    const id = await session();
    const { process } = sandbox();
    const cmdId = await begin(id, "read -r line");
    await send(id, cmdId, "line");
    const late = () => process.sendSessionCommandInput(id, cmdId, "late").catch((error) => error.statusCode);
    // Input between the command's end and the removal of its pipe gets no response.
    await frames(logsUrl(id, cmdId), fixture().loopback.apiKey);
    expect(await late()).toBe(500);
    await finished(id, cmdId);
    expect(await late()).toBe(410);
    const ended = await session();
    const exits = await begin(ended, "exit 3");
    const start = () => process.executeSessionCommand(ended, { command: "true", runAsync: true });
    await expect
      .poll(() => start().catch((error) => error.message), { timeout: 10_000 })
      .toContain("failed to write command");
    await expect(process.sendSessionCommandInput(ended, exits, "x")).rejects.toMatchObject({
      statusCode: 500,
      message: expect.stringContaining("failed to open input pipe"),
    });
  });

  // apps/daemon/pkg/session/delete.go kills the group first, and then finds no descendants of its leader.
  it("end the group of a deleted session; what left it and ignores SIGTERM stays", async () => {
    const { process } = sandbox();
    const running = async (program: string) =>
      (await process.executeCommand(`pgrep -c -x -f '${program}'`)).result.trim();
    const id = await session();
    await begin(id, "while :; do sleep 4204; done");
    await expect.poll(() => running("sleep 4204"), { timeout: 10_000 }).toBe("1");
    await process.deleteSession(id);
    await expect.poll(() => running("sleep 4204")).toBe("0");

    const stubborn = await session();
    await begin(stubborn, "trap '' TERM; setsid sleep 4201 & while :; do sleep 4202; done");
    await expect.poll(() => running("sleep 420[12]"), { timeout: 10_000 }).toBe("2");
    await process.deleteSession(stubborn);
    await expect.poll(() => running("sleep 4202")).toBe("0");
    expect(await running("sleep 4201")).toBe("1");
    await process.executeCommand("pkill -KILL -x -f 'sleep 4201'");
  });

  it("kill a command after its timeout, with its whole group", async () => {
    const { process } = sandbox();
    await expect(
      process.executeCommand("sleep 4301 & sleep 4302", undefined, undefined, 1),
    ).rejects.toMatchObject({
      statusCode: 408,
      code: "REQUEST_TIMEOUT",
    });
    expect((await process.executeCommand("pgrep -c -x -f 'sleep 430[12]'")).result.trim()).toBe("0");
  });
});
