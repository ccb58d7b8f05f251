// needs: git
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { OutputsFailed } from "@ambit/core";
import {
  type OutputsReceipt,
  type OutputsRequest,
  outputsReceiptSchema,
  outputsSchema,
} from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KeptOutputs, RunOutputs, workspaceSettingsSchema } from "../src/index.js";
import { hostSandbox } from "./host-sandbox.js";
import { memoryBlobs } from "./memory-blobs.js";

let folder: string;
let workspace: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ambit-outputs-"));
  workspace = join(folder, "workspace");
  mkdirSync(workspace);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(workspace, path)), { recursive: true });
  writeFileSync(join(workspace, path), content);
}

interface Taken {
  readonly receipt: OutputsReceipt;
  readonly kept: KeptOutputs;
  readonly patch: Buffer;
}

/** Takes the outputs of a run whose agent does this to its workspace. */
async function take(
  asked: Partial<OutputsRequest>,
  agent: () => void = () => {},
  settings: object = {},
  uid?: number,
): Promise<Taken> {
  const blobs = memoryBlobs();
  const run = new RunOutputs({
    owner: "run",
    outputs: outputsSchema.parse(asked),
    settings: workspaceSettingsSchema.parse(settings),
    folder: join(folder, "spool"),
    blobs: async () => blobs,
  });
  const sandbox = hostSandbox(workspace, uid);
  const { signal } = new AbortController();
  try {
    await run.started(sandbox, signal);
    agent();
    const receipt = outputsReceiptSchema.parse(await run.collect(sandbox, signal));
    const kept = await KeptOutputs.of("run", blobs);
    if (kept === undefined) throw new Error("nothing was kept");
    return { receipt, kept, patch: blobs.kept.get("run")?.get("patch") ?? Buffer.alloc(0) };
  } finally {
    await run.close();
  }
}

const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");

describe("files", () => {
  test("leave if a glob matches them, with size and digest", async () => {
    write("dist/app.js", "app");
    write("dist/deep/.map", "map");
    write("notes.md", "notes");
    chmodSync(join(workspace, "dist/app.js"), 0o755);
    const { receipt, kept } = await take({ include: ["dist/**"] });
    expect(receipt.files).toEqual([
      { path: "dist/app.js", size: 3, sha256: sha256("app"), executable: true },
      { path: "dist/deep/.map", size: 3, sha256: sha256("map") },
    ]);
    expect(receipt.omitted).toEqual([]);
    const blob = await kept.file("dist/app.js");
    expect(await text(Readable.from(blob?.content ?? []))).toBe("app");
    expect(await kept.file("notes.md")).toBeUndefined();
  });

  test("are in the archive, which tar reads", async () => {
    write("out/a.txt", "a");
    write("out/ü b.txt", Buffer.alloc(100_000, 7));
    const { kept } = await take({ include: ["out/**"] });
    const archive = Buffer.concat(await kept.archive().toArray());
    const into = join(folder, "into");
    mkdirSync(into);
    execFileSync("tar", ["-x", "-C", into], { input: archive });
    expect(readFileSync(join(into, "out/a.txt"), "utf8")).toBe("a");
    expect(readFileSync(join(into, "out/ü b.txt")).length).toBe(100_000);
  });
});

