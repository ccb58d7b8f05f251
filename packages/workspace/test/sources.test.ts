import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { SourceFailed } from "@ambit/core";
import { sourceSchema } from "@ambit/core/contract";
import type { FileEntry } from "@ambit/core/plugin";
import { pack } from "tar-stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { preparing } from "../src/preparing.js";
import { archiveEntries } from "../src/sources/archive.js";
import { fillFrom } from "../src/sources/fill.js";
import type { PreparedSource } from "../src/sources/source.js";

async function fill(sources: readonly object[], limits = { maxFiles: 100, maxBytes: 1_000_000 }) {
  const written: FileEntry[] = [];
  const sandbox = {
    workspace: "/workspace",
    writeFiles: async (files: readonly FileEntry[]) => void written.push(...files),
  };
  const parsed = sources.map((source) => sourceSchema.parse(source));
  const { signal } = new AbortController();
  const open = () => Promise.reject(new Error("not part of this test"));
  const downloads = { open, whyNot: () => undefined };
  const prepare = preparing({ open, downloads, folder: tmpdir(), maxEntries: 100, signal });
  const receipts = await fillFrom(parsed, sandbox, limits, signal, prepare);
  return { written, receipts, texts: written.map(({ path, content }) => [path, String(content)]) };
}

const archive = (data: Buffer, more: object = {}) => ({
  type: "archive",
  format: "tar",
  data: data.toString("base64"),
  ...more,
});

/** Made by tar itself. */
function tarOf(make: (folder: string) => void): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "ambit-sources-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  make(folder);
  return execFileSync("tar", ["-c", "-C", folder, "."], { maxBuffer: 100_000_000 });
}

async function tarWith(...names: readonly string[]): Promise<Buffer> {
  const made = pack();
  for (const name of names) made.entry({ name }, "x");
  made.finalize();
  return buffer(Readable.from(made));
}

