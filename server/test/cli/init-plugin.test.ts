import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { initPlugin } from "../../src/cli/commands/init-plugin.js";
import { type PluginKind, pluginKinds } from "../../src/cli/plugin-kinds.js";
import { emptyFolder } from "../support/empty-folder.js";

const templates = new URL("../../templates/", import.meta.url);
const repository = new URL("../../../", import.meta.url);

async function written(kind: PluginKind, name: string) {
  const said = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => void vi.restoreAllMocks());
  const folder = join(await emptyFolder(), name);
  expect(await initPlugin(kind, folder)).toBe(0);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  return { folder, text: texts.join("\n"), next: said.mock.calls.join("") };
}

const jsonAt = async (path: string | URL) => JSON.parse(await readFile(path, "utf8"));

// scripts/packages/check-templates.mjs builds each outside the repository, and runs its kit and its request.
describe.each(pluginKinds)("ambit init --plugin %s", (kind) => {
  it("writes a package with the folder's name, and its next steps", async () => {
    const { folder, text, next } = await written(kind, "ambit-clock-2");
    expect(text).not.toContain("sample");
    expect(text).toContain('name: "ambit-clock-2"');
    expect(await jsonAt(join(folder, "package.json"))).toMatchObject({ name: "ambit-clock-2" });
    expect(await readdir(folder)).toEqual(
      expect.arrayContaining([
        ".gitignore",
        "README.md",
        "ambit.config.mjs",
        "request.json",
        "tsconfig.json",
      ]),
    );
    expect(next).toContain(`packages --for ${kind}`);
  });

  it("depends on the versions of this repository", async () => {
    const own = await jsonAt(new URL(`${kind}/manifest.json`, templates));
    const root = await jsonAt(new URL("package.json", repository));
    const core = await jsonAt(new URL("core/package.json", repository));
    const kit = await jsonAt(new URL("test/kit/package.json", repository));
    const expected: Record<string, string> = {
      ...core.dependencies,
      ...kit.peerDependencies,
      ...root.devDependencies,
      // The compiler's version is pinned in the repository.
      typescript: `^${root.devDependencies.typescript}`,
    };
    for (const [name, range] of Object.entries({ ...own.dependencies, ...own.devDependencies }))
      expect(range, name).toBe(name.startsWith("@ambit/") ? `^${core.version}` : expected[name]);
    expect(own.engines).toEqual(root.engines);
  });
});

describe("ambit init --plugin", () => {
  it("has a template of each kind, and no other", async () => {
    expect((await readdir(templates)).sort()).toEqual([...pluginKinds, "common"].sort());
  });

  it("leaves a folder that isn't empty as it is, and a file", async () => {
    const folder = await emptyFolder();
    const file = join(folder, "mine");
    await writeFile(file, "mine");
    await expect(initPlugin("executor", file)).rejects.toThrow("is a file: name another folder");
    const name = join(folder, "clock");
    await written("executor", "clock").then(({ folder: other }) => rm(other, { recursive: true }));
    await initPlugin("executor", name);
    await writeFile(join(name, "src/index.ts"), "mine");
    await expect(initPlugin("store", name)).rejects.toThrow("exists and isn't empty: name another folder");
    expect(await readFile(join(name, "src/index.ts"), "utf8")).toBe("mine");
  });

  it("refuses a name that no package can have", async () => {
    const folder = await emptyFolder();
    await expect(initPlugin("executor", join(folder, "My Clock"))).rejects.toThrow(
      "'My Clock' can't be the name of a package",
    );
    expect(await readdir(folder)).toEqual([]);
  });
});
