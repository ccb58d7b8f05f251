import type { Forge } from "@ambit/core/contract";
import { z } from "zod";
import type { ApiAnswer, ApiCall } from "./api.js";

/** A pull request to open. */
export interface NewPullRequest {
  readonly branch: string;
  readonly base: string;
  readonly title: string;
  readonly body: string;
  readonly draft: boolean;
  readonly labels: readonly string[];
}

/** An open pull request, as its host shows it. */
export interface Pull {
  readonly url: string;
  readonly number: number;
  /** Whether it is a draft; undefined where its title says so. */
  readonly isDraft?: boolean;
}

/** Where a host's API has a repository. */
export interface Place {
  /** The API's base URL, without a slash at its end, unless the request says another one. */
  readonly base: string;
  /** The repository below it. */
  readonly repository: string;
  /** The names of the repository and of what it is in, from the outside in. */
  readonly names: readonly string[];
}

/** The host of a repository, and the parts of the repository's path. */
export interface Address {
  readonly host: string;
  readonly parts: readonly string[];
}

/** How one kind of host is asked for a pull request. Everything in it is pure. */
export interface ForgeForm {
  /** The name of the kind in messages. */
  readonly title: string;
  /** The hosts that run it; one that begins with a dot: all below it. */
  readonly hosts: readonly string[];
  /** The path of a repository, as in messages. */
  readonly example: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Characters of a description that it takes. Default: as many as a request may have. */
  readonly bodyCharacters?: number;
  /** Whether it takes a second one for the same branches, and changes the first: it is asked for an open one before. */
  readonly changesOpen?: true;
  /** Undefined: the path isn't a repository's. */
  locate(address: Address): Place | undefined;
  /** The value of `Authorization` for a token. @param user of the push, where that has one */
  authorization(token: string, user?: string): string;
  create(place: Place, wish: NewPullRequest): ApiCall;
  /** Reads the response to `create`. @throws ZodError */
  created(content: unknown): Pull;
  /** Whether it refuses `create` since one is, or may be, open. */
  isOpenAlready(answer: ApiAnswer): boolean;
  find(place: Place, wish: NewPullRequest): ApiCall;
  /** The one for these branches in the response to `find`. @throws ZodError */
  found(content: unknown, wish: NewPullRequest): Pull | undefined;
  /** The requests that add labels to one that is open: none where `create` has brought them. Undefined: it knows no labels. */
  readonly label?: (place: Place, number: number, labels: readonly string[]) => readonly ApiCall[];
  /** Names in the response to such a request. Undefined: a success says that it has all. */
  readonly labelled?: (content: unknown) => readonly string[];
}

const bearer = (token: string) => `Bearer ${token}`;
const basic = (pair: string) => `Basic ${Buffer.from(pair).toString("base64")}`;
const isPair = ({ parts }: Address) => parts.length === 2;
const pathOf = (parts: readonly string[]) => parts.map(encodeURIComponent).join("/");
const ref = (branch: string) => `refs/heads/${branch}`;
/** A title that says that it is a draft, within what the host takes. */
const drafted = ({ draft, title }: NewPullRequest, prefix: string) =>
  draft && !title.toLowerCase().startsWith(prefix.toLowerCase()) ? `${prefix}${title}`.slice(0, 255) : title;

const webUrl = z.url({ protocol: /^https?$/ }).max(2_048);
const number = z.int().positive();
const branchSchema = z.object({ ref: z.string() });
const githubSchema = z.object({ html_url: webUrl, number });
const giteaSchema = githubSchema.extend({ head: branchSchema, base: branchSchema });
const gitlabSchema = z.object({ web_url: webUrl, iid: number });
const bitbucketSchema = z.object({
  id: number,
  draft: z.boolean().default(false),
  links: z.object({ html: z.object({ href: webUrl }) }),
});
const dataCenterSchema = z.object({
  id: number,
  draft: z.boolean().default(false),
  toRef: z.object({ id: z.string() }),
  links: z.object({ self: z.tuple([z.object({ href: webUrl })], z.unknown()) }),
});
const azureSchema = z.object({
  pullRequestId: number,
  isDraft: z.boolean().default(false),
  forkSource: z.unknown().optional(),
  repository: z.object({ webUrl }),
});
const azureErrorSchema = z.object({ typeKey: z.string() });
const namedSchema = z.array(z.object({ name: z.string() }));
const valuesOf = <T extends z.ZodType>(schema: T) => z.object({ values: z.array(schema) });

