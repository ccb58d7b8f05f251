import type { HiddenCredential } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { bindCredential, placeholderFor } from "../../src/credentials/bound.js";
import { type CredentialVerdict, judgeCredentials } from "../../src/credentials/judge.js";

const here = { host: "git.example.com", kind: "name", port: 443 } as const;
const value = `ghp_${"aaaabbbb".repeat(5)}`;

interface Sent {
  readonly method?: string;
  readonly url?: string;
  readonly headers: (placeholder: string) => readonly string[];
}

function judge(
  more: Partial<HiddenCredential>,
  { method = "GET", url = "/", headers }: Sent,
): CredentialVerdict {
  const bound = bindCredential({ name: "TOKEN", value, hosts: ["git.example.com"], as: "bearer", ...more });
  const rawHeaders = ["Host", "git.example.com", ...headers(bound.placeholder)];
  return judgeCredentials({ method, url: url.replace("{}", bound.placeholder), rawHeaders }, here, [bound]);
}

const sentIn = (verdict: CredentialVerdict) =>
  verdict.verdict === "pass" ? verdict.rawHeaders.slice(2) : verdict;
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
const refused = { verdict: "refuse", reason: expect.stringContaining("TOKEN") };
const bearer = (placeholder: string) => ["authorization", `Bearer ${placeholder}`];

describe("a placeholder is replaced", () => {
  it.each<[string, Partial<HiddenCredential>, Sent["headers"], readonly string[]]>([
    ["as a bearer", {}, bearer, ["authorization", `Bearer ${value}`]],
    ["as gh sends it", {}, (ph) => ["Authorization", `token ${ph}`], ["Authorization", `token ${value}`]],
    [
      "as a password",
      { as: "basic" },
      (ph) => ["Authorization", basic(`x-access-token:${ph}`)],
      ["Authorization", basic(`x-access-token:${value}`)],
    ],
    [
      "as a user without a password",
      { as: "basic" },
      (ph) => ["Authorization", basic(`${ph}:`)],
      ["Authorization", basic(`${value}:`)],
    ],
    [
      "with a user of its own",
      { as: "basic", value: "robot:a-long-password" },
      (ph) => ["Authorization", basic(`anybody:${ph}`)],
      ["Authorization", basic("robot:a-long-password")],
    ],
    [
      "in a header of its own",
      { as: { header: "X-Api-Key" } },
      (ph) => ["x-api-key", ph],
      ["x-api-key", value],
    ],
    ["in a header of model providers", modelKey(), (ph) => ["x-goog-api-key", ph], ["x-goog-api-key", value]],
    ["as a model's bearer", modelKey(), bearer, ["authorization", `Bearer ${value}`]],
  ])("%s", (_what, more, headers, wanted) => {
    expect(sentIn(judge(more, { headers }))).toEqual(wanted);
  });

  it("and a request without one stays unchanged", () => {
    const headers = () => ["authorization", "Bearer of something else", "cookie", "a=b"];
    expect(sentIn(judge({ access: "read", methods: ["GET"] }, { method: "DELETE", headers }))).toEqual(
      headers(),
    );
  });
});

function modelKey(): Partial<HiddenCredential> {
  return Object.assign(Object.create(null), { as: undefined });
}

