import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/specs.js";
import { LinkedFiles } from "./jails/linked-files.ts";

test("files of a weakened session follow links to decoys only", async () => {
  const folder = await temporaryFolder();
  const [outside, decoys, host] = [join(folder, "workspace"), join(folder, "decoys"), join(folder, "host")];
  for (const path of [outside, decoys, host]) {
    await mkdir(path);
    await writeFile(join(path, "file"), `in ${path}`);
  }
  await symlink(decoys, join(outside, "to-decoys"));
  await symlink(host, join(outside, "to-host"));
  const files = new LinkedFiles([{ guest: "/workspace", host: outside }], undefined, [decoys]);
  const text = async (path: string) => new TextDecoder().decode(await files.read(path));

  expect(await text("/workspace/file")).toBe(`in ${outside}`);
  expect(await text("/workspace/to-decoys/file")).toBe(`in ${decoys}`);
  await expect(text("/workspace/to-host/file")).rejects.toThrow("decoys only");
  await files.write([{ path: "/workspace/to-decoys/new", content: "new" }]);
  expect(await readFile(join(decoys, "new"), "utf8")).toBe("new");
  await expect(files.write([{ path: "/workspace/to-host/file", content: "x" }])).rejects.toThrow();
  await expect(files.write([{ path: "/workspace/to-host/new", content: "x" }])).rejects.toThrow();
  expect(await readFile(join(host, "file"), "utf8")).toBe(`in ${host}`);
  await expect(text("/etc/passwd")).rejects.toThrow("isn't in the session");
});
