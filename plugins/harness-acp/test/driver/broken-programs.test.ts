import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HarnessFailed, RunTimedOut } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AcpHarness } from "../../src/index.js";
import { demo } from "../../src/profiles/demo.js";
import { ProcessSandbox } from "../support/process-sandbox.js";
import { failureOf, TestScope, turnOf } from "../support/runs.js";

const limits = { cancelMs: 500, closeMs: 500, messageCharacters: 1_000_000, bufferedCharacters: 8_192 };

let sandbox: ProcessSandbox;
beforeEach(async () => {
  sandbox = await ProcessSandbox.open();
});
afterEach(() => sandbox.close());

/** Starts a program of a few lines instead of the demo agent. */
async function startProgram(source: string) {
  const command = join(sandbox.folder, "program.mjs");
  await writeFile(command, source);
  const harness = new AcpHarness(demo, { limits, folder: import.meta.dirname, env: {}, command });
  const scope = new TestScope(sandbox);
  return { scope, starting: harness.start(scope) };
}

async function failureToStart(source: string): Promise<unknown> {
  const { scope, starting } = await startProgram(source);
  const failure = await starting.then(
    () => new Error("it started"),
    (error: unknown) => error,
  );
  await Promise.all(sandbox.spawned.map(({ exit }) => exit));
  await scope.close();
  return failure;
}

const answering = `
import { createInterface } from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const answers = { initialize: { protocolVersion: 1 }, "session/new": { sessionId: "s" } };
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (answers[method]) send({ id, result: answers[method] });
});`;

describe("a program that isn't a working agent", () => {
  it.each([
    { what: "exits at once", source: "process.exit(7)", says: "exit code 7" },
    { what: "can't be read", source: "this is no JavaScript", says: "exit code 1" },
    {
      what: "ends its output",
      source: "import { closeSync } from 'node:fs'; closeSync(1); setInterval(() => {}, 1e6)",
      says: "closed its output",
    },
    {
      what: "prints a banner and exits",
      source: "console.log('Welcome!'); process.exitCode = 2",
      says: "exit code 2 during initialize; the runner's log has its last output. Its last output that isn't ACP: \"Welcome!\".",
    },
    {
      what: "never ends its first line",
      source: "setInterval(() => process.stdout.write('x'.repeat(1e6)), 1)",
      says: "1,000,000 characters",
    },
  ])("$what: fails clearly and leaves nothing", async ({ source, says }) => {
    const failure = await failureToStart(source);
    expect(failure).toBeInstanceOf(HarnessFailed);
    expect(failure).toMatchObject({ message: expect.stringContaining(says) });
  });

  it("prints nothing: its start ends with the run's own reason", async () => {
    const { scope, starting } = await startProgram("setInterval(() => {}, 1e6)");
    await expect.poll(() => sandbox.spawned.length).toBe(1);
    scope.stop(new RunTimedOut("Starting the agent took longer than 60 s."));
    await expect(starting).rejects.toThrow("longer than 60 s");
    expect(await sandbox.spawned[0]?.exit).toMatchObject({ signal: "SIGKILL" });
    await scope.close();
  });

  it("prints other things only: a start that takes too long says so, and isn't worth another try", async () => {
    const { scope, starting } = await startProgram(
      `process.stdout.write("Set FOO_KEY first.\\n${"word ".repeat(100)}\\n"); setInterval(() => {}, 1e6)`,
    );
    await expect.poll(() => scope.whyLate()?.sentence).toContain("word");
    expect(scope.whyLate()).toEqual({
      sentence: expect.stringMatching(
        /^No message of ACP came from the demo agent\. Its last output that isn't ACP: "Set FOO_KEY first\.", "(word )+…"\.$/,
      ),
      retryable: false,
    });
    scope.stop(new RunTimedOut("too long"));
    await expect(starting).rejects.toThrow("too long");
    await scope.close();
  });

  it("speaks ACP after a log text on the same line", async () => {
    const { scope, starting } = await startProgram(
      answering.replace("process.stdout.write(", 'process.stdout.write("Loading… " + '),
    );
    expect((await starting).conversation).toBe("s");
    expect(scope.whyLate()).toEqual({
      sentence: `Its last output that isn't ACP: "Loading…", "Loading…".`,
      retryable: true,
    });
    await scope.close();
  });

  it("logs its last output, without passing it to the caller", async () => {
    const failure = await failureToStart("console.error('sk-secret'); process.exit(1)");
    expect(String(failure)).not.toContain("sk-secret");
    expect(failure).toMatchObject({ cause: { message: expect.stringContaining("sk-secret") } });
  });

  it("closes its input: the prompt fails, and the runner continues", async () => {
    const command = join(sandbox.folder, "closes-its-input");
    const answer = (id: number, result: object) => `echo '${JSON.stringify({ jsonrpc: "2.0", id, result })}'`;
    const lines = [
      "#!/bin/sh",
      "read -r initialize",
      answer(0, { protocolVersion: 1 }),
      "read -r new_session",
      "exec 0<&-",
      answer(1, { sessionId: "s" }),
      "sleep 1000",
    ];
    await writeFile(command, lines.join("\n"), { mode: 0o755 });
    const harness = new AcpHarness(demo, { limits, folder: import.meta.dirname, env: {}, command });
    const scope = new TestScope(sandbox);
    const agent = await harness.start(scope);
    const { error } = await failureOf(agent, turnOf({ prompt: "x".repeat(1_000_000) }));
    expect(error).toBeInstanceOf(HarnessFailed);
    expect(error).toMatchObject({ message: expect.stringContaining("closed its input") });
    await scope.close();
    await Promise.all(sandbox.spawned.map(({ exit }) => exit));
  });

  it("can't be executed: the error names it", async () => {
    const command = join(sandbox.folder, "not-executable");
    await writeFile(command, "#!/bin/sh\n", { mode: 0o644 });
    const harness = new AcpHarness(demo, { limits, folder: import.meta.dirname, env: {}, command });
    const starting = harness.start(new TestScope(sandbox));
    await expect(starting).rejects.toBeInstanceOf(HarnessFailed);
    await expect(starting).rejects.toThrow("not-executable");
  });

  it("is killed with everything it started when the run ends, although it ignores signals", async () => {
    const { scope, starting } = await startProgram(
      `process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6);${answering}`,
    );
    await starting;
    await scope.close();
    expect(await sandbox.spawned[0]?.exit).toMatchObject({ signal: "SIGKILL" });
  });
});
