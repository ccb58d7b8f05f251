import { runRequestSchema, sourceSchema } from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import { gitFailureOf, lastWords } from "../../src/git/failure.js";
import { lfsContentsIn, submodulesIn, submoduleUrl, treeEntries } from "../../src/git/tree.js";

import { Workspaces, workspaceSettingsSchema } from "../../src/index.js";

const id = "a".repeat(40);

test.each([
  ["fatal: could not read Username for 'https://a': terminal prompts disabled", "authentication"],
  ["fatal: Authentication failed for 'https://a/b'", "authentication"],
  [
    "remote: You may not.\nfatal: unable to access 'https://a/': The requested URL returned error: 403",
    "forbidden",
  ],
  ["fatal: unable to access 'https://a/': Received HTTP code 403 from proxy after CONNECT", "unreachable"],
  ["fatal: unable to access 'https://a/': Could not resolve host: a", "unreachable"],
  [
    "fatal: unable to access 'https://a/': server certificate verification failed. CAfile: none",
    "unreachable",
  ],
  ["fatal: repository 'https://a/b/' not found", "not_found"],
  ["fatal: couldn't find remote ref nowhere", "ref_missing"],
  ["fatal: remote error: upload-pack: not our ref aaaa", "ref_missing"],
  ["error: Server does not allow request for unadvertised object aaaa", "ref_missing"],
  ["fatal: write error: No space left on device", "too_large"],
  ["fatal: fetch-pack: invalid index-pack output\nerror: index-pack died of signal 25", "too_large"],
  ["sh: 1: exec: git: not found", "program_missing"],
  ["git-lfs filter-process: 1: git-lfs: not found", "program_missing"],
  ["fatal: fsck error in packed object", "checkout_failed"],
])("%j is the failure %s", (printed, reason) => {
  expect(gitFailureOf(printed)).toMatchObject({ reason, fix: expect.stringMatching(/\w/) });
});

test("the last words of git are one short line without control characters", () => {
  expect(lastWords(`hint: x\n\u001b[31mone\u0007\n\n two ${"y".repeat(1_000)}`)).toMatch(/^[ -~]{1,400}$/);
});

test.each([
  ["../part", "https://a.example/acme/part"],
  ["./part.git", "https://a.example/acme/app/part.git"],
  ["https://a.example/x/y", "https://a.example/x/y"],
  ["git@a.example:x/y.git", "https://a.example/x/y.git"],
  ["ssh://git@a.example/x/y.git", "https://a.example/x/y.git"],
  ["https:\\\\a.example\\@b.example/x", "https://a.example/@b.example/x"],
  ["https://b.example/x", undefined],
  ["https://a.example:8443/x", undefined],
  ["https://user:word@a.example/x", undefined],
  ["http://a.example/x", undefined],
  ["file:///etc", undefined],
  ["ext::sh -c touch", undefined],
  ["--upload-pack=touch", undefined],
])("a submodule at %j is fetched from %j", (url, expected) => {
  expect(submoduleUrl(url, "https://a.example/acme/app")).toBe(expected);
});

test("a submodule is a path and a URL; other settings of .gitmodules don't count", () => {
  const listed =
    "submodule.a.b.path\nvendor/a\0submodule.a.b.url\n../a\0submodule.a.b.update\n!touch x\0core.fsmonitor\ntouch x\0";
  expect(submodulesIn(listed)).toEqual([{ path: "vendor/a", url: "../a" }]);
});

test("a list of a tree is read, and anything else refused", () => {
  const listed = `100644 blob ${id}      12\tsrc/a b.txt\x00160000 commit ${id}       -\tvendor\x00`;
  expect(treeEntries(Buffer.from(listed))).toEqual([
    { mode: "100644", type: "blob", id, size: 12, path: "src/a b.txt" },
    { mode: "160000", type: "commit", id, size: 0, path: "vendor" },
  ]);
  for (const other of ["x\0", listed.slice(0, -1), `100644 tree ${id} 1\ta\0`])
    expect(() => treeEntries(Buffer.from(other))).toThrow("a list of a tree");
});

test("every file that git LFS takes for a pointer counts with its size", () => {
  const pointer = (version: string, size: number) =>
    `version ${version}\noid sha256:${"0".repeat(64)}\nsize ${size}\n`;
  const contents = [
    pointer("https://git-lfs.github.com/spec/v1", 1),
    `\n${pointer("https://hawser.github.com/spec/v1", 20)}`,
    pointer("http://git-media.io/v/2", 300).replaceAll("\n", "\r\n"),
    "size 4000\n",
    "",
  ];
  const printed = contents.map((content) => `${id} blob ${content.length}\n${content}\n`).join("");
  expect(lfsContentsIn(Buffer.from(printed))).toEqual({
    bytes: 321,
    digests: new Set(["0".repeat(64)]),
  });
  expect(() => lfsContentsIn(Buffer.from(`${id} missing\n`))).toThrow("can't be read");
});

