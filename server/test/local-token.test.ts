import { chmod, chown, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keepLocalToken, localTokenFor, newLocalToken } from "../src/local-token.js";

let folder: string;
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "ambit-local-token-")), "data");
});
afterEach(() => rm(join(folder, ".."), { recursive: true, force: true }));

const keep = (token: string, port = 8765) => keepLocalToken(token, port, folder);

describe("the token of a server that was given none", () => {
  it("is kept for its user alone, and removed with the server", async () => {
    const token = newLocalToken();
    const kept = await keep(token);
    expect((await stat(kept.file)).mode & 0o777).toBe(0o600);
    expect(await readFile(kept.file, "utf8")).toBe(`${token}\n`);
    expect(await localTokenFor("http://127.0.0.1:8765", folder)).toBe(token);
    await kept.remove();
    expect(await readdir(folder)).toEqual([]);
    expect(await localTokenFor("http://127.0.0.1:8765", folder)).toBeUndefined();
  });

  it("replaces what an earlier server left, which no longer removes it", async () => {
    const earlier = await keep(newLocalToken());
    const token = newLocalToken();
    await keep(token);
    await earlier.remove();
    expect(await localTokenFor("http://localhost:8765", folder)).toBe(token);
  });

  it.each([
    "http://127.0.0.1:8766",
    "http://192.0.2.1:8765",
    "http://ambit.example:8765",
    "https://127.0.0.1:8765",
    "no address",
  ])("isn't for %s", async (url) => {
    await keep(newLocalToken());
    expect(await localTokenFor(url, folder)).toBeUndefined();
  });

  it("isn't read from a link, or from another user's file", async (context) => {
    const { file } = await keep(newLocalToken(), 1);
    await symlink(file, join(folder, "server-2.token"));
    await expect(localTokenFor("http://127.0.0.1:2", folder)).rejects.toThrow("server-2.token");
    if (process.getuid?.() !== 0) context.skip("host: only root can give a file to another user");
    await chown(file, 12_345, 12_345);
    await expect(localTokenFor("http://127.0.0.1:1", folder)).rejects.toThrow("belongs to another user");
  });

  it("that can't be kept is refused with the fix", async () => {
    await writeFile(folder, "a file, where the folder should be");
    await chmod(folder, 0o600);
    await expect(keep(newLocalToken())).rejects.toThrow("set AMBIT_TOKEN, or make the folder writable");
  });
});
