import type { NetworkRule } from "@ambit/core/plugin";
import { allowsDestination } from "@ambit/egress";
import { describe, expect, it } from "vitest";
import { allowing, boundary, demoHere, geminiHere, google, withKey } from "../support/harnesses.js";
import { requestOf } from "../support/runs.js";

describe("what the boundary must allow", () => {
  it.each([
    { what: "no boundary", at: boundary({}), gaps: [] },
    {
      what: "the network is off",
      at: boundary({ network: { mode: "off", rules: [] } }),
      gaps: ["network.deny"],
    },
    { what: "a list without its model", at: allowing(), gaps: ["network.allow-host"] },
    { what: "a list with its model", at: allowing(google), gaps: [] },
    {
      what: "its model on another port",
      at: allowing({ ...google, port: 80 }),
      gaps: ["network.allow-host"],
    },
    // Whether its key can be hidden is decided by the sandbox and the planner.
    { what: "secrets hidden, a key given", at: boundary({ secrets: "hidden" }), gaps: [] },
  ])("Gemini, $what: $gaps", ({ at, gaps }) => {
    const found = geminiHere.directModelGaps(at, withKey);
    expect(found.map(({ capability }) => capability)).toEqual(gaps);
    for (const { reason, fix } of found) expect([reason, fix]).not.toContain("");
  });

  it("names a fix that works: the proposed entry allows the model", () => {
    const [gap] = geminiHere.directModelGaps(allowing(), withKey);
    expect(gap?.fix).toContain('"generativelanguage.googleapis.com:443"');
    const rule: NetworkRule = {
      kind: "host",
      name: "generativelanguage.googleapis.com",
      subdomains: false,
      port: 443,
    };
    expect(allowsDestination([rule], new URL("https://generativelanguage.googleapis.com"))).toBe(true);
    expect(geminiHere.directModelGaps(allowing(rule), withKey)).toEqual([]);
  });

  it("an endpoint given by address is a gap of network.allow-cidr", () => {
    const request = requestOf({ modelConnection: { endpoint: { baseUrl: "http://10.0.0.1:8080" } } });
    const [gap] = geminiHere.directModelGaps(allowing(google), request);
    expect(gap).toMatchObject({
      capability: "network.allow-cidr",
      reason: expect.stringContaining("10.0.0.1:8080"),
    });
  });

  it("the demo agent has no model, and so no gap", () => {
    expect(
      demoHere.directModelGaps(
        boundary({ network: { mode: "off", rules: [] }, secrets: "hidden" }),
        requestOf(),
      ),
    ).toEqual([]);
  });
});
