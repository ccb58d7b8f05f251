import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { play, startDemo, temporaryFolder, toolCalls } from "./demo-process.js";

/** A zombie counts as dead: its new parent may reap it later. */
function alive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^Z/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch (error) {
    // ESRCH: it ended between open and read.
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH"))
      return false;
    throw error;
  }
}

function pidIn(text: string): number {
  const pid = Number(/\d+/.exec(text)?.[0]);
  expect(pid).toBeGreaterThan(1);
  return pid;
}

/** Waits for the file that the command under test writes its child's id to. */
async function writtenPid(home: string): Promise<number> {
  const file = join(home, "pid");
  await expect.poll(() => readFile(file, "utf8").catch(() => "not yet")).toMatch(/^\d+\n/);
  return pidIn(await readFile(file, "utf8"));
}

test("fail is a JSON-RPC error, and the next prompt works", async () => {
  const demo = await startDemo();
  const session = await demo.newSession();
  await expect(demo.prompt(session, "say before\nfail out of luck\nsay never")).rejects.toMatchObject({
    code: -32603,
    message: "out of luck",
  });
  await demo.prompt(session, "say after");
  expect(demo.said()).toBe("beforeafter");
});

test("crash ends the process with 1 and its text on stderr", async () => {
  const demo = await startDemo();
  const answer = demo.prompt(await demo.newSession(), "crash out of memory");
  await expect(answer).rejects.toThrow();
  expect(await demo.exited).toBe(1);
  await expect.poll(() => demo.stderr()).toBe("out of memory\n");
});

test.each([
  "hang",
  "sleep 600000",
  "run sleep 600",
  "stream 100000000",
  "ask may I",
  "& hang\n& run sleep 600",
])("session/cancel stops %j, and the next prompt works", async (line) => {
  const demo = await startDemo({ answer: "silence" });
  const sessionId = await demo.newSession();
  const answer = demo.prompt(sessionId, `think started\n${line}\nsay never`);
  await demo.seen((update) => update.sessionUpdate === "agent_thought_chunk");
  await demo.agent.notify("session/cancel", { sessionId });
  expect(await answer).toMatchObject({ stopReason: "cancelled" });
  expect(demo.said()).not.toContain("never");
  expect(await demo.prompt(sessionId, "say next")).toMatchObject({ stopReason: "end_turn" });
  expect(demo.said()).toContain("next");
});

test("cancelling a command ends what its shell started as well", async () => {
  const home = await temporaryFolder();
  const demo = await startDemo({ home });
  const sessionId = await demo.newSession();
  const answer = demo.prompt(sessionId, "run sleep 600 & echo $! > pid; wait");
  const pid = await writtenPid(home);
  expect(alive(pid)).toBe(true);
  await demo.agent.notify("session/cancel", { sessionId });
  await answer;
  await expect.poll(() => alive(pid)).toBe(false);
});

test.each(["end of input", "SIGTERM"])("%s ends the process and its commands, during a turn", async (how) => {
  const home = await temporaryFolder();
  const demo = await startDemo({ home });
  const answer = demo.prompt(await demo.newSession(), "run sleep 600 & echo $! > pid; wait");
  const pid = await writtenPid(home);
  if (how === "SIGTERM") demo.child.kill("SIGTERM");
  else demo.child.stdin?.end();
  await expect(answer).rejects.toThrow();
  expect(await demo.exited).toBe(how === "SIGTERM" ? 143 : 0);
  await expect.poll(() => alive(pid)).toBe(false);
});

test("a client that stops reading and disconnects causes no stack on stderr", async () => {
  const demo = await startDemo();
  demo.prompt(await demo.newSession(), "stream 100000000").catch(() => undefined);
  await demo.seen((update) => update.sessionUpdate === "agent_message_chunk");
  demo.child.stdout?.destroy();
  expect(await demo.exited).toBe(0);
  expect(demo.stderr()).toBe("");
});

test("deaf outlives cancel, end of input, a closed stdout and SIGTERM; SIGKILL ends it", async () => {
  const demo = await startDemo();
  const sessionId = await demo.newSession();
  let answered = false;
  demo.prompt(sessionId, "say ready\ndeaf").then(
    () => {
      answered = true;
    },
    () => undefined,
  );
  await demo.seen((update) => update.sessionUpdate === "agent_message_chunk");
  await demo.agent.notify("session/cancel", { sessionId });
  // Shows that the cancellation was read: requests are answered in order of arrival.
  await demo.newSession();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) demo.child.kill(signal);
  demo.child.stdin?.end();
  demo.child.stdout?.destroy();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(answered).toBe(false);
  expect([demo.child.exitCode, demo.child.signalCode]).toEqual([null, null]);
  demo.child.kill("SIGKILL");
  expect(await demo.exited).toBe("SIGKILL");
});

test("noise reaches stdout between the frames, which all survive", async () => {
  const demo = await startDemo();
  const session = await demo.newSession();
  let raw = "";
  demo.child.stdout?.on("data", (bytes: Buffer) => {
    raw += bytes.toString();
  });
  expect(await demo.prompt(session, "say a\nnoise\nsay b")).toMatchObject({ stopReason: "end_turn" });
  expect(demo.said()).toBe("a\nb");
  expect(raw).toContain("this line is not JSON\n");
});

