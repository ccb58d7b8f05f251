import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { findPackage, packageAround, withDependencies } from "../../src/installation/locate-program.js";

describe("packages", () => {
  it("finds a package from below its folder, with its dependencies", () => {
    const found = findPackage("@google/gemini-cli", import.meta.dirname);
    expect(found?.manifest.name).toBe("@google/gemini-cli");
    expect(findPackage("@google/no-such-agent", import.meta.dirname)).toBeUndefined();
    const own = packageAround(fileURLToPath(import.meta.url));
    expect(own?.manifest.name).toBe("@ambit/harness-acp");
    const names = own === undefined ? [] : withDependencies(own).map(({ manifest }) => manifest.name);
    expect(names).toEqual(expect.arrayContaining(["@ambit/core", "zod", "@agentclientprotocol/sdk"]));
    expect(names).not.toContain("vitest");
  });
});
