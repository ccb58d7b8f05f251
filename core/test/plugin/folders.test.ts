import os from "node:os";
import { afterEach, expect, it, test, vi } from "vitest";
import { HomeMissing, stateFolder, userFolder } from "../../src/plugin/folders.js";

afterEach(() => void vi.restoreAllMocks());

test.each([
  [{ XDG_STATE_HOME: "/state" }, 1000, "/state/ambit/runs.sqlite"],
  [{ XDG_STATE_HOME: "relative" }, 1000, "/me/.local/state/ambit/runs.sqlite"],
  [{}, 1000, "/me/.local/state/ambit/runs.sqlite"],
  [{ XDG_STATE_HOME: "/state" }, 0, "/var/lib/ambit/runs.sqlite"],
])("with %o, what outlives a run of user %i is kept at %s", (environment, uid, expected) => {
  vi.spyOn(os, "homedir").mockReturnValue("/me");
  expect(stateFolder("runs.sqlite", environment, uid)).toBe(expected);
});

it("names the variable to a user without a home", () => {
  vi.spyOn(os, "homedir").mockImplementation(() => {
    throw new Error("uv_os_homedir returned ENOENT");
  });
  expect(() => userFolder("XDG_DATA_HOME", ".local/share", {})).toThrow(HomeMissing);
  expect(() => stateFolder("", {}, 1234)).toThrow(
    /set XDG_STATE_HOME to a folder that it can write, or HOME/,
  );
  expect(stateFolder("", { XDG_STATE_HOME: "/state" }, 1234)).toBe("/state/ambit");
});
