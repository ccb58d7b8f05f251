import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ByHand } from "../../../src/cli/by-hand/by-hand.js";
import { ConfigurationInvalid } from "../../../src/configuration/problems.js";
import { emptyFolder } from "../../support/empty-folder.js";

describe("a file that a run by hand writes", () => {
  it.each(["patch", "save"] as const)(
    "is refused before the run where --%s can't be written",
    async (name) => {
      const folder = await emptyFolder();
      const file = join(folder, "none", "file");
      const asked = new ByHand("hi", { agent: "demo", folder, [name]: file }, undefined).request({});
      await expect(asked).rejects.toThrow(`--${name}: ${file} can't be written (ENOENT): name a file`);
      await expect(asked).rejects.toThrow(ConfigurationInvalid);
    },
  );

  it("is left as it was until the run has ended", async () => {
    const [folder, out] = [await emptyFolder(), await emptyFolder()];
    await writeFile(join(out, "kept"), "earlier");
    for (const name of ["kept", "new"])
      await new ByHand("hi", { agent: "demo", folder, patch: join(out, name) }, undefined).request({});
    expect(await readdir(out)).toEqual(["kept"]);
    expect(await readFile(join(out, "kept"), "utf8")).toBe("earlier");
  });
});