describe("a placeholder is refused", () => {
  it.each<[string, Partial<HiddenCredential>, Sent]>([
    ["for another host", { hosts: ["other.example.com"] }, { headers: bearer }],
    ["for another port", { hosts: ["git.example.com:8443"] }, { headers: bearer }],
    ["in another header", {}, { headers: (ph) => ["x-api-key", ph] }],
    [
      "in another header, encoded",
      {},
      { headers: (ph) => ["x-a", Buffer.from(`a:${ph}`).toString("base64")] },
    ],
    [
      "in another header, escaped",
      {},
      { headers: (ph) => ["x-a", `%${ph.charCodeAt(0).toString(16)}${ph.slice(1)}`] },
    ],
    ["in a cookie", {}, { headers: (ph) => ["cookie", `a=${ph}`] }],
    ["in Basic where it is a bearer", {}, { headers: (ph) => ["authorization", basic(`u:${ph}`)] }],
    ["in Bearer where it is basic", { as: "basic" }, { headers: bearer }],
    ["as a part of the header", {}, { headers: (ph) => ["authorization", `Bearer ${ph}, Bearer x`] }],
    ["as a part of the password", { as: "basic" }, { headers: (ph) => ["authorization", basic(`u:${ph}x`)] }],
    ["in a header that occurs twice", {}, { headers: (ph) => [...bearer(ph), "Authorization", "Bearer x"] }],
    ["twice", {}, { headers: (ph) => [...bearer(ph), ...bearer(ph)] }],
    ["as a header's name", {}, { headers: (ph) => [ph, "x"] }],
    ["in the path", {}, { url: "/a/{}", headers: () => [] }],
    ["in the query beside its header", {}, { url: "/a?key={}", headers: bearer }],
    ["with another method", { methods: ["GET"] }, { method: "POST", headers: bearer }],
    ["on another path", { paths: ["/acme/*"] }, { url: "/acmes", headers: bearer }],
    ["below an exact path", { paths: ["/acme"] }, { url: "/acme/x", headers: bearer }],
    ["on a path that leads out", { paths: ["/acme/*"] }, { url: "/acme/../other", headers: bearer }],
    [
      "on a path with an encoded way out",
      { paths: ["/acme/*"] },
      { url: "/acme/%2e%2e/other", headers: bearer },
    ],
    [
      "with a header that changes the method",
      { methods: ["GET"] },
      overridden("x-http-method-override", "DELETE"),
    ],
    ["with a header that changes the path", { paths: ["/*"] }, overridden("x-original-url", "/other")],
    ["to push", { access: "read" }, { url: "/a.git/info/refs?service=git-receive-pack", headers: bearer }],
    ...[
      "X_HTTP_METHOD_OVERRIDE",
      "X-HTTP-Method",
      "x_method_override",
      "X_Original_URL",
      "X-Forwarded-Path",
    ].map((name): [string, Partial<HiddenCredential>, Sent] => [
      `with ${name}`,
      { paths: ["/acme/*"] },
      { url: "/acme/x", ...overridden(name, "/other") },
    ]),
    [
      "to move to another path",
      { paths: ["/acme/*"] },
      { method: "MOVE", url: "/acme/x", ...overridden("Destination", "/other") },
    ],
    ...[
      "_method=DELETE",
      "a=b&_METHOD=put",
      "%5fmethod=delete",
      "x-http-method-override=PUT",
      "method=delete",
    ].flatMap((query): [string, Partial<HiddenCredential>, Sent][] => {
      const sent = { url: `/acme/x?${query}`, headers: bearer };
      return [
        [`with ?${query} under paths`, { paths: ["/acme/*"] }, sent],
        [`with ?${query} under access`, { access: "read" }, sent],
        [`with ?${query} under methods`, { methods: ["GET"] }, sent],
      ];
    }),
    ...[
      "%c0%ae%c0%ae/other",
      "%e0%80%ae./other",
      "%u002e%u002e/other",
      "..%09/other",
      "%09../other",
      "..%20/other",
      "...%20/other",
      ".%2e/other",
      "%252e%252e/other",
      "..%5cother",
      "..\\other",
      "..;/other",
      "..%3b/other",
      "x%2f..%2f..%2fother",
      "%ef%bc%8e%ef%bc%8e/other",
      "..%ef%bc%8fother",
      "..%00/other",
      "..%c2%85/other",
      "./other",
      "/other",
      "%2",
      "@acme%2f..%2fother",
      "@acme%2f%2e%2e/other",
      "x%2fy",
    ].map((path): [string, Partial<HiddenCredential>, Sent] => [
      `on /acme/${path}`,
      { paths: ["/acme/*"] },
      { url: `/acme/${path}`, headers: bearer },
    ]),
    ["on another package's path", { paths: ["/@acme/*"] }, { url: "/@acmes%2fname", headers: bearer }],
    [
      "behind an encoded slash that leads out",
      { paths: ["/projects/acme%2F*"] },
      { url: "/projects/acme%2F..%2Fother", headers: bearer },
    ],
    [
      "behind an encoded slash that leads out plainly",
      { paths: ["/projects/acme%2F*"] },
      { url: "/projects/acme%2F../other", headers: bearer },
    ],
    [
      "to push, escaped",
      { access: "read" },
      { url: "/a.git/info/refs?service=git%2dreceive%2Dpack", headers: bearer },
    ],
    [
      "to send a push",
      { access: "read" },
      { method: "POST", url: "/a.git/git-receive-pack", headers: bearer },
    ],
    ["to write", { access: "read" }, { method: "POST", url: "/repos", headers: bearer }],
    ["to delete", { access: "read" }, { method: "DELETE", url: "/repos/a", headers: bearer }],
    [
      "to write by a parameter",
      { access: "read" },
      { method: "POST", url: "/w;/git-upload-pack", headers: bearer },
    ],
    ["to lock", { access: "read" }, { method: "POST", url: "/a.git/info/lfs/locks/verify", headers: bearer }],
  ])("%s", (_what, more, sent) => {
    expect(judge(more, sent)).toEqual(refused);
  });

  function overridden(name: string, text: string): Sent {
    return { headers: (ph) => [...bearer(ph), name, text] };
  }
});

