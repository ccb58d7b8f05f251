import { HarnessFailed, SandboxFailed } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { expect, test } from "vitest";
import { limitsHint, memoryWarning, namingLimits, unlessStarved } from "../src/session/start-agent.js";

test("an agent that doesn't start names the limits that the request set", () => {
  const failure = new HarnessFailed("the demo agent ended with exit code 137 during initialize.");
  expect(namingLimits(failure, { memoryMb: 8, processes: 4 })).toMatchObject({
    code: "harness_failed",
    message:
      "the demo agent ended with exit code 137 during initialize. The request allows it 8 MiB of memory (resources.memoryMb), 4 processes and threads (resources.processes): if the agent needs more, raise that.",
    cause: failure,
  });
  expect(namingLimits(failure, {})).toBe(failure);
  const other = new SandboxFailed("no room");
  expect(namingLimits(other, { memoryMb: 8 })).toBe(other);
});

const times = { lookMs: 1, graceMs: 20 };
const sandboxWith = (hits: () => number) =>
  ({ limitHits: () => ({ processes: hits(), memory: 0 }) }) as Partial<Sandbox> as Sandbox;
const never = () => new Promise<never>(() => {});

test("a start that waits for a thread that its limit refused ends, and names the limit", async () => {
  let hits = 3;
  const starting = unlessStarved(
    sandboxWith(() => hits++),
    { processes: 8 },
    never,
    times,
  );
  await expect(starting).rejects.toMatchObject({
    code: "harness_failed",
    message: expect.stringContaining("limit of 8 processes and threads (resources.processes) is reached"),
  });
});

test("a start that needs no further thread isn't ended, nor one whose limits aren't known", async () => {
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve, 60));
    return "started";
  };
  expect(
    await unlessStarved(
      sandboxWith(() => 3),
      { processes: 8 },
      slow,
      times,
    ),
  ).toBe("started");
  let hits = 0;
  expect(
    await unlessStarved(
      sandboxWith(() => hits++),
      {},
      slow,
      times,
    ),
  ).toBe("started");
  expect(await unlessStarved({} as Partial<Sandbox> as Sandbox, { processes: 8 }, slow, times)).toBe(
    "started",
  );
  const quick = () => Promise.resolve("started");
  expect(
    await unlessStarved(
      sandboxWith(() => hits++),
      { processes: 8 },
      quick,
      times,
    ),
  ).toBe("started");
});

test("a start that takes too long names the limits that it had", () => {
  expect(limitsHint({ processes: 8 })).toBe(
    " The request allows it 8 processes and threads (resources.processes): if the agent needs more, raise that.",
  );
  expect(limitsHint({})).toBe("");
});

test("a turn in which the system killed processes for memory has a warning that names the limit", () => {
  const hits = (memory: number) => ({ processes: 0, memory });
  const warningOf = (before: number, after: number, limits = {}) =>
    memoryWarning(hits(before), hits(after), limits)?.message;
  expect(warningOf(1, 1, { memoryMb: 64 })).toBeUndefined();
  expect(memoryWarning(undefined, undefined, { memoryMb: 64 })).toBeUndefined();
  expect(warningOf(1, 2, { memoryMb: 64 })).toMatch(
    /^A process was killed .* 64 MiB \(resources\.memoryMb\)/,
  );
  expect(warningOf(0, 3)).toMatch(/^3 processes were killed .* its sandbox's limit\./);
});
