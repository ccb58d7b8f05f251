import { describe, expect, it } from "vitest";
import { defaultPlugins } from "../../src/configuration/defaults.js";
import { takeEnvironment } from "../../src/configuration/environment.js";
import { loadSettings } from "../../src/configuration/load.js";
import type { ConfigurationInput } from "../../src/configuration/schema.js";

const load = (given: ConfigurationInput | Record<string, unknown>) =>
  loadSettings(takeEnvironment({}), {}, { folder: "/", given });
const local = { use: "@ambit/sandbox-local", config: { unconfined: "refuse" } };

describe("the plugins of a configuration", () => {
  it("are the default ones without any", async () => {
    expect((await load({})).plugins).toEqual(defaultPlugins);
  });

  it("extend the default ones, which they come before, and replace by name", async () => {
    const { plugins, leftOut } = await load({ extends: "defaults", plugins: ["mine", local] });
    expect(plugins).toEqual(["mine", local, ...defaultPlugins.filter((name) => name !== local.use)]);
    expect(leftOut).toEqual([]);
  });

  it("replace the default store by another, and leave out what isn't wanted", async () => {
    const { plugins } = await load({ extends: "defaults", plugins: ["@ambit/store-postgres"] });
    expect(plugins).not.toContain("@ambit/store-sqlite");
    const files = { use: "@ambit/blobs-s3", config: { bucket: "ambit" } };
    expect((await load({ extends: "defaults", plugins: [files] })).plugins).not.toContain(
      "@ambit/blobs-folder",
    );
    const less = await load({ extends: "defaults", without: ["@ambit/store-sqlite"] });
    expect(less.plugins).toEqual(defaultPlugins.filter((name) => name !== "@ambit/store-sqlite"));
  });

  it("are all where nothing is extended, and those that are left out are known", async () => {
    const { plugins, leftOut } = await load({ plugins: ["@ambit/executor-client"] });
    expect(plugins).toEqual(["@ambit/executor-client"]);
    expect(leftOut).toContain("@ambit/store-sqlite");
    expect((await load({ extends: "none", plugins: ["@ambit/executor-client"] })).leftOut).toEqual([]);
  });

  it.each([
    [{ extends: "default" }, "extends"],
    [{ extends: "defaults", without: ["@ambit/store-sqlit"] }, "'@ambit/store-sqlit' is no default plugin"],
    [
      { extends: "defaults", plugins: [local], without: ["@ambit/sandbox-local"] },
      "'@ambit/sandbox-local' is listed in plugins too",
    ],
    [{ plugins: ["x"], without: ["@ambit/store-sqlite"] }, 'without needs `extends: "defaults"`'],
  ])("are refused as %j", async (given, message) => {
    await expect(load(given)).rejects.toThrow(message);
  });
});
