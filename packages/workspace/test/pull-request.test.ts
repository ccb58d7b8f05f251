import type { Forge, OutputsRequest } from "@ambit/core/contract";
import { describe, expect, test } from "vitest";
import type { ApiRequest } from "../src/forge/api.js";
import { forgeAt, openPullRequest, placeAt, whyNoPullRequest } from "../src/forge/pull-request.js";

type Wish = NonNullable<NonNullable<OutputsRequest["git"]>["pullRequest"]>;
interface Answer {
  readonly status: number;
  readonly content: unknown;
}

/** A host that gives these answers: the first whose key the method and the path's end are. */
function opening(
  url: string,
  answers: Readonly<Record<string, Answer | readonly Answer[]>>,
  wish: Partial<Wish> = {},
  value = "robot:a-token-of-the-host",
) {
  const asked: { readonly line: string; readonly authorization?: string; readonly body?: unknown }[] = [];
  const times = new Map<string, number>();
  const send = async ({ method, url: at, headers, body }: ApiRequest) => {
    const { authorization } = headers;
    asked.push({
      line: `${method} ${at.href}`,
      ...(authorization === undefined ? {} : { authorization }),
      ...(body === undefined ? {} : { body: JSON.parse(body) }),
    });
    const line = `${method} ${at.pathname}`;
    const key = Object.keys(answers).find((end) => {
      const [of = "", path = ""] = end.split(" ");
      return line.startsWith(of) && line.endsWith(path);
    });
    const listed = [answers[key ?? ""] ?? { status: 404, content: {} }].flat();
    const time = times.get(key ?? "") ?? 0;
    times.set(key ?? "", time + 1);
    const { status, content } = listed[Math.min(time, listed.length - 1)] ?? { status: 404, content: {} };
    return { status, body: typeof content === "string" ? content : JSON.stringify(content) };
  };
  const output = {
    push: "branch" as const,
    branch: "fix/one",
    message: "Fix it",
    author: { name: "A", email: "a@example.com" },
    credential: { value, as: "basic" as const },
    pullRequest: { title: "Fix", body: "Because.", base: "main", draft: true, labels: [], ...wish },
  };
  const pushed = { url, branch: "fix/one" };
  return { asked, opened: openPullRequest(output, pushed, send, new AbortController().signal) };
}

const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
const dataCenterRepository = { slug: "app", project: { key: "ACME" } };

