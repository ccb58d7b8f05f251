import { describe, expect, it } from "vitest";
import { addressesOfThisHost, operatorPolicy, resolvePrivateHosts, whyForbidden } from "../src/index.js";

describe("private hosts", () => {
  it.each([
    ["auto", false, "allow"],
    ["auto", true, "refuse"],
    ["allow", true, "allow"],
    ["refuse", false, "refuse"],
  ] as const)("%s, with tenants %s: %s", (privateHosts, hasTenants, settled) => {
    expect(resolvePrivateHosts({ privateHosts }, hasTenants)).toEqual({ privateHosts: settled });
  });

  it("include the host's own public address, where they are refused", () => {
    const policy = (privateHosts: "allow" | "refuse", allowedRanges: readonly string[] = []) => {
      const made = operatorPolicy({ privateHosts, allowedRanges });
      expect(made.own).toBe(privateHosts === "refuse" ? addressesOfThisHost : undefined);
      // This host may have no public address.
      return { ...made, ...(made.own === undefined ? {} : { own: () => ["93.184.216.34"] }) };
    };
    const why = (...given: Parameters<typeof policy>) =>
      whyForbidden([policy(...given)], "93.184.216.34", 443);
    expect(why("refuse")).toContain("is an address of the runner's own host");
    expect(why("refuse", ["93.184.216.34"])).toBeUndefined();
    expect(why("allow")).toBeUndefined();
  });
});
