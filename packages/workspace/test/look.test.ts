import { execFileSync } from "node:child_process";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { NotFound, OutputsFailed, RequestInvalid } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listFolder, readFile } from "../src/index.js";
import { hostSandbox } from "./host-sandbox.js";

let folder: string;
let workspace: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ambit-look-"));
  workspace = join(folder, "workspace");
  mkdirSync(workspace);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const { signal } = new AbortController();

function write(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(workspace, path)), { recursive: true });
  writeFileSync(join(workspace, path), content);
}

async function contentOf(path: string, sandbox: Sandbox = hostSandbox(workspace)): Promise<string> {
  let content = "";
  const use = async (file: { readonly content: AsyncIterable<Uint8Array> }) => {
    content = await text(file.content);
  };
  await readFile(sandbox, path, use, signal);
  return content;
}

const list = (path = "", sandbox: Sandbox = hostSandbox(workspace)) => listFolder(sandbox, path, signal);

/** A sandbox whose processes load this program first. */
function sandboxWith(hook: string): Sandbox {
  const file = join(folder, "hook.cjs");
  writeFileSync(file, hook);
  const sandbox = hostSandbox(workspace);
  return {
    ...sandbox,
    spawn: ({ argv: [node, ...rest], ...command }) =>
      sandbox.spawn({ ...command, argv: [node, "--require", file, ...rest] }),
  };
}

test("a folder is listed by name, one level at a time, without what git keeps", async () => {
  write("src/app.ts", "app");
  write("run.sh", "#!/bin/sh\n");
  chmodSync(join(workspace, "run.sh"), 0o755);
  write(".git/config", "x");
  write("b\nc", "x");
  symlinkSync("/etc", join(workspace, "etc"));
  execFileSync("mkfifo", [join(workspace, "pipe")]);
  const { entries, complete } = await list();
  expect(entries.map(({ name, kind, executable }) => [name, kind, executable])).toEqual([
    ["etc", "link", true],
    ["pipe", "special", false],
    ["run.sh", "file", true],
    ["src", "folder", true],
  ]);
  // The name with a line break isn't one of them.
  expect(complete).toBe(false);
  const inside = await list("src");
  expect(inside).toMatchObject({ entries: [{ name: "app.ts", kind: "file", size: 3 }], complete: true });
});

test("a time that no date has keeps nothing from being listed", async () => {
  write("far", "");
  execFileSync("touch", ["-d", "@300000000000", join(workspace, "far")]);
  write("early", "");
  execFileSync("touch", ["-d", "@-99999999999", join(workspace, "early")]);
  const { entries } = await list();
  const times = entries.map(({ name, modifiedAt }) => [name, new Date(modifiedAt).toISOString().slice(0, 4)]);
  expect(Object.fromEntries(times)).toEqual({ far: expect.stringMatching(/^\d{4}$/), early: "1970" });
});

test("a folder with more names than are listed says so", async () => {
  for (let index = 0; index < 2_001; index += 1) write(`many/${index}`, "");
  const { entries, complete } = await list("many");
  expect([entries.length, complete]).toEqual([2_000, false]);
});

test("a file comes whole, of any size", async () => {
  const content = "ü".repeat(200_000);
  write("deep/down/file", content);
  write("empty", "");
  expect(await contentOf("deep/down/file")).toBe(content);
  expect(await contentOf("empty")).toBe("");
});

test("what is no regular file of the workspace is refused with its reason", async () => {
  mkdirSync(join(folder, "outside"));
  writeFileSync(join(folder, "outside/secret"), "outside");
  symlinkSync(join(folder, "outside"), join(workspace, "folder"));
  symlinkSync(join(folder, "outside/secret"), join(workspace, "link"));
  linkSync(join(folder, "outside/secret"), join(workspace, "hard"));
  execFileSync("mkfifo", [join(workspace, "pipe")]);
  write("large", "");
  truncateSync(join(workspace, "large"), 1024 ** 3);
  mkdirSync(join(workspace, "sub"));
  const refused = async (path: string) =>
    await contentOf(path).catch((error: unknown) => {
      expect(error).toBeInstanceOf(NotFound);
      return String(error);
    });
  expect(await refused("missing")).toContain("isn't in the workspace");
  expect(await refused("link")).toContain("is a link");
  expect(await refused("folder/secret")).toContain("a part that is a link");
  expect(await refused("hard")).toContain("several names");
  expect(await refused("pipe")).toContain("a pipe");
  expect(await refused("large")).toContain("256 MiB");
  expect(await refused("sub")).toContain("is a folder");
  await expect(list("folder")).rejects.toThrow("a part that is a link");
  // The control: what follows links reads what is outside.
  expect(readFileSync(join(workspace, "folder/secret"), "utf8")).toBe("outside");
  expect(readdirSync(join(workspace, "folder"))).toEqual(["secret"]);
});

test.each([
  "../secret",
  "/etc/passwd",
  "a/../../b",
  "a//b",
  "./a",
  "a\\b",
  "a\u0000b",
  ".git/config",
  "a\nb",
])("the path %j is refused before anything is read", async (path) => {
  const sandbox = { ...hostSandbox(workspace), spawn: () => Promise.reject(new Error("it was read")) };
  await expect(contentOf(path, sandbox)).rejects.toThrow(RequestInvalid);
  await expect(list(path, sandbox)).rejects.toThrow(RequestInvalid);
});

describe("what an agent exchanges", () => {
  test.each([
    ["a link to a file outside", "victim", "symlinkSync"],
    ["a file outside, by another name", "victim", "linkSync"],
    ["a link to a folder outside", "victim/secret", "symlinkSync"],
  ])("for %s, while it is opened, isn't read", async (_, path, exchange) => {
    write(path, "inside");
    const outside = join(folder, path.replace("victim", "outside"));
    mkdirSync(dirname(outside), { recursive: true });
    writeFileSync(outside, "outside");
    const sandbox = sandboxWith(`const fs = require("node:fs");
      const open = fs.openSync;
      fs.openSync = (path, ...rest) => {
        if (String(path).endsWith("/victim")) {
          fs.openSync = open;
          fs.rmSync(path, { recursive: true });
          fs.${exchange}(${JSON.stringify(join(folder, "outside"))}, path);
        }
        return open(path, ...rest);
      };`);
    await expect(contentOf(path, sandbox)).rejects.toThrow(NotFound);
    // The control: what reads it by its name gets what is outside.
    expect(readFileSync(join(workspace, path), "utf8")).toBe("outside");
  });

  test.each([
    [
      "a name that leads out",
      '{"type":"entry","name":"../x","kind":"file","size":1,"modifiedAt":1,"executable":false}',
    ],
    [
      "a name with a slash",
      '{"type":"entry","name":"a/b","kind":"file","size":1,"modifiedAt":1,"executable":false}',
    ],
    [
      "a time that no date has",
      '{"type":"entry","name":"x","kind":"file","size":1,"modifiedAt":9007199254740991,"executable":false}',
    ],
    ["a line of another answer", '{"type":"done"}'],
    ["no JSON", "x"],
    ["an early end", ""],
  ])("in what the program inside answers is refused: %s", async (_, line) => {
    const sandbox = hostSandbox(workspace);
    const lying = {
      ...sandbox,
      spawn: (command: Parameters<typeof sandbox.spawn>[0]) =>
        sandbox.spawn({ ...command, argv: ["printf", "%s\n", line] }),
    };
    await expect(list("", lying)).rejects.toThrow(OutputsFailed);
  });
});