/** What each host is asked, and what it answers: of its public documentation. */
const hosts: readonly {
  readonly forge: Forge;
  readonly url: string;
  /** Of the repository in its API. */
  readonly api: string;
  readonly pulls: string;
  readonly authorization: string;
  readonly body: object;
  readonly created: unknown;
  readonly web: string;
  /** How it says that one is open, and how it shows that; undefined: it is asked first. */
  readonly duplicate?: Answer;
  readonly list: unknown;
  readonly query: Readonly<Record<string, string>>;
  readonly refusal: Answer;
}[] = [
  {
    forge: "github",
    url: "https://github.com/acme/app.git",
    api: "https://api.github.com/repos/acme/app",
    pulls: "/pulls",
    authorization: "Bearer a-token-of-the-host",
    body: { title: "Fix", body: "Because.", head: "fix/one", base: "main", draft: true },
    created: { html_url: "https://github.com/acme/app/pull/7", number: 7 },
    web: "https://github.com/acme/app/pull/7",
    duplicate: {
      status: 422,
      content: {
        message: "Validation Failed",
        errors: [
          {
            resource: "PullRequest",
            code: "custom",
            message: "A pull request already exists for acme:fix/one.",
          },
        ],
      },
    },
    list: [{ html_url: "https://github.com/acme/app/pull/7", number: 7 }],
    query: { state: "open", head: "acme:fix/one", base: "main" },
    refusal: { status: 403, content: { message: "Resource not accessible by personal access token" } },
  },
  {
    forge: "gitlab",
    url: "https://gitlab.com/acme/group/app.git",
    api: "https://gitlab.com/api/v4/projects/acme%2Fgroup%2Fapp",
    pulls: "/merge_requests",
    authorization: "Bearer a-token-of-the-host",
    body: {
      source_branch: "fix/one",
      target_branch: "main",
      title: "Draft: Fix",
      description: "Because.",
    },
    created: { id: 1_007, iid: 7, web_url: "https://gitlab.com/acme/group/app/-/merge_requests/7" },
    web: "https://gitlab.com/acme/group/app/-/merge_requests/7",
    duplicate: {
      status: 409,
      content: { message: ["Another open merge request already exists for this source branch: !7"] },
    },
    list: [{ iid: 7, web_url: "https://gitlab.com/acme/group/app/-/merge_requests/7" }],
    query: { state: "opened", source_branch: "fix/one", target_branch: "main" },
    refusal: { status: 401, content: { message: "401 Unauthorized" } },
  },
  {
    forge: "gitea",
    url: "https://codeberg.org/acme/app.git",
    api: "https://codeberg.org/api/v1/repos/acme/app",
    pulls: "/pulls",
    authorization: "token a-token-of-the-host",
    body: { title: "WIP: Fix", body: "Because.", head: "fix/one", base: "main" },
    created: {
      html_url: "https://codeberg.org/acme/app/pulls/7",
      number: 7,
      head: { ref: "fix/one" },
      base: { ref: "main" },
    },
    web: "https://codeberg.org/acme/app/pulls/7",
    duplicate: {
      status: 409,
      content: {
        message:
          "pull request already exists for these targets [id: 281, issue_id: 281, head_repo_id: 1, base_repo_id: 1, head_branch: fix/one, base_branch: main]",
        url: "https://codeberg.org/api/swagger",
      },
    },
    list: [
      {
        html_url: "https://codeberg.org/acme/app/pulls/6",
        number: 6,
        head: { ref: "fix/one" },
        base: { ref: "next" },
      },
      {
        html_url: "https://codeberg.org/acme/app/pulls/7",
        number: 7,
        head: { ref: "fix/one" },
        base: { ref: "main" },
      },
    ],
    query: { state: "open", sort: "recentupdate" },
    refusal: { status: 404, content: { message: "The target couldn't be found.", errors: [] } },
  },
  {
    forge: "bitbucket",
    url: "https://bitbucket.org/acme/app.git",
    api: "https://api.bitbucket.org/2.0/repositories/acme/app",
    pulls: "/pullrequests",
    authorization: basic("robot:a-token-of-the-host"),
    body: {
      title: "Fix",
      description: "Because.",
      source: { branch: { name: "fix/one" } },
      destination: { branch: { name: "main" } },
      draft: true,
    },
    created: {
      id: 7,
      draft: true,
      links: { html: { href: "https://bitbucket.org/acme/app/pull-requests/7" } },
    },
    web: "https://bitbucket.org/acme/app/pull-requests/7",
    list: {
      values: [{ id: 7, links: { html: { href: "https://bitbucket.org/acme/app/pull-requests/7" } } }],
    },
    query: {
      q: 'state = "OPEN" AND source.branch.name = "fix/one" AND source.repository.full_name = "acme/app" AND destination.branch.name = "main"',
    },
    refusal: {
      status: 400,
      content: {
        type: "error",
        error: { fields: { source: ["branch not found: fix/one"] }, message: "source: branch not found" },
      },
    },
  },
  {
    forge: "bitbucket-data-center",
    url: "https://git.example.com/bitbucket/scm/ACME/app.git",
    api: "https://git.example.com/bitbucket/rest/api/1.0/projects/ACME/repos/app",
    pulls: "/pull-requests",
    authorization: "Bearer a-token-of-the-host",
    body: {
      title: "Fix",
      description: "Because.",
      fromRef: { id: "refs/heads/fix/one", repository: dataCenterRepository },
      toRef: { id: "refs/heads/main", repository: dataCenterRepository },
      draft: true,
    },
    created: {
      id: 7,
      draft: true,
      toRef: { id: "refs/heads/main" },
      links: {
        self: [{ href: "https://git.example.com/bitbucket/projects/ACME/repos/app/pull-requests/7" }],
      },
    },
    web: "https://git.example.com/bitbucket/projects/ACME/repos/app/pull-requests/7",
    duplicate: {
      status: 409,
      content: {
        errors: [
          {
            context: null,
            message: "Only one pull request may be open for a given source and target branch",
            exceptionName: "com.atlassian.bitbucket.pull.DuplicatePullRequestException",
            existingPullRequest: { id: 7 },
          },
        ],
      },
    },
    list: {
      isLastPage: true,
      values: [
        { id: 6, toRef: { id: "refs/heads/next" }, links: { self: [{ href: "https://git.example.com/6" }] } },
        {
          id: 7,
          toRef: { id: "refs/heads/main" },
          links: {
            self: [{ href: "https://git.example.com/bitbucket/projects/ACME/repos/app/pull-requests/7" }],
          },
        },
      ],
    },
    query: { state: "OPEN", direction: "OUTGOING", at: "refs/heads/fix/one" },
    refusal: {
      status: 409,
      content: {
        errors: [
          {
            context: null,
            message: 'Branch "refs/heads/main" is already up-to-date with branch "refs/heads/fix/one"',
            exceptionName: "com.atlassian.bitbucket.pull.EmptyPullRequestException",
          },
        ],
      },
    },
  },
  {
    forge: "azure",
    url: "https://dev.azure.com/acme/project/_git/app",
    api: "https://dev.azure.com/acme/project/_apis/git/repositories/app",
    pulls: "/pullrequests",
    authorization: basic(":a-token-of-the-host"),
    body: {
      sourceRefName: "refs/heads/fix/one",
      targetRefName: "refs/heads/main",
      title: "Fix",
      description: "Because.",
      isDraft: true,
    },
    created: {
      pullRequestId: 7,
      isDraft: true,
      repository: { webUrl: "https://dev.azure.com/acme/project/_git/app" },
    },
    web: "https://dev.azure.com/acme/project/_git/app/pullrequest/7",
    duplicate: {
      status: 409,
      content: {
        $id: "1",
        message: "TF401179: An active pull request for the source and target branch already exists.",
        typeName: "Microsoft.TeamFoundation.Git.Server.GitPullRequestExistsException",
        typeKey: "GitPullRequestExistsException",
        errorCode: 0,
      },
    },
    list: {
      count: 2,
      value: [
        { pullRequestId: 6, forkSource: {}, repository: { webUrl: "https://dev.azure.com/x" } },
        { pullRequestId: 7, repository: { webUrl: "https://dev.azure.com/acme/project/_git/app" } },
      ],
    },
    query: {
      "searchCriteria.status": "active",
      "searchCriteria.sourceRefName": "refs/heads/fix/one",
      "searchCriteria.targetRefName": "refs/heads/main",
    },
    refusal: {
      status: 404,
      content: {
        $id: "1",
        message:
          "TF401019: The Git repository with name or identifier app does not exist or you do not have permissions.",
        typeKey: "GitRepositoryNotFoundException",
      },
    },
  },
];

