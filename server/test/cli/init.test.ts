import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { init, initialConfiguration } from "../../src/cli/commands/init.js";
import { defaultPlugins } from "../../src/configuration/defaults.js";
import { takeEnvironment } from "../../src/configuration/environment.js";
import { loadSettings } from "../../src/configuration/load.js";
import { emptyFolder } from "../support/empty-folder.js";

const settingsOf = async (text: string) => {
  const folder = await emptyFolder();
  await writeFile(join(folder, "ambit.config.mjs"), text);
  return loadSettings(takeEnvironment({}), {}, { folder });
};

const choices = initialConfiguration.split("\n").filter((line) => line.trimStart().startsWith("//:"));

describe("ambit init", () => {
  it("writes the defaults", async () => {
    const said = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    onTestFinished(() => void vi.restoreAllMocks());
    const file = join(await emptyFolder(), "ambit.config.mjs");
    expect(await init(file)).toBe(0);
    expect(said).toHaveBeenCalledWith(expect.stringContaining("uses it only if --config names it"));
    expect((await settingsOf(await readFile(file, "utf8"))).plugins).toEqual(defaultPlugins);
  });

  it.each(choices)("a choice applies without its mark:%s", async (choice) => {
    const text = initialConfiguration.replace(choice, choice.replace("//: ", ""));
    expect(text).not.toBe(initialConfiguration);
    await expect(settingsOf(text)).resolves.toBeDefined();
  });

  it("all choices can be made together", async () => {
    const settings = await settingsOf(initialConfiguration.replaceAll("//: ", ""));
    expect(settings.plugins).toContain("@ambit/store-postgres");
    expect(settings.plugins).not.toContain("@ambit/store-sqlite");
  });

  it("leaves an existing file as it is", async () => {
    const file = join(await emptyFolder(), "ambit.config.mjs");
    await writeFile(file, "mine");
    await expect(init(file)).rejects.toThrow("exists: move it away, or name another file");
    expect(await readFile(file, "utf8")).toBe("mine");
  });
});
