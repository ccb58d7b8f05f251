import { CommandExecuted } from "@ambit/core";
import type { RunRequest, RunResult } from "@ambit/core/contract";
import { expect, test } from "vitest";
import { Commands } from "../../src/admission/commands.js";
import { RememberedAnswers } from "../../src/call/answer.js";
import { SessionSpending } from "../../src/model/budget.js";

const commandOf = (projectId: string, id: string) => ({
  request: requestOf(projectId, {}),
  command: { field: "commandId", id },
});
const requestOf = (projectId: string, of: Partial<RunRequest>) => ({ projectId, ...of }) as RunRequest;

test("a project that names many sessions loses its own spending, and no other project's", () => {
  const spending = new SessionSpending();
  const of = (project: string, sessionId: string) => spending.of(requestOf(project, { sessionId })).spent;
  const [quiet, first] = [of("quiet", "s"), of("busy", "0")];
  for (let index = 1; index <= 10_000; index += 1) of("busy", String(index));
  expect(of("quiet", "s")).toBe(quiet);
  expect(of("busy", "0")).not.toBe(first);
});

test("a project that uses many answers forgets its own, and no other project's", async () => {
  const answers = new RememberedAnswers();
  const use = (project: string, id: string) => answers.claim({ project, id }, "run");
  expect(await use("quiet", "a")).toBe(true);
  for (let index = 0; index <= 65_536; index += 1) await use("busy", String(index));
  expect(await use("quiet", "a")).toBe(false);
  expect(await use("busy", "0")).toBe(true);
});

test("a project that sends many commands is refused, and no other project", () => {
  const commands = new Commands();
  const execution = { ended: new Promise(() => {}), stage: "started", result: undefined } as const;
  const send = (project: string, id: string) => {
    const command = commandOf(project, id);
    commands.require(command);
    commands.begun(command, execution);
  };
  for (let index = 0; index < 5_000; index += 1) send("busy", String(index));
  expect(() => send("busy", "more")).toThrow(/of this project/);
  expect(() => send("quiet", "c")).not.toThrow();
});

test("a project whose commands have large results loses its own, and no other project's", async () => {
  const commands = new Commands();
  const execute = async (projectId: string, id: string, output: string) => {
    const command = commandOf(projectId, id);
    const result: RunResult = { ok: true, runId: id, output, events: [] };
    commands.begun(command, { ended: Promise.resolve(), stage: "started", result });
    return command;
  };
  const keptOf = async (command: ReturnType<typeof commandOf>) => {
    try {
      commands.require(command);
    } catch (error) {
      if (error instanceof CommandExecuted) return (await error.result)?.output?.length;
      throw error;
    }
    return "not remembered";
  };
  const quiet = await execute("quiet", "c", "mine");
  const busy: ReturnType<typeof commandOf>[] = [];
  for (let index = 0; index < 20; index += 1)
    busy.push(await execute("busy", String(index), "x".repeat(1024 * 1024)));
  const [first, last] = [busy[0], busy.at(-1)];
  if (first === undefined || last === undefined) throw new Error("nothing was executed");
  await expect.poll(() => keptOf(last)).toBe(1024 * 1024);
  expect(await keptOf(first)).toBeUndefined();
  expect(await keptOf(quiet)).toBe(4);
});
