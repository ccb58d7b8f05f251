import { z } from "zod";

/** One that was opened. */
export interface Pull {
  readonly repository: string;
  readonly head: string;
  readonly base: string;
  readonly title: string;
  readonly draft: boolean;
  readonly body: string;
  readonly labels: string[];
  readonly number: number;
}

export interface Asked {
  readonly method: string;
  /** With its query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

export interface Answer {
  readonly status: number;
  readonly content: unknown;
}

/** As docs.github.com/rest/pulls/pulls has it: other fields are refused here, so that a misspelt one is noticed. */
const githubSchema = z.strictObject({
  title: z.string().min(1),
  head: z.string().min(1),
  base: z.string().min(1),
  body: z.string().optional(),
  draft: z.boolean().optional(),
  maintainer_can_modify: z.boolean().optional(),
});
const githubLabels = z.strictObject({ labels: z.array(z.string()).min(1) });
/** As docs.gitlab.com/api/merge_requests has it. */
const gitlabSchema = z.strictObject({
  source_branch: z.string().min(1),
  target_branch: z.string().min(1),
  title: z.string().min(1).max(255),
  description: z.string().optional(),
  labels: z.string().optional(),
});
/** As gitea.com/api/swagger has it. */
const giteaSchema = z.strictObject({
  title: z.string().min(1),
  head: z.string().min(1),
  base: z.string().min(1),
  body: z.string().optional(),
});
/** As developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests has it. */
const bitbucketBranch = z.strictObject({ branch: z.strictObject({ name: z.string().min(1) }) });
const bitbucketSchema = z.strictObject({
  title: z.string().min(1),
  description: z.string().optional(),
  source: bitbucketBranch,
  destination: bitbucketBranch,
  draft: z.boolean().optional(),
});
/** As developer.atlassian.com/server/bitbucket/rest has it. */
const dataCenterRef = z.strictObject({
  id: z.string().startsWith("refs/heads/"),
  repository: z.strictObject({ slug: z.string(), project: z.strictObject({ key: z.string() }) }),
});
const dataCenterSchema = z.strictObject({
  title: z.string().min(1),
  description: z.string().optional(),
  fromRef: dataCenterRef,
  toRef: dataCenterRef,
  draft: z.boolean().optional(),
});
/** As learn.microsoft.com/rest/api/azure/devops/git/pull-requests/create has it. */
const azureSchema = z.strictObject({
  sourceRefName: z.string().startsWith("refs/heads/"),
  targetRefName: z.string().startsWith("refs/heads/"),
  title: z.string().min(1),
  description: z.string().max(4_000).optional(),
  isDraft: z.boolean().optional(),
});

/**
 * Pull requests as each host has them, with the paths of its API below `/api/v3` (GitHub Enterprise), `/api/v4` (GitLab), `/api/v1`
 * (Gitea), `/api/2.0` (Bitbucket Cloud), `/rest/api/1.0` (Bitbucket Data Center) and an organization (Azure DevOps).
 *
 * @param hasBranch whether a repository has a branch
 * @param mayOpen whether this token may open one there
 */
export function pullRequests(
  hasBranch: (repository: string, branch: string) => boolean,
  mayOpen: (token: string, repository: string) => boolean,
) {
  const pulls: Pull[] = [];

  function add(pull: Omit<Pull, "number">): Pull | undefined {
    if (pulls.some((one) => isSame(one, pull))) return undefined;
    const opened = { ...pull, number: pulls.length + 1 };
    pulls.push(opened);
    return opened;
  }

  function github(asked: Asked, path: string, query: URLSearchParams): Answer {
    const [, repository = "", what = ""] = /^\/repos\/([^/]+\/[^/]+)(\/.*)$/.exec(path) ?? [];
    const refused = (status: number, message: string, errors: readonly object[] = []) => ({
      status,
      content: { message, errors, documentation_url: "https://docs.github.com/rest", status: `${status}` },
    });
    if (asked.headers["user-agent"] === undefined)
      return refused(403, "Request forbidden by administrative rules.");
    if (!mayOpen(tokenOf(asked), repository)) return refused(401, "Bad credentials");
    const shown = (pull: Pull) => ({
      html_url: `https://forge.test/${pull.repository}/pull/${pull.number}`,
      number: pull.number,
      state: "open",
      draft: pull.draft,
    });
    if (what === "/pulls" && asked.method === "GET") {
      const found = pulls.filter(
        ({ head, base, repository: at }) =>
          at === repository &&
          query.get("state") === "open" &&
          query.get("head") === `${repository.split("/")[0]}:${head}` &&
          query.get("base") === base,
      );
      return { status: 200, content: found.map(shown) };
    }
    if (what === "/pulls" && asked.method === "POST") {
      const wish = githubSchema.safeParse(JSON.parse(asked.body));
      if (!wish.success) return refused(422, "Invalid request.");
      const { title, head, base, body = "", draft = false } = wish.data;
      const invalid = (field: string) =>
        refused(422, "Validation Failed", [{ resource: "PullRequest", field, code: "invalid" }]);
      if (!hasBranch(repository, head)) return invalid("head");
      if (!hasBranch(repository, base)) return invalid("base");
      const pull = add({ repository, title, head, base, body, draft, labels: [] });
      if (pull !== undefined) return { status: 201, content: shown(pull) };
      const message = `A pull request already exists for ${repository.split("/")[0]}:${head}.`;
      return refused(422, "Validation Failed", [{ resource: "PullRequest", code: "custom", message }]);
    }
    const [, number] = /^\/issues\/(\d+)\/labels$/.exec(what) ?? [];
    const labelled = pulls.find((pull) => pull.number === Number(number));
    const wish = labelled && githubLabels.safeParse(JSON.parse(asked.body));
    if (labelled === undefined || wish?.success !== true || asked.method !== "POST")
      return refused(404, "Not Found");
    labelled.labels.push(...wish.data.labels);
    return { status: 200, content: labelled.labels.map((name) => ({ name })) };
  }

  function gitlab(asked: Asked, path: string, query: URLSearchParams): Answer {
    const [, encoded = ""] = /^\/projects\/([^/]+)\/merge_requests$/.exec(path) ?? [];
    const repository = decodeURIComponent(encoded);
    if (!mayOpen(tokenOf(asked), repository))
      return { status: 401, content: { message: "401 Unauthorized" } };
    const shown = (pull: Pull) => ({
      id: 1_000 + pull.number,
      iid: pull.number,
      web_url: `https://forge.test/${pull.repository}/-/merge_requests/${pull.number}`,
      state: "opened",
    });
    if (asked.method === "GET") {
      const found = pulls.filter(
        ({ head, base, repository: at }) =>
          at === repository &&
          query.get("state") === "opened" &&
          query.get("source_branch") === head &&
          query.get("target_branch") === base,
      );
      return { status: 200, content: found.map(shown) };
    }
    const wish = gitlabSchema.safeParse(JSON.parse(asked.body));
    if (!wish.success) return { status: 400, content: { error: wish.error.message } };
    const {
      title,
      source_branch: head,
      target_branch: base,
      description: body = "",
      labels = "",
    } = wish.data;
    if (!hasBranch(repository, base))
      return { status: 400, content: { message: { validate_branches: ["Target branch does not exist"] } } };
    const draft = /^draft:/i.test(title);
    const pull = add({ repository, title, head, base, body, draft, labels: labels.split(",") });
    if (pull !== undefined) return { status: 201, content: shown(pull) };
    const message = ["Another open merge request already exists for this source branch: !1"];
    return { status: 409, content: { message } };
  }

  function gitea(asked: Asked, path: string, query: URLSearchParams): Answer {
    const [, repository = "", what = ""] = /^\/repos\/([^/]+\/[^/]+)(\/.*)$/.exec(path) ?? [];
    const refused = (status: number, message: string) => ({
      status,
      content: { message, url: "https://forge.test/api/swagger" },
    });
    const [, token = ""] = /^token (\S+)$/.exec(String(asked.headers.authorization)) ?? [];
    if (!mayOpen(token, repository)) return refused(401, "user does not exist [uid: 0, name: ]");
    const shown = (pull: Pull) => ({
      html_url: `https://forge.test/${pull.repository}/pulls/${pull.number}`,
      number: pull.number,
      state: "open",
      draft: pull.draft,
      head: { label: pull.head, ref: pull.head },
      base: { label: pull.base, ref: pull.base },
    });
    const at = pulls.filter((pull) => pull.repository === repository);
    if (what === "/pulls" && asked.method === "GET")
      return { status: 200, content: query.get("state") === "open" ? at.map(shown) : [] };
    if (what === "/pulls" && asked.method === "POST") {
      const wish = giteaSchema.safeParse(JSON.parse(asked.body));
      if (!wish.success) return refused(422, wish.error.message);
      const { title, head, base, body = "" } = wish.data;
      if (!hasBranch(repository, head) || !hasBranch(repository, base))
        return refused(404, "The target couldn't be found.");
      const draft = /^(?:WIP:|\[WIP\])/i.test(title);
      const pull = add({ repository, title, head, base, body, draft, labels: [] });
      if (pull !== undefined) return { status: 201, content: shown(pull) };
      const ids = `id: 281, issue_id: 281, head_repo_id: 1, base_repo_id: 1`;
      const branches = `head_branch: ${head}, base_branch: ${base}`;
      return refused(409, `pull request already exists for these targets [${ids}, ${branches}]`);
    }
    const [, number] = /^\/issues\/(\d+)\/labels$/.exec(what) ?? [];
    const labelled = pulls.find((pull) => pull.number === Number(number));
    const wish = labelled && githubLabels.safeParse(JSON.parse(asked.body));
    if (labelled === undefined || wish?.success !== true) return refused(404, "");
    // Those that the repository doesn't have are left out, in silence.
    labelled.labels.push(...wish.data.labels.filter((label) => label !== "unknown"));
    return { status: 200, content: labelled.labels.map((name, id) => ({ id, name })) };
  }

  function bitbucket(asked: Asked, path: string, query: URLSearchParams): Answer {
    const [, repository = ""] = /^\/repositories\/([^/]+\/[^/]+)\/pullrequests$/.exec(path) ?? [];
    const refused = (status: number, message: string, fields?: object) => ({
      status,
      content: { type: "error", error: { message, ...(fields === undefined ? {} : { fields }) } },
    });
    if (!mayOpen(tokenOf(asked), repository))
      return refused(401, "Token is invalid, expired, or not supported for this endpoint.");
    const shown = (pull: Pull) => ({
      type: "pullrequest",
      id: pull.number,
      state: "OPEN",
      draft: pull.draft,
      links: {
        html: { href: `https://forge.test/${pull.repository}/pull-requests/${pull.number}` },
      },
    });
    if (asked.method === "GET") {
      const [, head, from, base] =
        /^state = "OPEN" AND source\.branch\.name = "(.*?)" AND source\.repository\.full_name = "(.*?)" AND destination\.branch\.name = "(.*?)"$/.exec(
          query.get("q") ?? "",
        ) ?? [];
      const values = pulls.filter((pull) =>
        from === repository
          ? isSame(pull, { ...pull, repository, head: head ?? "", base: base ?? "" })
          : false,
      );
      return {
        status: 200,
        content: { pagelen: 10, size: values.length, page: 1, values: values.map(shown) },
      };
    }
    const wish = bitbucketSchema.safeParse(JSON.parse(asked.body));
    if (!wish.success) return refused(400, "Bad request", {});
    const { title, description: body = "", source, destination, draft = false } = wish.data;
    const [head, base] = [source.branch.name, destination.branch.name];
    if (!hasBranch(repository, base))
      return refused(400, "destination: branch not found", { destination: [`branch not found: ${base}`] });
    const before = pulls.findIndex((pull) => isSame(pull, { ...pull, repository, head, base }));
    // A second one changes the first.
    if (before >= 0) pulls.splice(before, 1);
    const pull = add({ repository, title, head, base, body, draft, labels: [] });
    return { status: 201, content: pull && shown(pull) };
  }

  function dataCenter(asked: Asked, path: string, query: URLSearchParams): Answer {
    const [, project = "", slug = ""] =
      /^\/projects\/([^/]+)\/repos\/([^/]+)\/pull-requests$/.exec(path) ?? [];
    const repository = `scm/${project}/${slug}`;
    const refused = (status: number, message: string, exceptionName: string, more: object = {}) => ({
      status,
      content: { errors: [{ context: null, message, exceptionName, ...more }] },
    });
    const exception = "com.atlassian.bitbucket";
    if (!mayOpen(tokenOf(asked), repository))
      return refused(
        401,
        "Authentication failed. Please check your credentials and try again.",
        `${exception}.auth.IncorrectPasswordAuthenticationException`,
      );
    const shown = (pull: Pull) => ({
      id: pull.number,
      version: 0,
      state: "OPEN",
      draft: pull.draft,
      fromRef: { id: `refs/heads/${pull.head}` },
      toRef: { id: `refs/heads/${pull.base}` },
      links: {
        self: [{ href: `https://forge.test/projects/${project}/repos/${slug}/pull-requests/${pull.number}` }],
      },
    });
    if (asked.method === "GET") {
      const values = pulls.filter(
        (pull) => pull.repository === repository && query.get("at") === `refs/heads/${pull.head}`,
      );
      return { status: 200, content: { size: values.length, isLastPage: true, values: values.map(shown) } };
    }
    const wish = dataCenterSchema.safeParse(JSON.parse(asked.body));
    if (!wish.success) return refused(400, wish.error.message, "javax.validation.ValidationException");
    const { title, description: body = "", fromRef, toRef, draft = false } = wish.data;
    const [head, base] = [fromRef, toRef].map(({ id }) => id.replace("refs/heads/", ""));
    if (head === undefined || base === undefined || !hasBranch(repository, base))
      return refused(
        404,
        `Repository "${slug}" of project "${project}" has no branch "${base}"`,
        `${exception}.commit.NoSuchCommitException`,
      );
    const pull = add({ repository, title, head, base, body, draft, labels: [] });
    if (pull !== undefined) return { status: 201, content: shown(pull) };
    const existing = pulls.find((one) => isSame(one, { ...one, repository, head, base }));
    return refused(
      409,
      "Only one pull request may be open for a given source and target branch",
      `${exception}.pull.DuplicatePullRequestException`,
      { existingPullRequest: existing && shown(existing) },
    );
  }

  function azure(asked: Asked, pathname: string, query: URLSearchParams): Answer {
    const [, collection = "", project = "", name = "", what = ""] =
      /^\/([^/]+)\/([^/]+)\/_apis\/git\/repositories\/([^/]+)(\/.*)$/.exec(pathname) ?? [];
    const repository = `${collection}/${project}/_git/${name}`;
    const refused = (status: number, message: string, typeKey: string) => ({
      status,
      content: { $id: "1", innerException: null, message, typeKey, errorCode: 0, eventId: 3_000 },
    });
    const [, sent = ""] = /^Basic (\S+)$/.exec(String(asked.headers.authorization)) ?? [];
    const [user, token = ""] = Buffer.from(sent, "base64").toString().split(":");
    if (user !== "" || !mayOpen(token, repository))
      return refused(401, "TF400813: The user is not authorized to access this resource.", "Unauthorized");
    if (query.get("api-version") === null)
      return refused(400, "No api-version was supplied.", "VssVersionNotSpecifiedException");
    const shown = (pull: Pull) => ({
      pullRequestId: pull.number,
      status: "active",
      isDraft: pull.draft,
      repository: { webUrl: `https://forge.test/${repository}` },
    });
    if (asked.method === "GET") {
      const value = pulls.filter(
        ({ repository: at, head, base }) =>
          at === repository &&
          query.get("searchCriteria.status") === "active" &&
          query.get("searchCriteria.sourceRefName") === `refs/heads/${head}` &&
          query.get("searchCriteria.targetRefName") === `refs/heads/${base}`,
      );
      return { status: 200, content: { value: value.map(shown), count: value.length } };
    }
    const [, number] = /^\/pullRequests\/(\d+)\/labels$/.exec(what) ?? [];
    if (number !== undefined) {
      const label = z.strictObject({ name: z.string() }).parse(JSON.parse(asked.body));
      pulls.find((pull) => pull.number === Number(number))?.labels.push(label.name);
      return { status: 200, content: { id: "00000000-0000-0000-0000-000000000000", ...label, active: true } };
    }
    const wish = azureSchema.safeParse(JSON.parse(asked.body));
    if (!wish.success) return refused(400, wish.error.message, "InvalidArgumentValueException");
    const { sourceRefName, targetRefName, title, description: body = "", isDraft: draft = false } = wish.data;
    const [head, base] = [sourceRefName, targetRefName].map((each) => each.replace("refs/heads/", ""));
    if (head === undefined || base === undefined || !hasBranch(repository, base))
      return refused(
        400,
        "TF401398: The pull request cannot be activated because the source and/or the target branch no longer exists, or the requested refs are not branches",
        "GitPullRequestStaleException",
      );
    const pull = add({ repository, title, head, base, body, draft, labels: [] });
    if (pull !== undefined) return { status: 201, content: shown(pull) };
    const message = "TF401179: An active pull request for the source and target branch already exists.";
    return refused(409, message, "GitPullRequestExistsException");
  }

  return {
    pulls,
    /** Undefined for a path that isn't an API's. */
    answer: (asked: Asked): Answer | undefined => {
      const { pathname, searchParams } = new URL(asked.url, "https://forge");
      if (pathname.includes("/_apis/")) return azure(asked, pathname, searchParams);
      const [, at = "", rest = ""] = /^\/(api\/v1|api\/2\.0|rest\/api\/1\.0)(\/.*)$/.exec(pathname) ?? [];
      if (at === "api/v1") return gitea(asked, rest, searchParams);
      if (at === "api/2.0") return bitbucket(asked, rest, searchParams);
      if (at === "rest/api/1.0") return dataCenter(asked, rest, searchParams);
      if (!pathname.startsWith("/api/")) return undefined;
      const [, version = "", path = ""] = /^\/api\/(v3|v4)(\/.*)$/.exec(pathname) ?? [];
      if (version === "v3") return github(asked, path, searchParams);
      return version === "v4" ? gitlab(asked, path, searchParams) : { status: 404, content: {} };
    },
  };
}

function isSame(one: Omit<Pull, "number">, other: Omit<Pull, "number">): boolean {
  return one.repository === other.repository && one.head === other.head && one.base === other.base;
}

const tokenOf = ({ headers }: Asked) => /^Bearer (\S+)$/.exec(String(headers.authorization))?.[1] ?? "";
