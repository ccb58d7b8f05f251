import { describe, expect, it } from "vitest";
import { contractChecks } from "../src/contract/checks.js";
import { Contract, shapesOf } from "../src/contract/contract.js";
import { liar } from "./liar.js";

/** What plain processes and folders of the host don't get right by themselves. */
const faults = [
  "keeps the agent's home, and gives each tool one of its own that goes with it",
  "passes on no variable of the runner, and every one that is named",
  "rejects what it can't enforce",
  "leaks no descriptor with each sandbox",
  "writes over what is there, and makes programs that run",
  "says that a file isn't there, or is a folder",
  "writes nowhere but in the workspace and home",
  "lets nobody through without the token, and doesn't ask the handler",
  "gives every handler a token of its own",
  "keeps another session's handlers out of reach",
];
/** Some of what they do get right: a check that fails for everybody catches nothing. */
const merits = [
  "starts a process where it is told to",
  "tells how a process ended",
  "gives a program its arguments as they are",
  "hands over standard input, and its end",
  "loses nothing of a large output on both streams",
  "writes and reads files as they are, and makes folders in between",
  "makes a handler reachable from inside, with its method, path, headers and body",
  "streams an answer as it comes, and a large one whole",
];

describe("the contract of every sandbox", () => {
  const [shape] = shapesOf([]);
  if (shape === undefined) throw new Error("there is no shape without a boundary");

  it.for([
    ...faults.map((title) => [title, "catches"] as const),
    ...merits.map((title) => [title, "passes"] as const),
  ])("%s: %s a backend without care", { timeout: 120_000 }, async ([title, expected]) => {
    const found = contractChecks.find((one) => one.title === title);
    if (found === undefined) throw new Error(`there is no check of this title`);
    const contract = new Contract({ ...liar(), claims: [] }, shape);
    const outcome = await found.check(contract).then(
      () => "passes",
      () => "catches",
    );
    await contract.close();
    expect(outcome).toBe(expected);
  });
});