const ofGithub = (content: unknown): Pull => {
  const { html_url: url, number } = githubSchema.parse(content);
  return { url, number };
};
const ofGitlab = ({ web_url: url, iid }: z.infer<typeof gitlabSchema>): Pull => ({ url, number: iid });
const ofBitbucket = ({ id, draft, links }: z.infer<typeof bitbucketSchema>): Pull => ({
  url: links.html.href,
  number: id,
  isDraft: draft,
});
const ofDataCenter = ({ id, draft, links }: z.infer<typeof dataCenterSchema>): Pull => ({
  url: links.self[0].href,
  number: id,
  isDraft: draft,
});
const ofAzure = ({ pullRequestId, isDraft, repository }: z.infer<typeof azureSchema>): Pull => ({
  url: `${repository.webUrl}/pullrequest/${pullRequestId}`,
  number: pullRequestId,
  isDraft,
});

export const forgeForms: Readonly<Record<Forge, ForgeForm>> = {
  /** docs.github.com/rest/pulls/pulls, and of GitHub Enterprise. */
  github: {
    title: "GitHub",
    hosts: ["github.com"],
    example: "/acme/app.git",
    headers: { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" },
    locate: (address) =>
      isPair(address)
        ? {
            base: address.host === "github.com" ? "https://api.github.com" : `https://${address.host}/api/v3`,
            repository: `/repos/${pathOf(address.parts)}`,
            names: address.parts,
          }
        : undefined,
    authorization: bearer,
    create: ({ repository }, { branch, base, title, body, draft }) => ({
      method: "POST",
      path: `${repository}/pulls`,
      content: { title, body, head: branch, base, draft },
    }),
    created: ofGithub,
    isOpenAlready: ({ status }) => status === 422,
    find: ({ repository, names }, { branch, base }) => {
      const query = new URLSearchParams({ state: "open", head: `${names[0]}:${branch}`, base });
      return { method: "GET", path: `${repository}/pulls?${query}` };
    },
    found: (content) => z.array(z.unknown()).parse(content).map(ofGithub)[0],
    // GitHub takes labels only of an issue, which every pull request is; those that it has already stay.
    label: ({ repository }, number, labels) => [
      { method: "POST", path: `${repository}/issues/${number}/labels`, content: { labels } },
    ],
  },
  /** docs.gitlab.com/api/merge_requests. */
  gitlab: {
    title: "GitLab",
    hosts: ["gitlab.com"],
    example: "/acme/app.git",
    headers: { accept: "application/json" },
    locate: ({ host, parts }) =>
      parts.length < 2
        ? undefined
        : {
            base: `https://${host}/api/v4`,
            repository: `/projects/${encodeURIComponent(parts.join("/"))}`,
            names: parts,
          },
    authorization: bearer,
    create: ({ repository }, wish) => ({
      method: "POST",
      path: `${repository}/merge_requests`,
      content: {
        source_branch: wish.branch,
        target_branch: wish.base,
        title: drafted(wish, "Draft: "),
        description: wish.body,
        ...(wish.labels.length === 0 ? {} : { labels: wish.labels.join(",") }),
      },
    }),
    created: (content) => ofGitlab(gitlabSchema.parse(content)),
    isOpenAlready: ({ status }) => status === 409,
    find: ({ repository }, { branch, base }) => {
      const query = new URLSearchParams({ state: "opened", source_branch: branch, target_branch: base });
      return { method: "GET", path: `${repository}/merge_requests?${query}` };
    },
    found: (content) => z.array(gitlabSchema).parse(content).map(ofGitlab)[0],
    label: () => [],
  },
  /** docs.gitea.com/api, and codeberg.org/api/swagger of Forgejo, which has the same. */
  gitea: {
    title: "Gitea or Forgejo",
    hosts: ["codeberg.org", "gitea.com"],
    example: "/acme/app.git",
    headers: { accept: "application/json" },
    locate: (address) =>
      isPair(address)
        ? {
            base: `https://${address.host}/api/v1`,
            repository: `/repos/${pathOf(address.parts)}`,
            names: address.parts,
          }
        : undefined,
    authorization: (token) => `token ${token}`,
    create: ({ repository }, wish) => ({
      method: "POST",
      path: `${repository}/pulls`,
      content: { title: drafted(wish, "WIP: "), body: wish.body, head: wish.branch, base: wish.base },
    }),
    created: ofGithub,
    isOpenAlready: ({ status }) => status === 409,
    // It can't be asked for a branch. The one whose branch was just pushed is the first by its last change.
    find: ({ repository }) => ({
      method: "GET",
      path: `${repository}/pulls?state=open&sort=recentupdate&limit=50`,
    }),
    found: (content, { branch, base }) => {
      const pulls = z.array(giteaSchema).parse(content);
      const pull = pulls.find((each) => each.head.ref === branch && each.base.ref === base);
      return pull && ofGithub(pull);
    },
    label: ({ repository }, number, labels) => [
      { method: "POST", path: `${repository}/issues/${number}/labels`, content: { labels } },
    ],
    // It leaves names out that it doesn't know, and answers with success.
    labelled: (content) => namedSchema.parse(content).map(({ name }) => name),
  },
  /** developer.atlassian.com/cloud/bitbucket/rest/api-group-pullrequests. */
  bitbucket: {
    title: "Bitbucket Cloud",
    hosts: ["bitbucket.org"],
    example: "/acme/app.git",
    headers: { accept: "application/json" },
    changesOpen: true,
    locate: (address) =>
      isPair(address)
        ? {
            base: "https://api.bitbucket.org/2.0",
            repository: `/repositories/${pathOf(address.parts)}`,
            names: address.parts,
          }
        : undefined,
    // An access token of a repository, project or workspace has this user for git; a person's has the person's.
    authorization: (token, user = "x-token-auth") =>
      user === "x-token-auth" ? bearer(token) : basic(`${user}:${token}`),
    create: ({ repository }, { branch, base, title, body, draft }) => ({
      method: "POST",
      path: `${repository}/pullrequests`,
      content: {
        title,
        description: body,
        source: { branch: { name: branch } },
        destination: { branch: { name: base } },
        draft,
      },
    }),
    created: (content) => ofBitbucket(bitbucketSchema.parse(content)),
    isOpenAlready: ({ status }) => status === 400 || status === 409,
    find: ({ repository, names }, { branch, base }) => {
      const quoted = (text: string) => `"${text.replaceAll('"', '\\"')}"`;
      const q = [
        'state = "OPEN"',
        `source.branch.name = ${quoted(branch)}`,
        `source.repository.full_name = ${quoted(names.join("/"))}`,
        `destination.branch.name = ${quoted(base)}`,
      ].join(" AND ");
      return { method: "GET", path: `${repository}/pullrequests?${new URLSearchParams({ q })}` };
    },
    found: (content) => valuesOf(bitbucketSchema).parse(content).values.map(ofBitbucket)[0],
  },
  /** developer.atlassian.com/server/bitbucket/rest. */
  "bitbucket-data-center": {
    title: "Bitbucket Data Center",
    hosts: [],
    example: "/scm/acme/app.git",
    headers: { accept: "application/json" },
    bodyCharacters: 32_768,
    locate: ({ host, parts }) => {
      const scm = parts.lastIndexOf("scm");
      const [project, repository, more] = scm < 0 ? [] : parts.slice(scm + 1);
      if (project === undefined || repository === undefined || more !== undefined) return undefined;
      return {
        base: `https://${[host, ...parts.slice(0, scm)].join("/")}/rest/api/1.0`,
        repository: `/projects/${encodeURIComponent(project)}/repos/${encodeURIComponent(repository)}`,
        names: [project, repository],
      };
    },
    authorization: bearer,
    create: ({ repository, names: [key, slug] }, { branch, base, title, body, draft }) => {
      const at = { slug, project: { key } };
      return {
        method: "POST",
        path: `${repository}/pull-requests`,
        content: {
          title,
          description: body,
          fromRef: { id: ref(branch), repository: at },
          toRef: { id: ref(base), repository: at },
          ...(draft ? { draft } : {}),
        },
      };
    },
    created: (content) => ofDataCenter(dataCenterSchema.parse(content)),
    isOpenAlready: ({ status }) => status === 409,
    find: ({ repository }, { branch }) => {
      const query = new URLSearchParams({
        state: "OPEN",
        direction: "OUTGOING",
        at: ref(branch),
        limit: "100",
      });
      return { method: "GET", path: `${repository}/pull-requests?${query}` };
    },
    found: (content, { base }) =>
      valuesOf(dataCenterSchema)
        .parse(content)
        .values.filter(({ toRef }) => toRef.id === ref(base))
        .map(ofDataCenter)[0],
  },
  /** learn.microsoft.com/rest/api/azure/devops/git/pull-requests. */
  azure: {
    title: "Azure DevOps",
    hosts: ["dev.azure.com", ".visualstudio.com"],
    example: "/acme/project/_git/app",
    headers: { accept: "application/json" },
    bodyCharacters: 4_000,
    locate: ({ host, parts }) => {
      const git = parts.lastIndexOf("_git");
      const repository = git < 0 ? undefined : parts[git + 1];
      if (repository === undefined || parts.length !== git + 2) return undefined;
      // A project's repository of the same name is shown without the project.
      const above = parts.slice(0, git);
      const isAlone = host.endsWith(".visualstudio.com")
        ? above.length === 0 || above.join("/") === "DefaultCollection"
        : above.length === 1;
      const collection = isAlone ? above : above.slice(0, -1);
      const project = isAlone ? repository : above.at(-1);
      if (project === undefined) return undefined;
      return {
        base: `https://${[host, ...collection].join("/")}`,
        repository: `/${encodeURIComponent(project)}/_apis/git/repositories/${encodeURIComponent(repository)}`,
        names: [project, repository],
      };
    },
    // A personal access token is a password without a user. A token of Microsoft Entra is a JWT.
    authorization: (token) => (/^eyJ[^.]*\.[^.]+\.[^.]*$/.test(token) ? bearer(token) : basic(`:${token}`)),
    create: ({ repository }, { branch, base, title, body, draft }) => ({
      method: "POST",
      path: `${repository}/pullrequests?${azureVersion}`,
      content: {
        sourceRefName: ref(branch),
        targetRefName: ref(base),
        title,
        description: body,
        isDraft: draft,
      },
    }),
    created: (content) => ofAzure(azureSchema.parse(content)),
    isOpenAlready: ({ content }) =>
      azureErrorSchema.safeParse(content).data?.typeKey === "GitPullRequestExistsException",
    find: ({ repository }, { branch, base }) => {
      const query = new URLSearchParams({
        "searchCriteria.status": "active",
        "searchCriteria.sourceRefName": ref(branch),
        "searchCriteria.targetRefName": ref(base),
      });
      return { method: "GET", path: `${repository}/pullrequests?${query}&${azureVersion}` };
    },
    found: (content) =>
      z
        .object({ value: z.array(azureSchema) })
        .parse(content)
        .value.filter(({ forkSource }) => forkSource === undefined || forkSource === null)
        .map(ofAzure)[0],
    label: ({ repository }, number, labels) =>
      labels.map((name) => ({
        method: "POST",
        path: `${repository}/pullRequests/${number}/labels?${azureVersion}`,
        content: { name },
      })),
  },
};

const azureVersion = "api-version=7.0";
