import { describe, expect, it } from "vitest";
import { findingsOf, Inconclusive, NotProven, runInTurn, runTrial, type Trial } from "../src/probe/index.js";

const claims = ["network.deny", "process.contained"] as const;
type Claim = (typeof claims)[number];
const trial = (run: Trial<unknown, Claim>["run"], shows: readonly Claim[] = claims) => ({ shows, run });
const found = async (...trials: Trial<unknown, Claim>[]) =>
  findingsOf(
    claims,
    await Promise.all(trials.map((one) => runTrial(one, undefined))),
    () => "the backend's fix",
  );

describe("a claim", () => {
  it("is proven if every trial for it succeeded", async () => {
    const one = trial(async () => ({ "network.deny": "a", "process.contained": "b" }));
    const two = trial(async () => ({ "network.deny": "c" }), ["network.deny"]);
    expect(await found(one, two)).toEqual([
      { capability: "network.deny", proven: true, how: "a; c" },
      { capability: "process.contained", proven: true, how: "b" },
    ]);
  });

  it.each([
    ["no trial shows it", [], "nothing was tried", "the backend's fix"],
    ["a trial says nothing of it", [trial(async () => ({}))], "nothing was seen of it", "the backend's fix"],
    ["a trial fails", [trial(() => Promise.reject(new Error("broken")))], "broken", "the backend's fix"],
    [
      "a trial fails with an error that ends with the fix",
      [trial(() => Promise.reject(new Error("broken: the backend's fix")))],
      "broken",
      "the backend's fix",
    ],
    ["a trial throws no error", [trial(() => Promise.reject("odd"))], "odd", "the backend's fix"],
    [
      "what was seen isn't it",
      [trial(() => Promise.reject(new NotProven("open", "close it")))],
      "open",
      "close it",
    ],
    [
      "one of two trials saw otherwise",
      [
        trial(async () => ({ "network.deny": "a" })),
        trial(async () => ({ "network.deny": new NotProven("open", "close it") })),
      ],
      "open",
      "close it",
    ],
    [
      "one trial saw it, and one before couldn't look",
      [
        trial(() => Promise.reject(new Error("no Node.js"))),
        trial(() => Promise.reject(new Inconclusive("late"))),
        trial(async () => ({ "network.deny": new NotProven("open", "close it") })),
      ],
      "open",
      "close it",
    ],
  ])("isn't proven when %s", async (_what, trials, reason, fix) => {
    expect((await found(...trials))[0]).toEqual({ capability: "network.deny", proven: false, reason, fix });
  });
});

it.each([
  ["that proves nothing either way is made again", [new Inconclusive("late")], undefined],
  [
    "is given up when it stays so",
    Array.from({ length: 3 }, (_, index) => new Inconclusive(`late ${index}`)),
    "late 2",
  ],
  ["isn't made again once an attack worked", [new NotProven("it leaks")], "it leaks"],
  ["isn't made again after any other error", [new Error("broken")], "broken"],
])("a trial %s", async (_what, errors, reason) => {
  const left = [...errors];
  const one = trial(async () => {
    const error = left.shift();
    if (error !== undefined) throw error;
    return { "network.deny": "a", "process.contained": "b" };
  });
  const [finding] = await found(one);
  expect(finding).toMatchObject(reason === undefined ? { proven: true } : { proven: false, reason });
  expect(left).toEqual([]);
});

it("no trial starts after the signal has aborted", async () => {
  const abort = new AbortController();
  const stopping = trial(async () => {
    abort.abort();
    return {};
  });
  expect(await runInTurn([stopping, stopping], undefined, abort.signal)).toHaveLength(1);
});