describe("a path is within the limits", () => {
  it.each([
    ["/acme/*", "/acme/x"],
    ["/acme/*", "/acme/"],
    ["/acme/*", "/acme/x/"],
    ["/acme/*", "/acme/a%20b/%C3%A9?q=..%2f"],
    ["/acme/*", "/acme/a@b:c+d,(e)/.well-known/...x"],
    ["/acme*", "/acmes/x"],
    ["/acme", "/acme"],
    // npm asks for a package with a scope in this way.
    ["/@acme/*", "/@acme%2fname"],
    ["/@acme/*", "/@acme%2Fname/1.0.0"],
    ["/@acme/name", "/@acme%2fname"],
    ["/npm/@acme/*", "/npm/@acme%2fname"],
    ["/@acme%2f*", "/@acme%2Fname"],
    ["/-/package/@acme/*", "/-/package/@acme%2fname/dist-tags"],
    // GitLab's ids of projects.
    ["/api/v4/projects/acme%2Fapp/*", "/api/v4/projects/acme%2fapp/issues?state=opened"],
    ["/api/v4/projects/acme%2F*", "/api/v4/projects/acme%2fapp/issues"],
  ])("%s has %s", (pattern, url) => {
    expect(judge({ paths: [pattern] }, { url, headers: bearer })).toMatchObject({ verdict: "pass" });
  });

  it.each([
    ["a parameter of the API's own methods", "/rest?method=photos.search"],
    ["an id with an encoded slash", "/api/v4/projects/acme%2Fapp"],
  ])("for reading with %s", (_what, url) => {
    expect(judge({ access: "read" }, { url, headers: bearer })).toMatchObject({ verdict: "pass" });
  });
});

describe("reading", () => {
  it.each([
    ["GET", "/a.git/info/refs?service=git-upload-pack", undefined],
    ["POST", "/a.git/git-upload-pack", undefined],
    ["HEAD", "/repos/a", undefined],
    ["POST", "/a.git/info/lfs/objects/batch", "lfs-download"],
  ])("%s %s is let through", (method, url, body) => {
    expect(judge({ access: "read" }, { method, url, headers: bearer })).toMatchObject({
      verdict: "pass",
      ...(body === undefined ? {} : { body }),
    });
  });
});

describe("a placeholder", () => {
  it.each([
    [`ghp_${"0a".repeat(18)}`, /^ghp_[A-Za-z0-9]{36}$/],
    [`sk-ant-oat01-${"0a".repeat(22)}`, /^sk-ant-oat01-[A-Za-z0-9]{44}$/],
    ["0123456789abcdef0123456789abcdef01234567", /^[0-9a-f]{40}$/],
    ["a password", /^[A-Za-z0-9]{32}$/],
  ])("has the shape of %s, and nothing of it", (given, shape) => {
    const made = placeholderFor(given);
    expect(made).toMatch(shape);
    expect(placeholderFor(given)).not.toBe(made);
  });

  it("for a web token can be decoded, and reveals nothing", () => {
    const part = (content: object) => Buffer.from(JSON.stringify(content)).toString("base64url");
    const [, claims = ""] = placeholderFor(`${part({ alg: "RS256" })}.${part({ email: "a@b" })}.c2ln`).split(
      ".",
    );
    expect(Object.keys(JSON.parse(Buffer.from(claims, "base64url").toString()))).toEqual(["jti", "exp"]);
  });
});