describe.each(hosts)("a pull request at $forge", (host) => {
  const { forge, url, api, pulls, duplicate, list } = host;
  const told = { host: forge };
  const empty = { status: 200, content: Array.isArray(list) ? [] : { values: [], value: [] } };
  const created = { [`POST ${pulls}`]: { status: 201, content: host.created }, [`GET ${pulls}`]: empty };

  test("is asked for in its form, and read", async () => {
    const { asked, opened } = opening(url, created, told);
    expect(await opened).toEqual({ url: host.web, number: 7, opened: true });
    const sent = asked.find(({ line }) => line.startsWith("POST"));
    expect(sent?.line.split("?")[0]).toBe(`POST ${api}${pulls}`);
    expect(sent?.authorization).toBe(host.authorization);
    expect(sent?.body).toEqual(host.body);
  });

  test("that is open is taken, and isn't changed", async () => {
    const { asked, opened } = opening(
      url,
      {
        ...(duplicate === undefined ? {} : { [`POST ${pulls}`]: duplicate }),
        [`GET ${pulls}`]: { status: 200, content: list },
      },
      told,
    );
    expect(await opened).toEqual({ url: host.web, number: 7, opened: false });
    expect(asked.filter(({ line }) => line.startsWith("POST"))).toHaveLength(duplicate === undefined ? 0 : 1);
    const query = new URL((asked.at(-1)?.line ?? "").replace("GET ", "")).searchParams;
    expect(Object.fromEntries(query)).toMatchObject(host.query);
  });

  test("that is refused says what the host said", async () => {
    const { opened } = opening(url, { [`POST ${pulls}`]: host.refusal, [`GET ${pulls}`]: empty }, told);
    const failure = await opened.catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "outputs_failed", reason: "pull_request_failed" });
    expect(String(failure)).toContain(`HTTP ${host.refusal.status}`);
    expect(String(failure)).toContain("The branch 'fix/one' is pushed");
  });

  test("says to sign in where the host answers with its page for that", async () => {
    const page = { status: 203, content: "<!DOCTYPE html>" };
    const { opened } = opening(url, { [`POST ${pulls}`]: page, [`GET ${pulls}`]: page }, told);
    await expect(opened).rejects.toThrow(/HTTP 203 without JSON.*credential/);
  });

  test("with a user and a password sends them as Basic", async () => {
    const credential = { value: "alice@acme.example:secret" };
    const { asked, opened } = opening(url, created, { ...told, credential });
    await opened;
    expect(asked.map(({ authorization }) => authorization)).toContain(basic("alice@acme.example:secret"));
  });
});