describe("what is no regular file of the workspace", () => {
  const reasons = async (agent: () => void, asked: Partial<OutputsRequest> = { include: ["**"] }) => {
    const { receipt } = await take(asked, agent);
    return { paths: receipt.files.map(({ path }) => path), omitted: receipt.omitted };
  };

  test("a link to a file outside doesn't leave; the file itself would", async () => {
    const secret = join(folder, "secret");
    writeFileSync(secret, "outside");
    expect(await reasons(() => symlinkSync(secret, join(workspace, "link")))).toEqual({
      paths: [],
      omitted: [{ path: "link", reason: "link" }],
    });
    rmSync(join(workspace, "link"));
    expect(await reasons(() => write("link", "inside"))).toEqual({ paths: ["link"], omitted: [] });
  });

  test("a link to a folder outside isn't followed", async () => {
    mkdirSync(join(folder, "other"));
    writeFileSync(join(folder, "other/secret"), "outside");
    expect(await reasons(() => symlinkSync(join(folder, "other"), join(workspace, "other")))).toEqual({
      paths: [],
      omitted: [{ path: "other", reason: "link" }],
    });
  });

  test("a hard link to a file outside doesn't leave; one within the workspace does", async () => {
    const secret = join(folder, "secret");
    writeFileSync(secret, "outside");
    write("a", "inside");
    const found = await reasons(() => {
      linkSync(secret, join(workspace, "stolen"));
      linkSync(join(workspace, "a"), join(workspace, "b"));
    });
    expect(found).toEqual({ paths: ["a", "b"], omitted: [{ path: "stolen", reason: "hard_link" }] });
  });

  test("a pipe without a writer delays nothing", async () => {
    const found = await reasons(() => execFileSync("mkfifo", [join(workspace, "pipe")]));
    expect(found).toEqual({ paths: [], omitted: [{ path: "pipe", reason: "special" }] });
  });

  test("a name with a line break, a backslash or bytes that aren't UTF-8 is left out", async () => {
    const odd = Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from([0x66, 0xff])]);
    const { paths, omitted } = await reasons(() => {
      write("a\nb", "x");
      write("a\\b", "x");
      writeFileSync(odd, "x");
      write("grüße", "x");
    });
    expect(paths).toEqual(["grüße"]);
    expect(omitted.map(({ reason }) => reason)).toEqual(["name", "name", "name"]);
  });

  test("a sparse file counts with its size", async () => {
    const { paths, omitted } = await reasons(() => {
      write("small", "x");
      write("sparse", "");
      truncateSync(join(workspace, "sparse"), 1024 ** 4);
    });
    expect(paths).toEqual(["small"]);
    expect(omitted).toEqual([{ path: "sparse", reason: "too_large" }]);
  });

  test("what git keeps never leaves", async () => {
    const { paths } = await reasons(() => {
      write(".git/hooks/pre-commit", "#!/bin/sh");
      write("sub/.GIT/config", "x");
      // The same folder on other file systems: FAT, NTFS and HFS+.
      for (const name of [
        ".git. .",
        "git~1",
        "Git~1 ",
        ".git::$INDEX_ALLOCATION",
        ".g\u200cit",
        "\ufeff.git",
      ])
        write(`${name}/hooks/pre-commit`, "#!/bin/sh");
      for (const name of [".gitignore", "git", ".git-a/x", "x.git", "git~2", ".gitx."]) write(name, "x");
    });
    expect(paths).toEqual([".git-a/x", ".gitignore", ".gitx.", "git", "git~2", "x.git"]);
  });
});

describe("limits", () => {
  test("files beyond their number or size are named, the first ones leave", async () => {
    for (const name of ["a", "b", "c"]) write(name, "12345");
    const few = await take({ include: ["**"], maxFiles: 2 });
    expect(few.receipt.files.map(({ path }) => path)).toEqual(["a", "b"]);
    expect(few.receipt.omitted).toEqual([{ path: "c", reason: "too_many" }]);
    const small = await take({ include: ["**"], maxBytes: 12 });
    expect(small.receipt.files.map(({ path }) => path)).toEqual(["a", "b"]);
    expect(small.receipt.omitted).toEqual([{ path: "c", reason: "too_large" }]);
  });

  test("too many files fail the run with the number and its fix; as many as allowed don't", async () => {
    for (let index = 0; index < 50; index += 1) write(`f${index}`, "");
    await expect(take({ include: ["**"] }, undefined, { maxEntries: 49 })).rejects.toThrow(
      /more than 49 files and folders.*workspace\.maxEntries/,
    );
    expect((await take({ include: ["**"] }, undefined, { maxEntries: 50 })).receipt.files).toHaveLength(50);
  });

  test("a workspace that is too large for a patch fails before the agent starts", async () => {
    write("large", Buffer.alloc(1_048_577));
    const failed = take({ patch: true }, () => expect.unreachable(), { maxBaseMiB: 1 });
    await expect(failed).rejects.toThrow(OutputsFailed);
    await expect(failed).rejects.toThrow(/larger than 1 MiB.*workspace\.maxBaseMiB/);
  });

  test("folders deeper than 100 levels are named, and don't use up descriptors", async () => {
    const deep = Array.from({ length: 300 }, () => "d").join("/");
    write(`${deep}/file`, "x");
    write("a", "x");
    const { receipt } = await take({ include: ["**"] });
    expect(receipt.files.map(({ path }) => path)).toEqual(["a"]);
    expect(receipt.omitted).toMatchObject([{ reason: "too_many" }]);
  });

  test("the receipt's lists don't grow with the paths that an agent makes", async () => {
    const deep = Array.from({ length: 14 }, () => "d".repeat(240)).join("/");
    const make = (count: number) => () => {
      for (let index = 0; index < count; index += 1) write(`${deep}/${index}${"n".repeat(200)}`, "");
    };
    const asked = { include: ["**"], maxFiles: 10_000 };
    expect((await take(asked, make(500))).receipt.files).toHaveLength(500);
    const failed = take(asked, make(2_300));
    await expect(failed).rejects.toThrow(OutputsFailed);
    await expect(failed).rejects.toThrow(/a receipt has at most 8388608: narrow outputs\.include/);
  });
});