describe("access to git's services", () => {
  const oid = "0".repeat(64);
  const refs = (service: string): readonly [string, string] => [
    "GET",
    `/a.git/info/refs?service=git-${service}-pack`,
  ];
  const asked = {
    fetch: [refs("upload"), ["POST", "/a.git/git-upload-pack"]],
    push: [refs("receive"), ["POST", "/a.git/git-receive-pack"]],
    lfs: [
      ["POST", "/a.git/info/lfs/objects/batch"],
      ["GET", `/a.git/info/lfs/objects/${oid}`],
      ["GET", `/a/info/lfs/objects/${oid}`],
      ["GET", `/a.git/gitlab-lfs/objects/${oid}`],
    ],
    both: [
      ["PUT", `/a.git/gitlab-lfs/objects/${oid}/12`],
      ["PUT", `/a.git/info/lfs/objects/${oid}/12`],
      ["POST", "/a.git/info/lfs/locks/verify"],
      ["POST", "/a.git/info/lfs/verify"],
    ],
    none: [
      ["GET", "/a.git"],
      ["GET", "/a.git/info/refs"],
      ["GET", "/a.git/info/refs?service=git-upload-pack&service=git-receive-pack"],
      ["GET", "/a.git/info/refs?service=git%2Dreceive-pack"],
      ["POST", "/a.git/info/refs?service=git-upload-pack"],
      ["POST", "/a.git/git-upload-pack?x=1"],
      ["POST", "/a.git/git-upload-pack/x"],
      ["POST", "/api/v4/user"],
      ["PUT", "/a.git/git-receive-pack"],
      ["GET", "/a.git/info/lfs/objects/x"],
      ["GET", "/a.git/gitlab-lfs/objects/x"],
      ["GET", `/a.git/gitlab-lfs/${oid}`],
      ["POST", "/a/..%2Fb/git-upload-pack"],
      ["POST", "/a/../b/git-upload-pack"],
    ],
  } as const;
  const may = (access: HiddenCredential["access"], [method, url]: readonly [string, string]) =>
    judge({ access }, { method, url, headers: bearer });

  it.each<[readonly ("fetch" | "push" | "lfs")[], readonly (keyof typeof asked)[]]>([
    [["fetch"], ["fetch"]],
    [["push"], ["push"]],
    [["lfs"], ["lfs"]],
    [
      ["fetch", "lfs"],
      ["fetch", "lfs"],
    ],
    [
      ["fetch", "push"],
      ["fetch", "push"],
    ],
    [
      ["push", "lfs"],
      ["push", "lfs", "both"],
    ],
  ])("%j is for %j alone", (access, allowed) => {
    for (const [service, requests] of Object.entries(asked)) {
      const isAllowed = allowed.some((one) => one === service);
      for (const request of requests)
        expect(may([...access], request), `${access} ${request}`).toMatchObject({
          verdict: isAllowed ? "pass" : "refuse",
        });
    }
  });

  it.each<readonly [method: string, url: string]>([
    ["GET", `/a.git/gitlab-lfs/objects/${oid}`],
    ["PUT", `/a.git/info/lfs/objects/${oid}/12`],
    ["POST", "/a.git/info/lfs/verify"],
    ["GET", `/storage/lfs/7/objects/${oid}`],
    ["GET", `/rest/git-lfs/storage/acme/app/${oid}?response-content-disposition=attachment`],
  ])("sends one Authorization with %s %s, the server's if it told git LFS one", (method, url) => {
    const keysOf = (headers: (placeholder: string) => readonly string[]) => {
      const judged = judge({}, { method, url, headers });
      if (judged.verdict === "refuse") return judged.reason;
      const keys = judged.rawHeaders.filter(
        (_text, at, all) => all[at - 1]?.toLowerCase() === "authorization",
      );
      return { keys, names: judged.names.length };
    };
    const own = [`Bearer ${value}`];
    expect(keysOf(bearer)).toEqual({ keys: own, names: 1 });
    // A server that repeats the header of the batch.
    expect(keysOf((ph) => [...bearer(ph), ...bearer(ph)])).toEqual({ keys: own, names: 1 });
    // One that makes its own: the credential isn't sent.
    for (const told of ["RemoteAuth abc", basic("acme:abc")])
      expect(keysOf((ph) => [...bearer(ph), "Authorization", told])).toEqual({ keys: [told], names: 0 });
    // Which of these it takes, nothing says.
    expect(keysOf((ph) => [...bearer(ph), "Authorization", basic(`u:${ph}`)])).toMatch(/occurs twice/);
    expect(keysOf((ph) => ["Authorization", "a", ...bearer(ph), "Authorization", "b"])).toMatch(
      /occurs twice/,
    );
  });

  it("takes a repository's path for all below it, and for no repository beside it", () => {
    const on = (url: string) =>
      judge({ access: ["fetch"], paths: ["/acme/a.git"] }, { url, headers: bearer }).verdict;
    expect(on("/acme/a.git/info/refs?service=git-upload-pack")).toBe("pass");
    expect(on("/acme/a.github/info/refs?service=git-upload-pack")).toBe("refuse");
    expect(on("/acme/a.git/../b.git/info/refs?service=git-upload-pack")).toBe("refuse");
  });

  it("takes from a batch of git LFS only what is a download, unless it may push too", () => {
    const [batch] = asked.lfs;
    expect(may(["lfs"], batch)).toMatchObject({ verdict: "pass", body: "lfs-download" });
    expect(may(["lfs", "push"], batch)).toMatchObject({ verdict: "pass", body: undefined });
  });
});
