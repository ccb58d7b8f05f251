import { describe, expect, it } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { contractChecks } from "../src/contract/checks.js";
import { Contract, shapesOf } from "../src/contract/contract.js";
import { liar } from "./liar.js";

/** Requirements that plain processes and folders of the host don't fulfil. */
const faults = [
  "keeps the agent's home, and gives each tool a private one that is removed with it",
  "passes on every named variable, and none of the runner's",
  "rejects a boundary that it can't enforce",
  "leaks no descriptors",
  "overwrites files, and writes executable programs",
  "reports that a file doesn't exist, or is a folder",
  "writes only in the workspace and home",
  "refuses requests without the token before they reach the handler",
  "gives every handler a separate token",
  "keeps another session's handlers out of reach",
];
/** Some that they do fulfil: a check that always fails would prove nothing. */
const merits = [
  "starts a process in the given folder",
  "reports how a process ended",
  "passes arguments to a program unchanged",
  "passes on standard input and its end",
  "delivers a large output on both streams completely",
  "writes and reads files unchanged, and creates parent folders",
  "makes a handler reachable from inside, with its method, path, headers and body",
  "streams a response as it is written, and a large one completely",
  "takes a request's sources, and the agent can run and change them",
  "lets regular files of the workspace leave, and nothing that a link or a device leads to",
  "gives its workspace and home to another sandbox, with links and modes, and nothing through a link",
];

/** Merits that a program in Python shows. */
const withPython = [
  "passes arguments to a program unchanged",
  "delivers a large output on both streams completely",
  "makes a handler reachable from inside, with its method, path, headers and body",
  "streams a response as it is written, and a large one completely",
];

describe("the contract of every sandbox", () => {
  const [shape] = shapesOf([]);
  if (shape === undefined) throw new Error("there is no shape without a boundary");

  it.for([
    ...faults.map((title) => [title, "catches"] as const),
    ...merits.map((title) => [title, "passes"] as const),
  ])("%s: %s a backend without care", { timeout: 120_000 }, async ([title, expected]) => {
    const found = contractChecks.find((one) => one.title === title);
    if (withPython.includes(title)) skipWithout("python");
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