test("detach leaves a process that ignores SIGTERM and outlives the agent", async () => {
  const { demo } = await play("detach 60");
  const pid = pidIn(demo.said());
  onTestFinished(() => {
    if (alive(pid)) process.kill(pid, "SIGKILL");
  });
  process.kill(pid, "SIGTERM");
  process.kill(pid, "SIGHUP");
  demo.child.stdin?.end();
  expect(await demo.exited).toBe(0);
  expect(alive(pid)).toBe(true);
  process.kill(pid, "SIGKILL");
  await expect.poll(() => alive(pid)).toBe(false);
});

test("session/load in a new process replays the conversation before it answers", async () => {
  const home = await temporaryFolder();
  const first = await startDemo({ home });
  const sessionId = await first.newSession();
  await first.prompt(sessionId, "say one\nsay two\nthink hm\nrun echo hi");
  await first.prompt(sessionId, "say three");
  first.child.stdin?.end();
  await first.exited;

  const second = await startDemo({ home });
  await second.agent.request("session/load", { sessionId, cwd: home, mcpServers: [] });
  const [call] = toolCalls(first.updates);
  expect(second.updates).toMatchObject([
    { sessionUpdate: "user_message_chunk", content: { text: "say one\nsay two\nthink hm\nrun echo hi" } },
    { sessionUpdate: "agent_message_chunk", content: { text: "one\ntwo" } },
    { sessionUpdate: "agent_thought_chunk", content: { text: "hm" } },
    { sessionUpdate: "tool_call", title: call?.title, status: "completed", content: call?.content },
    { sessionUpdate: "user_message_chunk", content: { text: "say three" } },
    { sessionUpdate: "agent_message_chunk", content: { text: "three" } },
  ]);
  second.updates.length = 0;
  await second.prompt(sessionId, "recall");
  expect(JSON.parse(second.said())).toEqual(["say one\nsay two\nthink hm\nrun echo hi", "say three"]);

  const third = await startDemo({ home });
  await third.agent.request("session/resume", { sessionId, cwd: home, mcpServers: [] });
  expect(third.updates).toEqual([]);
  await third.prompt(sessionId, "recall");
  expect(JSON.parse(third.said())).toHaveLength(3);
});

test.each(["../../../etc/passwd", "00000000-0000-4000-8000-000000000000"])(
  "session/load of %s is refused",
  async (id) => {
    const demo = await startDemo();
    await expect(
      demo.agent.request("session/load", { sessionId: id, cwd: "/", mcpServers: [] }),
    ).rejects.toMatchObject({ code: -32002 });
  },
);

test("session/close cancels the turn and forgets the session", async () => {
  const demo = await startDemo();
  const sessionId = await demo.newSession();
  const answer = demo.prompt(sessionId, "hang");
  await demo.agent.request("session/close", { sessionId });
  expect(await answer).toMatchObject({ stopReason: "cancelled" });
  await expect(demo.prompt(sessionId, "say hi")).rejects.toMatchObject({ code: -32002 });
});

test("a second prompt in a running session is refused", async () => {
  const demo = await startDemo();
  const sessionId = await demo.newSession();
  const answer = demo.prompt(sessionId, "hang");
  await expect(demo.prompt(sessionId, "say hi")).rejects.toMatchObject({ code: -32600 });
  await demo.agent.notify("session/cancel", { sessionId });
  expect(await answer).toMatchObject({ stopReason: "cancelled" });
});

test("a home that can't be written only prevents saving", async () => {
  const demo = await startDemo({ environment: { HOME: "/dev/null" } });
  await demo.prompt(await demo.newSession(), "say hi");
  expect(demo.said()).toBe("hi");
  expect(demo.stderr()).toContain("The session isn't saved: ");
  demo.child.stdin?.end();
  await once(demo.child, "close");
});

test("a relative folder is refused", async () => {
  const demo = await startDemo();
  await expect(demo.agent.request("session/new", { cwd: "here", mcpServers: [] })).rejects.toMatchObject({
    code: -32602,
  });
});

test("the user's answer continues a cancelled script with the step that was under way, and another script doesn't", async () => {
  const home = await temporaryFolder();
  const demo = await startDemo({ home });
  const sessionId = await demo.newSession();
  const script = "say before\nrun test -e begun || { touch begun; sleep 600; }\nsay after";
  const answer = demo.prompt(sessionId, script);
  await expect.poll(() => existsSync(join(home, "begun"))).toBe(true);
  await demo.agent.notify("session/cancel", { sessionId });
  await answer;
  const answered = "The user has answered what your last turn was waiting for.";
  await demo.prompt(sessionId, answered);
  expect(demo.said()).toBe("beforeafter");
  expect(toolCalls(demo.updates)).toHaveLength(2);
  // It came to its end.
  await demo.prompt(sessionId, answered);
  expect(demo.said()).toContain("I am Ambit's demo agent");
});