describe("a patch", () => {
  /** The workspace at its start with the patch applied by git, and the workspace as the agent left it. */
  async function applied(before: () => void, agent: () => void) {
    before();
    const copy = join(folder, "copy");
    execFileSync("cp", ["-a", workspace, copy]);
    const taken = await take({ patch: true }, agent);
    if (taken.patch.length > 0)
      execFileSync("git", ["apply", "--whitespace=nowarn", "-"], { cwd: copy, input: taken.patch });
    return { ...taken, copy };
  }
  const same = (one: string, other: string) => execFileSync("diff", ["-r", one, other]).toString();

  test("applied to the start gives what the agent left: text, binary, modes, new and deleted files", async () => {
    const binary = Buffer.from(Array.from({ length: 5_000 }, (_, index) => (index * 7919) % 256));
    const { receipt, patch, copy } = await applied(
      () => {
        write("text.txt", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten");
        write("binary", binary);
        write("gone.txt", "gone\n");
        write("gone.bin", binary);
        write("run.sh", "#!/bin/sh\n");
        write("crlf.txt", "a\r\nb\r\n");
        write("latin1.txt", Buffer.from([0x66, 0xfc, 0x72, 0x0a]));
        write("same.txt", "same");
        write("empty-soon", "x\n");
      },
      () => {
        write("text.txt", "one\n2\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\n");
        write("binary", Buffer.concat([binary, Buffer.from([0, 1, 2])]));
        rmSync(join(workspace, "gone.txt"));
        rmSync(join(workspace, "gone.bin"));
        chmodSync(join(workspace, "run.sh"), 0o755);
        write("crlf.txt", "a\r\nc\r\n");
        write("latin1.txt", Buffer.from([0x66, 0xfc, 0x66, 0x0a]));
        write("new/dir/file.txt", "new\n");
        write('quote" and space', "q\n");
        write("empty", "");
        write("empty-soon", "");
        write("no newline", "x");
      },
    );
    expect(same(copy, workspace)).toBe("");
    expect(receipt.patch?.changes.map(({ path, change }) => `${change} ${path}`)).toEqual([
      "modified binary",
      "modified crlf.txt",
      "added empty",
      "modified empty-soon",
      "deleted gone.bin",
      "deleted gone.txt",
      "modified latin1.txt",
      "added new/dir/file.txt",
      "added no newline",
      'added quote" and space',
      "modified run.sh",
      "modified text.txt",
    ]);
    expect(receipt.patch).toMatchObject({ complete: true, size: patch.length, sha256: sha256(patch) });
  });

  test("of a text that changed everywhere is linear, and still applies", async () => {
    const lines = (word: string) =>
      Array.from({ length: 20_000 }, (_, index) => `${word} ${index}\n`).join("");
    const { copy } = await applied(
      () => write("long.txt", lines("old")),
      () => write("long.txt", lines("new")),
    );
    expect(same(copy, workspace)).toBe("");
  });

  test.each([
    // Control: what is compared shows one line.
    [40_000, "\n", /^@@ -19998,7 \+19998,7 @@$/m],
    [60_000, "\n", /^@@ -1,60000 \+1,60000 @@$/m],
    [60_000, "", /^@@ -1,60000 \+1,60000 @@$/m],
  ])("of a text of %i lines that ends with %j still applies", async (count, end, hunk) => {
    const lines = Array.from({ length: count }, (_, index) => String(index % 7));
    const { copy, patch } = await applied(
      () => write("long.txt", lines.join("\n") + end),
      () => write("long.txt", lines.with(20_000, "new").join("\n") + end),
    );
    expect(same(copy, workspace)).toBe("");
    expect(patch.toString()).toMatch(hunk);
  });

  test("isn't made to its end where the run ends meanwhile", async () => {
    const blobs = memoryBlobs();
    const ending = new AbortController();
    let pieces = 0;
    const run = new RunOutputs({
      owner: "run",
      outputs: outputsSchema.parse({ patch: true }),
      settings: workspaceSettingsSchema.parse({}),
      folder: join(folder, "spool"),
      blobs: async () => ({
        ...blobs,
        put: async (_owner, name, content) => {
          for await (const _bytes of content) {
            if (name !== "patch") continue;
            pieces += 1;
            ending.abort(new Error("the run was cancelled"));
          }
        },
      }),
    });
    const sandbox = hostSandbox(workspace);
    try {
      await run.started(sandbox, ending.signal);
      for (const name of ["a", "b", "c"]) write(name, "new\n");
      await expect(run.collect(sandbox, ending.signal)).rejects.toThrow("the run was cancelled");
      expect(pieces).toBe(1);
    } finally {
      await run.close();
    }
  });

  test("leaves out new files that .gitignore excludes, but not changes of others", async () => {
    const { receipt } = await applied(
      () => {
        write(".gitignore", "node_modules/\n*.log\n!keep.log\n");
        write("sub/.gitignore", "!*.log\n");
        write("tracked.txt", "1");
      },
      () => {
        write("node_modules/x/index.js", "x");
        write("debug.log", "x");
        write("keep.log", "x");
        write("sub/sub.log", "x");
        // Hides nothing that was there at the start.
        write(".gitignore", "node_modules/\n*.log\n!keep.log\ntracked.txt\n");
        write("tracked.txt", "2");
      },
    );
    expect(receipt.patch?.changes.map(({ path }) => path)).toEqual([
      ".gitignore",
      "keep.log",
      "sub/sub.log",
      "tracked.txt",
    ]);
  });

  test("names what it can't hold, and says that it isn't complete; links that were there aren't changes", async () => {
    const { receipt } = await applied(
      () => {
        write("a", "1");
        write("b", "1");
        symlinkSync("a", join(workspace, "old-link"));
      },
      () => {
        symlinkSync("a", join(workspace, "new-link"));
        rmSync(join(workspace, "b"));
        symlinkSync("/etc/passwd", join(workspace, "b"));
      },
    );
    expect(receipt.omitted).toEqual([
      { path: "b", reason: "link" },
      { path: "new-link", reason: "link" },
    ]);
    expect(receipt.patch).toMatchObject({ complete: false, changes: [] });
  });

  test("of a workspace without changes is empty", async () => {
    const { receipt, patch } = await applied(
      () => write("a", "1"),
      () => {},
    );
    expect(patch.length).toBe(0);
    expect(receipt.patch).toMatchObject({ complete: true, changes: [], size: 0 });
  });

  test("a folder that became unreadable isn't taken for deleted", async () => {
    write("d/a", "1");
    chmodSync(folder, 0o755);
    // Root reads everything.
    const uid = process.getuid?.() === 0 ? 65_534 : undefined;
    const { receipt } = await take({ patch: true }, () => chmodSync(join(workspace, "d"), 0o000), {}, uid);
    chmodSync(join(workspace, "d"), 0o755);
    expect(receipt.omitted).toEqual([{ path: "d", reason: "unreadable" }]);
    expect(receipt.patch).toMatchObject({ complete: false, changes: [] });
  });
});

test("a file that is written to while it is copied doesn't leave half", async () => {
  // Large enough that the copy waits for its reader.
  write("log", Buffer.alloc(8 * 1024 * 1024, 1));
  write("still", "x");
  const sandbox = hostSandbox(workspace);
  const writing = (() => {
    const spawn: typeof sandbox.spawn = async (command) => {
      const child = await sandbox.spawn(command);
      const timer = setInterval(() => appendFileSync(join(workspace, "log"), "more"), 1);
      void child.exit.finally(() => clearInterval(timer));
      return child;
    };
    return { ...sandbox, spawn };
  })();
  const omitted = await omittedOf(writing);
  expect(omitted).toEqual([{ path: "log", reason: "changed" }]);
  // The control: without a writer.
  expect(await omittedOf(sandbox)).toEqual([]);
});

test.each([
  ["a link to a file outside", "victim", "symlinkSync"],
  ["a file outside, by another name", "victim", "linkSync"],
  ["a link to a folder outside", "victim/secret", "symlinkSync"],
])("what is exchanged for %s before it is opened doesn't leave", async (_, path, exchange) => {
  const [victim] = path.split("/");
  write(path, "inside");
  const outside = join(folder, path.replace("victim", "outside"));
  mkdirSync(dirname(outside), { recursive: true });
  writeFileSync(outside, "outside");
  const hook = join(folder, "exchange.cjs");
  writeFileSync(
    hook,
    `const fs = require("node:fs");
    const open = fs.openSync;
    fs.openSync = (path, ...rest) => {
      if (String(path).endsWith("/victim")) {
        fs.openSync = open;
        fs.rmSync(path, { recursive: true });
        fs.${exchange}(${JSON.stringify(join(folder, "outside"))}, path);
      }
      return open(path, ...rest);
    };`,
  );
  const sandbox = hostSandbox(workspace);
  const spawn: typeof sandbox.spawn = ({ argv: [node, ...rest], ...command }) =>
    sandbox.spawn({ ...command, argv: [node, "--require", hook, ...rest] });
  expect(await omittedOf({ ...sandbox, spawn })).toEqual([{ path: victim, reason: "unreadable" }]);
  // The control: what reads it by its name gets what is outside.
  expect(readFileSync(join(workspace, path), "utf8")).toBe("outside");
});

async function omittedOf(sandbox: Sandbox) {
  const blobs = memoryBlobs();
  const outputs = outputsSchema.parse({ include: ["**"] });
  const settings = workspaceSettingsSchema.parse({});
  const run = new RunOutputs({ owner: "run", outputs, settings, folder, blobs: async () => blobs });
  return (await run.collect(sandbox, new AbortController().signal)).omitted;
}

test.each([
  ["a path outside", '{"type":"file","path":"../x","executable":false,"included":true}'],
  ["a path with a line break", '{"type":"file","path":"a\\nb","executable":false,"included":true}'],
  [
    "a program that git would execute",
    `${JSON.stringify({ type: "file", path: "sub/.GIT/hooks/pre-commit", executable: true, included: true })}\n0\n{"type":"end","whole":true}\n{"type":"done"}`,
  ],
  [
    "one that git would execute on a Mac",
    `${JSON.stringify({ type: "file", path: ".g\u200cit/hooks/pre-commit", executable: true, included: true })}\n0\n{"type":"end","whole":true}\n{"type":"done"}`,
  ],
  [
    "more bytes than were asked for",
    '{"type":"file","path":"a","executable":false,"included":true}\n99999999999',
  ],
  ["a line without an end", "x".repeat(100_000)],
  ["nothing", ""],
])("a sandbox that answers with %s is refused", async (_, answered) => {
  const sandbox = hostSandbox(workspace);
  const lying: Sandbox = {
    ...sandbox,
    spawn: (command) =>
      sandbox.spawn({
        ...command,
        argv: ["node", "-e", `process.stdin.resume();console.log(${JSON.stringify(answered)})`],
      }),
  };
  await expect(omittedOf(lying)).rejects.toThrow(OutputsFailed);
});