describe("labels", () => {
  const github = "https://github.com/acme/app.git";
  const gitea = "https://codeberg.org/acme/app.git";
  const azure = "https://dev.azure.com/acme/project/_git/app";
  const answerOf = (forge: Forge) => ({
    status: 201,
    content: hosts.find((host) => host.forge === forge)?.created,
  });

  test("are added where the host takes them afterwards", async () => {
    const labels = { "POST /labels": { status: 200, content: [{ name: "robot" }, { name: "fix" }] } };
    const wish = { labels: ["robot", "fix"] };
    const atGithub = opening(github, { "POST /pulls": answerOf("github"), ...labels }, wish);
    expect(await atGithub.opened).toMatchObject({ opened: true });
    expect(atGithub.asked[1]).toMatchObject({
      line: "POST https://api.github.com/repos/acme/app/issues/7/labels",
      body: wish,
    });
    const atAzure = opening(azure, { "POST /pullrequests": answerOf("azure"), ...labels }, wish);
    expect(await atAzure.opened).toMatchObject({ opened: true });
    expect(atAzure.asked.slice(1).map(({ body }) => body)).toEqual([{ name: "robot" }, { name: "fix" }]);
  });

  test("that the host leaves out in silence are named, and the pull request as open", async () => {
    const labels = { "POST /labels": { status: 200, content: [{ name: "fix" }] } };
    const { opened } = opening(
      gitea,
      { "POST /pulls": answerOf("gitea"), ...labels },
      { labels: ["robot", "fix"] },
    );
    await expect(opened).rejects.toMatchObject({
      reason: "pull_request_failed",
      message: expect.stringMatching(/pulls\/7 is open, but .*no label 'robot'/),
    });
  });

  test("that are refused name the pull request as open", async () => {
    const refused = { "POST /labels": { status: 403, content: { message: "no rights" } } };
    const { opened } = opening(
      github,
      { "POST /pulls": answerOf("github"), ...refused },
      { labels: ["robot"] },
    );
    await expect(opened).rejects.toMatchObject({
      code: "outputs_failed",
      reason: "pull_request_failed",
      message: expect.stringMatching(/pull\/7 is open.*HTTP 403.*no rights.*labels/),
    });
  });
});

