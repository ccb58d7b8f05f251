import type { PublishedServer } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { toolsListed } from "../../src/driver/start-agent.js";

/** A server whose tools are listed at the given check. */
function serverListedAt(look: number): PublishedServer & { readonly looks: () => number } {
  let looks = 0;
  return {
    name: "ambit",
    url: "http://127.0.0.1/mcp",
    headers: {},
    listed: () => ++looks >= look,
    looks: () => looks,
  };
}

const never = Number.POSITIVE_INFINITY;
const running = new AbortController().signal;

describe("waiting for an agent to list its tools", () => {
  it("ends when every server's tools were listed", async () => {
    const [first, second] = [serverListedAt(1), serverListedAt(4)];
    await toolsListed([first, second], 60_000, running);
    expect(second.looks()).toBe(4);
  });

  it("ends at its time limit: the end of the turn reports missing tools", async () => {
    await toolsListed([serverListedAt(never)], 30, running);
  });

  it("ends with the run", async () => {
    await toolsListed([serverListedAt(never)], 60_000, AbortSignal.timeout(20));
  });

  it("doesn't begin without servers", async () => {
    await toolsListed([], 60_000, running);
  });
});
