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

/**
 * Pull requests below `/api/v3` as GitHub Enterprise has them, and merge requests below `/api/v4` as GitLab has them.
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

  return {
    pulls,
    answer: (asked: Asked): Answer => {
      const { pathname, searchParams } = new URL(asked.url, "https://forge");
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
