import { describe, expect, it } from "vitest";
import { withCurrentNames } from "../../src/registry/renamed-settings.js";

const renamed = { lingerMs: "orphanTimeoutMs", "bridge.silenceMs": "bridge.heartbeatTimeoutMs" };

describe("settings with older names", () => {
  it.each([
    ["of the first level", { lingerMs: 1, other: 2 }, { orphanTimeoutMs: 1, other: 2 }, ["lingerMs"]],
    [
      "further in",
      { bridge: { folder: "/x", silenceMs: 3 } },
      { bridge: { folder: "/x", heartbeatTimeoutMs: 3 } },
      ["bridge.silenceMs"],
    ],
    ["that aren't used", { bridge: { heartbeatTimeoutMs: 3 } }, { bridge: { heartbeatTimeoutMs: 3 } }, []],
    [
      "beside the current one stay, for the schema to refuse",
      { lingerMs: 1, orphanTimeoutMs: 2 },
      { lingerMs: 1, orphanTimeoutMs: 2 },
      [],
    ],
    ["in what is no configuration", "text", "text", []],
    ["below what is no object", { bridge: 4 }, { bridge: 4 }, []],
  ])("%s", (_what, given, config, used) => {
    const result = withCurrentNames(given, renamed);
    expect(result.config).toEqual(config);
    expect(result.used.map(({ path }) => path)).toEqual(used);
  });
});