test("files go into the workspace in their order, text and binary", async () => {
  const { written, receipts } = await fill([
    { type: "files", files: [{ path: "a.txt", content: "ä" }] },
    {
      type: "files",
      into: "bin/",
      files: [{ path: "x", content: "AAE=", encoding: "base64", executable: true }],
    },
  ]);
  expect(written).toEqual([
    { path: "/workspace/a.txt", content: Buffer.from("ä"), executable: false },
    { path: "/workspace/bin/x", content: Buffer.from([0, 1]), executable: true },
  ]);
  expect(receipts).toMatchObject([
    { type: "files", files: 1, bytes: 2, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    { type: "files", files: 1, bytes: 2 },
  ]);
});

describe("an archive", () => {
  const tar = () =>
    tarOf((folder) => {
      mkdirSync(join(folder, "src"));
      writeFileSync(join(folder, "src/run.sh"), "#!/bin/sh\n");
      chmodSync(join(folder, "src/run.sh"), 0o755);
      symlinkSync("/etc/passwd", join(folder, "link"));
      execFileSync("mkfifo", [join(folder, "pipe")]);
    });

  test.each([
    ["tar", (data: Buffer) => data],
    ["tar.gz", gzipSync],
    ["tar.zst", zstdCompressSync],
  ] as const)(
    "of the format %s is unpacked; links and special files are left out by name",
    async (format, packed) => {
      const data = packed(tar());
      const sha256 = createHash("sha256").update(data).digest("hex");
      const { written, receipts } = await fill([archive(data, { format, sha256, into: "in" })]);
      expect(written).toEqual([
        { path: "/workspace/in/src/run.sh", content: Buffer.from("#!/bin/sh\n"), executable: true },
      ]);
      expect(receipts[0]?.omitted).toEqual(
        expect.arrayContaining([
          { path: "link", reason: "link" },
          { path: "pipe", reason: "special" },
        ]),
      );
    },
  );

  /** Attributes of a header of that type, `x`: of the next file, `g`: of all that follow. */
  const attributes = (type: "x" | "g", count: number, isBinary = false): Buffer => {
    const records = Array.from({ length: count }, (_, index) => `10 ${String(index).padStart(5, "0")}=\n`);
    const content = Buffer.from(records.join(""));
    const header = Buffer.alloc(512);
    header.write("attributes", 0);
    if (isBinary) header.writeUInt32BE(content.length, 132);
    else header.write(content.length.toString(8).padStart(11, "0"), 124);
    if (isBinary) header[124] = 0x80;
    header.write(type, 156);
    header.write("ustar\u{0}00", 257);
    header.fill(" ", 148, 156);
    const sum = header.reduce((one, other) => one + other, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\u{0} `, 148);
    return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
  };

  test.each([
    ["of all files", attributes("g", 400), attributes("g", 500)],
    ["of all files, with a size in another form", attributes("g", 400), attributes("g", 400, true)],
    ["of one file", attributes("x", 20_000), attributes("x", 30_000)],
  ])("can't have any number of attributes %s, each of which would be copied", async (_, few, many) => {
    const files = await tarWith("a", "b".repeat(2_000));
    const { texts } = await fill([archive(Buffer.concat([few, files]))]);
    expect(texts).toHaveLength(2);
    const refused = fill([archive(Buffer.concat([many, files]))]);
    await expect(refused).rejects.toMatchObject({
      reason: "invalid",
      message: /without extended attributes/,
    });
  });

  test.each(["../x", "/etc/x", "a/../../x", "a\\b", "a\nb"])("can't place %j", async (name) => {
    const { texts, receipts } = await fill([archive(await tarWith(name, "fine"))]);
    expect(texts).toEqual([["/workspace/fine", "x"]]);
    expect(receipts[0]?.omitted).toMatchObject([{ reason: "name" }]);
  });

  test.each([
    ["damaged", () => [archive(Buffer.from("no archive at all".repeat(100)))], "invalid"],
    ["cut off", () => [archive(tar().subarray(0, 700))], "invalid"],
    ["of another format", () => [archive(tar(), { format: "tar.gz" })], "invalid"],
    ["with another digest", () => [archive(tar(), { sha256: "0".repeat(64) })], "digest_mismatch"],
    [
      "a bomb",
      () => [
        archive(gzipSync(tarOf((folder) => writeFileSync(join(folder, "0"), Buffer.alloc(50_000_000)))), {
          format: "tar.gz",
        }),
      ],
      "too_large",
    ],
    [
      "with too many files",
      () => [
        { type: "files", files: Array.from({ length: 101 }, (_, at) => ({ path: `${at}`, content: "" })) },
      ],
      "too_large",
    ],
    [
      "with a file where it has a folder",
      () => [{ type: "files", files: ["b/c/d", "b/c"].map((path) => ({ path, content: "" })) }],
      "invalid",
    ],
    [
      "with a file twice",
      () => [{ type: "files", files: [1, 2].map(() => ({ path: "a", content: "" })) }],
      "invalid",
    ],
  ] as const)("%s fails with its reason", async (_, sources, reason) => {
    const failed = fill(sources());
    await expect(failed).rejects.toThrow(SourceFailed);
    await expect(failed).rejects.toMatchObject({
      reason,
      message: expect.stringContaining("workspace.sources[0]"),
    });
  });
});

test("a file of one source where another has a folder is named, and one in its place is not", async () => {
  const files = (path: string, into?: string) => ({ type: "files", into, files: [{ path, content: path }] });
  await expect(fill([files("a"), files("b", "a")])).rejects.toMatchObject({
    reason: "invalid",
    message:
      "workspace.sources[1] has 'b', and 'a' is both a file and a folder, of the sources or harnessFiles",
  });
  await expect(fill([files("a/b"), files("b", "a")])).resolves.toBeDefined();
});

test.each(["a", "a/b/c"])(
  "a file where one of the request's own needs a folder, or the other way round: %s",
  async (later) => {
    const sources = [sourceSchema.parse({ type: "files", files: [{ path: "a/b", content: "" }] })];
    const prepare = async () => ({
      entries: (async function* () {
        yield { path: "a/b", content: new Uint8Array(), executable: false };
      })(),
      facts: {},
      close: async () => {},
    });
    const written = { workspace: "/workspace", writeFiles: async () => {} };
    const filled = fillFrom(
      sources,
      written,
      { maxFiles: 9, maxBytes: 9 },
      new AbortController().signal,
      prepare,
      [later],
    );
    await expect(filled).rejects.toMatchObject({
      code: "source_failed",
      reason: "invalid",
      message: expect.stringContaining("workspace.sources[0] has 'a/b', and 'a"),
    });
  },
);

describe("a failure that isn't the archive's", () => {
  const sources = [sourceSchema.parse(archive(Buffer.from("x")))];
  const fillWith = (entries: PreparedSource["entries"], write: () => Promise<void> = async () => {}) =>
    fillFrom(
      sources,
      { workspace: "/workspace", writeFiles: write },
      { maxFiles: 100, maxBytes: 1_000_000 },
      new AbortController().signal,
      async () => ({ facts: {}, entries, close: async () => {} }),
    );

  test.each(["tar", "tar.gz", "tar.zst", "zip"] as const)(
    "keeps its meaning where the bytes of a %s can't be read",
    async (format) => {
      const failure = new TypeError("a mistake of the program");
      const bytes = {
        size: 100_000,
        // biome-ignore lint/correctness/useYield: it fails before.
        read: async function* () {
          throw failure;
        },
      };
      await expect(fillWith(archiveEntries(bytes, format, 1_000_000))).rejects.toBe(failure);
    },
  );

  test("keeps its meaning where a module can't be loaded, or files can't be written", async () => {
    const failure = new TypeError("a mistake of the program");
    // biome-ignore lint/correctness/useYield: it fails before.
    async function* failing() {
      throw failure;
    }
    await expect(fillWith(failing())).rejects.toBe(failure);
    const file = { path: "a", content: Buffer.from("x"), executable: false };
    await expect(fillWith([file], () => Promise.reject(failure))).rejects.toBe(failure);
  });
});

describe("a zip archive", () => {
  /** Made by Python: names that the program zip wouldn't write, and modes. */
  function zipOf(script: string): Buffer {
    const program = `
import io, sys, warnings, zipfile
warnings.simplefilter("ignore")
out = io.BytesIO()
archive = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED)
def add(name, content, mode=0o100644):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    archive.writestr(info, content, zipfile.ZIP_DEFLATED)
${script}
archive.close()
sys.stdout.buffer.write(out.getvalue())`;
    skipWithout("python");
    return execFileSync("python3", ["-c", program], { maxBuffer: 100_000_000 });
  }
  const zip = (data: Buffer) => [archive(data, { format: "zip" })];

  test("is unpacked; links, special files and names that lead elsewhere are left out by name", async () => {
    const { texts, written, receipts } = await fill(
      zip(
        zipOf(`
add("src/", "")
add("src/run.sh", "#!/bin/sh\\n", 0o100755)
add("ä.txt", "text")
add("link", "/etc/passwd", 0o120777)
add("pipe", "", 0o010644)
for name in ["../x", "/etc/x", "a/../../x", "a\\\\b"]: add(name, "x")`),
      ),
    );
    expect(texts).toEqual([
      ["/workspace/src/run.sh", "#!/bin/sh\n"],
      ["/workspace/ä.txt", "text"],
    ]);
    expect(written.map(({ executable }) => executable)).toEqual([true, false]);
    expect(receipts[0]?.omitted?.map(({ reason }) => reason)).toEqual([
      ...["link", "special", "name", "name", "name", "name"],
    ]);
  });

  test.each<[what: string, data: () => Buffer, reason: string]>([
    ["that is none", () => Buffer.from("PK".repeat(1_000)), "invalid"],
    ["that is cut off", () => zipOf('add("a", "b" * 1000)').subarray(0, 40), "invalid"],
    ["with a file twice", () => zipOf('add("a", "1"); add("a", "2")'), "invalid"],
    ["with a file below a file", () => zipOf('add("a", "1"); add("a/b", "2")'), "invalid"],
    ["that is a bomb", () => zipOf('add("a", "0" * 50_000_000)'), "too_large"],
    [
      "of many files that are one together",
      () => zipOf('for at in range(90): add(str(at), "0" * 20_000)'),
      "too_large",
    ],
    ["with too many files", () => zipOf('for at in range(101): add(str(at), "")'), "too_large"],
    [
      "whose content is longer than it says",
      () => {
        const data = zipOf('add("a", "0" * 5_000)');
        // The size in the central directory.
        data.writeUInt32LE(10, data.lastIndexOf("PK\x01\x02", undefined, "latin1") + 24);
        return data;
      },
      "invalid",
    ],
  ])("%s fails with its reason", async (_, data, reason) => {
    await expect(fill(zip(data()))).rejects.toMatchObject({ reason });
  });
});
