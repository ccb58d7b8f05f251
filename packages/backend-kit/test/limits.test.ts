import { describe, expect, it } from "vitest";
import { refuseBeyond } from "../src/index.js";

const claims = ["network.deny", "process.contained"] as const;

describe("opening a sandbox", () => {
  const gap = { capability: "resources.disk", reason: "no limit", fix: "leave it out" } as const;
  it.each([
    ["of a gap", [gap], [], "resources.disk: no limit: leave it out"],
    ["of what isn't claimed", [], ["secrets.hidden"], "The sandbox doesn't enforce secrets.hidden"],
  ] as const)("is refused because %s", (_what, gaps, required, message) => {
    expect(() => refuseBeyond({ sandbox: "The sandbox", claims, gaps }, { required })).toThrow(message);
  });

  it("isn't refused if everything is claimed", () => {
    expect(() =>
      refuseBeyond({ sandbox: "The sandbox", claims, gaps: [] }, { required: claims }),
    ).not.toThrow();
  });
});