test("a draft that its host opened as a whole pull request is named as open", async () => {
  const { forge, url, created } =
    hosts.find((host) => host.forge === "bitbucket-data-center") ?? hosts[0] ?? {};
  const content = { ...Object(created), draft: undefined };
  const { opened } = opening(url ?? "", { "POST /pull-requests": { status: 201, content } }, { host: forge });
  await expect(opened).rejects.toThrow(/pull-requests\/7 is open, but it isn't a draft/);
});

test.each([
  ["x-token-auth:a-token", "Bearer a-token"],
  ["a-token", "Bearer a-token"],
  ["acme-admin:a-token", basic("acme-admin:a-token")],
])("Bitbucket Cloud gets the credential %s of the push as it takes it", async (value, authorization) => {
  const host = hosts.find(({ forge }) => forge === "bitbucket");
  const answers = {
    "GET /pullrequests": { status: 200, content: { values: [] } },
    "POST /pullrequests": { status: 201, content: host?.created },
  };
  const { asked, opened } = opening(host?.url ?? "", answers, {}, value);
  await opened;
  expect(new Set(asked.map((sent) => sent.authorization))).toEqual(new Set([authorization]));
});

test("Azure DevOps gets a token of Microsoft Entra as Bearer", async () => {
  const jwt = "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2lnbmF0dXJl";
  const host = hosts.find(({ forge }) => forge === "azure");
  const created = { "POST /pullrequests": { status: 201, content: host?.created } };
  const { asked, opened } = opening(host?.url ?? "", created, { credential: { value: jwt } });
  await opened;
  expect(asked[0]?.authorization).toBe(`Bearer ${jwt}`);
});

test.each(["github", "azure"] as const)(
  "a refusal of %s that echoes the token doesn't show a part of it where it is cut",
  async (forge) => {
    const host = hosts.find((each) => each.forge === forge);
    const echo = { message: `${"x".repeat(380)} a-token-of-the-host` };
    const { opened } = opening(host?.url ?? "", { [`POST ${host?.pulls}`]: { status: 400, content: echo } });
    const failure = await opened.catch((error: unknown) => error);
    expect(failure).toMatchObject({ message: expect.stringContaining("xxx ") });
    expect(String(failure)).not.toContain("a-to");
  },
);

test("only hosts that are listed are known", () => {
  const at = (host: string) => forgeAt(`https://${host}/acme/app`, undefined);
  expect(
    ["gitlab.com", "codeberg.org", "bitbucket.org", "dev.azure.com", "acme.visualstudio.com"].map(at),
  ).toEqual(["gitlab", "gitea", "bitbucket", "azure", "azure"]);
  expect(["constructor", "visualstudio.com", "evil-bitbucket.org", "git.example.com"].map(at)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test.each<[url: string, forge: Forge, apiUrl: string | undefined, at: string | undefined]>([
  [
    "https://git.example.com/acme/app.git",
    "github",
    undefined,
    "https://git.example.com/api/v3/repos/acme/app",
  ],
  ["https://git.example.com/a/b/app.git", "github", undefined, undefined],
  ["https://git.example.com/app.git", "gitlab", undefined, undefined],
  // Below a folder of its site.
  [
    "https://example.com/git/acme/app.git",
    "gitea",
    "https://example.com/git/api/v1/",
    "https://example.com/git/api/v1/repos/acme/app",
  ],
  [
    "https://git.example.com/scm/~alice/app.git",
    "bitbucket-data-center",
    undefined,
    "https://git.example.com/rest/api/1.0/projects/~alice/repos/app",
  ],
  ["https://git.example.com/acme/app.git", "bitbucket-data-center", undefined, undefined],
  [
    "https://dev.azure.com/acme/_git/app",
    "azure",
    undefined,
    "https://dev.azure.com/acme/app/_apis/git/repositories/app",
  ],
  [
    "https://acme.visualstudio.com/DefaultCollection/_git/app",
    "azure",
    undefined,
    "https://acme.visualstudio.com/DefaultCollection/app/_apis/git/repositories/app",
  ],
  [
    "https://acme.visualstudio.com/project/_git/app",
    "azure",
    undefined,
    "https://acme.visualstudio.com/project/_apis/git/repositories/app",
  ],
  [
    "https://tfs.example.com/tfs/Collection/project/_git/app",
    "azure",
    undefined,
    "https://tfs.example.com/tfs/Collection/project/_apis/git/repositories/app",
  ],
  ["https://dev.azure.com/acme/project", "azure", undefined, undefined],
])("the API of %s, told to be %s with %s, is %s", (url, forge, apiUrl, at) => {
  const place = placeAt(url, forge, apiUrl);
  expect(place && `${place.base}${place.repository}`).toBe(at);
});

test("what a host can't do is refused by its field", () => {
  const field = (url: string, host: Forge | undefined, more: Partial<Pick<Wish, "labels" | "body">> = {}) =>
    whyNoPullRequest(url, { host, apiUrl: undefined, labels: [], body: "", ...more })?.field;
  const azure = "https://dev.azure.com/acme/project/_git/app";
  expect(field("https://git.example.com/acme/app", undefined)).toBe("host");
  expect(field("https://git.example.com/acme/app", "azure")).toBe("host");
  expect(field("https://git.example.com/acme/app", "gitea")).toBeUndefined();
  expect(field("https://bitbucket.org/acme/app", undefined, { labels: ["robot"] })).toBe("labels");
  expect(field(azure, undefined, { labels: ["robot"] })).toBeUndefined();
  expect(field(azure, undefined, { body: "x".repeat(4_001) })).toBe("body");
});
