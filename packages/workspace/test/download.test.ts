import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { SourceFailed } from "@ambit/core";
import { sourceSchema } from "@ambit/core/contract";
import type { FileEntry } from "@ambit/core/plugin";
import { pack } from "tar-stream";
import { describe, expect, onTestFinished, test } from "vitest";
import type { OpenDownload, OpenedDownload } from "../src/download.js";
import { whyNotReached } from "../src/git/sandbox-of.js";
import { preparing } from "../src/preparing.js";
import { fillFrom } from "../src/sources/fill.js";

const url = "https://files.example/app.tar.gz?X-Amz-Signature=signature-of-the-test";
const value = "token-of-the-test";

async function tarOf(content = "text"): Promise<Buffer> {
  const made = pack();
  made.entry({ name: "a.txt" }, content);
  made.finalize();
  return gzipSync(await buffer(Readable.from(made)));
}
const digestOf = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

type Answer = Partial<OpenedDownload> | Error;

/** Fills from one archive, whose host gives these answers in their order. */
async function fill(answers: readonly Answer[], more: object, maxBytes = 100_000) {
  const folder = mkdtempSync(join(tmpdir(), "ambit-download-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const asked: { url: string; headers: Readonly<Record<string, string>> }[] = [];
  const closed: string[] = [];
  const open: OpenDownload = async ({ url: at, headers }) => {
    const { href } = at;
    const answer = answers[asked.length];
    asked.push({ url: href, headers });
    if (answer instanceof Error) throw answer;
    const nothing = { status: 500, location: undefined, size: undefined, content: Readable.from([]) };
    return { ...nothing, ...answer, close: () => void closed.push(href) };
  };
  const written: FileEntry[] = [];
  const sandbox = {
    workspace: "/workspace",
    writeFiles: async (files: readonly FileEntry[]) => void written.push(...files),
  };
  const { signal } = new AbortController();
  const prepare = preparing({
    open: () => Promise.reject(new Error("no sandbox is needed")),
    downloads: {
      open,
      whyNot: (at) => whyNotReached({ url: at }, { allowedRanges: [], whyForbidden: () => undefined }),
    },
    folder,
    maxEntries: 100,
    signal,
  });
  const source = sourceSchema.parse({ type: "archive", format: "tar.gz", url, ...more });
  const filled = fillFrom([source], sandbox, { maxFiles: 10, maxBytes }, signal, prepare);
  const [receipts, error] = await filled.then(
    (done) => [done, undefined],
    (reason: unknown) => [undefined, reason],
  );
  // Nothing is left on disk or open, however it ended.
  expect(readdirSync(folder)).toEqual([]);
  expect(closed).toHaveLength(answers.filter((answer) => !(answer instanceof Error)).length);
  const failed = error instanceof SourceFailed ? { reason: error.reason, message: error.message } : error;
  return { receipts, failed, asked, texts: written.map(({ path, content }) => [path, String(content)]) };
}

const ok = (bytes: Buffer, more: Partial<OpenedDownload> = {}): Answer => ({
  status: 200,
  content: Readable.from([bytes.subarray(0, 10), bytes.subarray(10)]),
  ...more,
});
const to = (location: string, status = 302): Answer => ({ status, location });

describe("an archive of a URL", () => {
  test("comes in with its digest, and the receipt names it without its query", async () => {
    const bytes = await tarOf();
    const sha256 = digestOf(bytes);
    const { receipts, texts } = await fill([ok(bytes)], { sha256, into: "src" });
    expect(texts).toEqual([["/workspace/src/a.txt", "text"]]);
    expect(receipts).toMatchObject([
      {
        type: "archive",
        url: "https://files.example/app.tar.gz",
        archive: { bytes: bytes.length, sha256 },
        files: 1,
      },
    ]);
  });

  test("isn't unpacked with another digest", async () => {
    const { failed, texts } = await fill([ok(await tarOf("other"))], { sha256: digestOf(await tarOf()) });
    expect(failed).toMatchObject({ reason: "digest_mismatch" });
    expect(texts).toEqual([]);
  });

  test.each([
    ["bearer", { authorization: `Bearer ${value}` }],
    ["basic", { authorization: `Basic ${Buffer.from(`x-access-token:${value}`).toString("base64")}` }],
  ])("gets its credential as %j at its own origin only", async (as, header) => {
    const bytes = await tarOf();
    const { asked } = await fill(
      [
        to("/moved", 308),
        to("https://files.example:8443/other"),
        to("https://files.example/back"),
        ok(bytes),
      ],
      { sha256: digestOf(bytes), credential: { value, as } },
    );
    expect(asked.map(({ url: at }) => at)).toEqual([
      url,
      "https://files.example/moved",
      "https://files.example:8443/other",
      "https://files.example/back",
    ]);
    const sent = asked.map(({ headers }) =>
      JSON.stringify(headers).includes(Object.values(header)[0] ?? "?"),
    );
    // Also not when another origin leads back.
    expect(sent).toEqual([true, true, false, false]);
    expect(asked[0]?.headers).toMatchObject(header);
  });

  test.each([
    ["plain HTTP", "http://files.example/app"],
    ["plain HTTP at an address", "http://10.0.0.1/app"],
    ["a file", "file:///etc/passwd"],
    ["a credential in it", "https://user:password@files.example/"],
    ["no URL", "https://"],
  ])("follows no redirect to %s", async (_what, location) => {
    const { failed, asked } = await fill([to(location)], { sha256: digestOf(await tarOf()) });
    expect(failed).toMatchObject({ reason: "unreachable", message: expect.stringMatching(/redirect/) });
    expect(asked).toHaveLength(1);
  });

  test("follows five redirects and no more", async () => {
    const redirects = Array.from({ length: 6 }, (_, at) => to(`/${at}`));
    const { failed, asked } = await fill(redirects, { sha256: digestOf(await tarOf()) });
    expect(failed).toMatchObject({ reason: "unreachable", message: expect.stringMatching(/more than 5/) });
    expect(asked).toHaveLength(6);
  });

  test.each([
    [401, "authentication"],
    [403, "forbidden"],
    [404, "not_found"],
    [410, "not_found"],
    [206, "unreachable"],
    [304, "unreachable"],
    [503, "unreachable"],
  ])("with the status %i fails as %s", async (status, reason) => {
    const { failed } = await fill([{ status }], { sha256: digestOf(await tarOf()) });
    expect(failed).toMatchObject({ reason, message: expect.stringContaining(`HTTP ${status}`) });
  });

  test("that doesn't come, or not whole, fails without telling addresses", async () => {
    const sha256 = digestOf(await tarOf());
    const refused = await fill([new Error("files.example: 10.1.2.3 is private")], { sha256 });
    expect(refused.failed).toMatchObject({ reason: "unreachable" });
    expect(JSON.stringify(refused.failed)).not.toContain("10.1.2.3");
    const cut = async function* () {
      yield Buffer.from("begun");
      throw new Error("cut");
    };
    const broken = await fill([{ status: 200, content: cut() }], { sha256 });
    expect(broken.failed).toMatchObject({ reason: "unreachable", message: expect.stringMatching(/cut off/) });
  });

  test("is given up where it is too large, announced or not", async () => {
    const sha256 = digestOf(await tarOf());
    let sent = 0;
    const endless = async function* () {
      for (;;) {
        sent += 1_000;
        yield Buffer.alloc(1_000);
      }
    };
    const huge = await fill([{ status: 200, content: endless() }], { sha256 }, 5_000);
    expect(huge.failed).toMatchObject({ reason: "too_large" });
    expect(sent).toBe(6_000);
    const announced = await fill([{ status: 200, size: 5_001, content: endless() }], { sha256 }, 5_000);
    expect(announced.failed).toMatchObject({ reason: "too_large" });
    expect(sent).toBe(6_000);
  });
});

describe("an archive source", () => {
  const sha256 = "0".repeat(64);
  const issuesOf = (source: object) =>
    sourceSchema
      .safeParse({ type: "archive", format: "zip", ...source })
      .error?.issues.map(({ path }) => path.join("."));

  test("is either data or a URL with its digest", () => {
    expect(issuesOf({ data: "" })).toBeUndefined();
    expect(issuesOf({ url, sha256 })).toBeUndefined();
    expect(issuesOf({})).toEqual(["data"]);
    expect(issuesOf({ url })).toEqual(["sha256"]);
    expect(issuesOf({ url, sha256, data: "" })).toEqual(["url"]);
    expect(issuesOf({ data: "", credential: { value } })).toEqual(["credential"]);
  });

  test.each([
    "ftp://files.example/a",
    "https://u:p@files.example/a",
    "https://files.example/a#b",
    "https://a\nb/",
  ])("has no URL such as %j", (other) => expect(issuesOf({ url: other, sha256 })).toEqual(["url"]));
});