const unused = () => Promise.reject(new Error("no request is sent"));

describe("the sandbox of git", () => {
  const workspaces = (allowedRanges: readonly string[] = []) =>
    new Workspaces({
      settings: workspaceSettingsSchema.parse({ allowedRanges }),
      folder: "/",
      preparedFolder: "/",
      blobs: undefined,
      whyForbidden: (address) =>
        /^(?:127|10)\.|^::1$/.test(address) && !allowedRanges.includes(`${address}/32`)
          ? `${address} is not public`
          : undefined,
      send: unused,
      openDownload: unused,
      snapshots: undefined,
    });
  const asking = (source: object, more: object = {}) =>
    runRequestSchema.parse({
      workspace: { sources: [sourceSchema.parse({ type: "git", ...source })] },
      ...more,
    });
  const own = (request: ReturnType<typeof asking>, ranges?: readonly string[]) =>
    workspaces(ranges).ownSandboxes(request).get(0);

  test("reaches its host and port, with the credential for the repository's fetch alone", () => {
    const url = "https://git.example/acme/app.git";
    const credential = { value: "token-of-the-test" };
    const request = asking({ url, credential }, { sandboxPermission: { resources: { memoryMb: 512 } } });
    expect(own(request)).toEqual({
      subject: "workspace.sources[0]",
      backend: "any",
      boundary: {
        network: {
          mode: "allowlist",
          rules: [{ kind: "host", name: "git.example", subdomains: false, port: 443 }],
        },
        filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
        resources: { memoryMb: 512 },
        secrets: "hidden",
        enforcement: "strict",
      },
      secrets: [
        {
          name: "AMBIT_SOURCE_CREDENTIAL",
          value: "token-of-the-test",
          hosts: ["git.example:443"],
          as: "basic",
          paths: ["/acme/app/*", "/acme/app.git/*"],
          access: ["fetch"],
        },
      ],
    });
  });

  test("reaches the hosts of git LFS and the operator's private ranges at that port only", () => {
    const request = asking({ url: "https://git.example:8443/a/b", lfs: { hosts: ["lfs.example"] } });
    expect(own(request, ["10.0.0.0/8"])?.boundary).toMatchObject({
      network: {
        rules: [
          { name: "git.example", port: 8443 },
          { cidr: "10.0.0.0/8", port: 8443 },
          { name: "lfs.example", port: 443 },
          { cidr: "10.0.0.0/8", port: 443 },
        ],
      },
      secrets: "visible",
    });
  });

  test("never reaches an address that the request names and the operator's policy refuses", () => {
    const rules = (url: string, ranges: readonly string[] = []) =>
      own(asking({ url }), ranges)?.boundary.network;
    expect(rules("https://127.0.0.1/a")).toMatchObject({ rules: [] });
    expect(rules("https://127.0.0.1/a", ["127.0.0.1/32"])).toMatchObject({
      rules: [{ cidr: "127.0.0.1/32", port: 443 }],
    });
  });

  test.each([
    [{ url: "http://git.example/a" }, ["127.0.0.0/8"], /HTTP is only for addresses/],
    [{ url: "http://127.0.0.1/a" }, [], /HTTP is only for addresses/],
    [
      { url: "http://127.0.0.1/a", credential: { value: "token-of-the-test" } },
      ["127.0.0.0/8"],
      /only over TLS/,
    ],
    [{ url: "http://127.0.0.1/a" }, ["127.0.0.0/8"], undefined],
    [{ url: "http://10.0.0.1/a" }, ["127.0.0.0/8"], /HTTP is only for addresses/],
    [{ url: "https://127.0.0.1/a" }, [], /127\.0\.0\.1 is not public; workspace\.allowedRanges/],
    [{ url: "https://2130706433/a" }, [], /127\.0\.0\.1 is not public/],
    [{ url: "https://0x7f.1:8443/a" }, [], /127\.0\.0\.1 is not public/],
    [{ url: "https://[::1]/a" }, [], /::1 is not public/],
    [{ url: "https://127.0.0.1/a" }, ["127.0.0.1/32"], undefined],
    [{ url: "https://93.184.216.34/a" }, [], undefined],
  ])("of %j with the ranges %j is refused: %s", (source, ranges, message) => {
    const issues = workspaces(ranges).issues(asking(source));
    const expected = { path: "workspace.sources[0].url", message: expect.stringMatching(message ?? /^$/) };
    expect(issues).toEqual(message === undefined ? [] : [expected]);
  });
});
