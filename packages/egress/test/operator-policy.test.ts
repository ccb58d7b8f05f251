import { networkInterfaces } from "node:os";
import { afterEach, describe, expect, it, vi } from "vitest";
import { operatorPolicy, settlePrivateHosts, whyForbidden } from "../src/index.js";

vi.mock("node:os", { spy: true });
afterEach(() => void vi.restoreAllMocks());

describe("private hosts", () => {
  it.each([
    ["auto", false, "allow"],
    ["auto", true, "refuse"],
    ["allow", true, "allow"],
    ["refuse", false, "refuse"],
  ] as const)("%s, with tenants %s: %s", (privateHosts, hasTenants, settled) => {
    expect(settlePrivateHosts({ privateHosts }, hasTenants)).toEqual({ privateHosts: settled });
  });

  it("include the host's own public address, where they are refused", () => {
    const [entry] = Object.values(networkInterfaces()).flat();
    if (entry === undefined) throw new Error("this host has no interface");
    vi.mocked(networkInterfaces).mockReturnValue({ eth0: [{ ...entry, address: "93.184.216.34" }] });
    const why = (privateHosts: "allow" | "refuse", allowedRanges: readonly string[] = []) =>
      whyForbidden([operatorPolicy({ privateHosts, allowedRanges })], "93.184.216.34", 443);
    expect(why("refuse")).toContain("is an address of the runner's own host");
    expect(why("refuse", ["93.184.216.34"])).toBeUndefined();
    expect(why("allow")).toBeUndefined();
  });
});
