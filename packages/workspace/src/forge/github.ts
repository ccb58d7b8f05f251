import { z } from "zod";
import {
  type ApiOptions,
  callApi,
  type ForgeApi,
  LabelsRefused,
  type OpenedPullRequest,
  refusalOf,
} from "./api.js";

/** GitHub's REST API, of github.com and of GitHub Enterprise (docs.github.com/rest/pulls/pulls). */
export function githubApi(options: ApiOptions): ForgeApi {
  const repository = `/repos/${options.path.split("/").map(encodeURIComponent).join("/")}`;
  const [owner = ""] = options.path.split("/");
  const call = (method: "GET" | "POST", path: string, content?: unknown) =>
    callApi(options, method, `${repository}${path}`, headers, content);

  async function existing(branch: string, base: string): Promise<OpenedPullRequest | undefined> {
    const query = new URLSearchParams({ state: "open", head: `${owner}:${branch}`, base });
    const { status, content } = await call("GET", `/pulls?${query}`);
    if (status !== 200) throw refusalOf(status, content, options);
    const [found] = z.array(pullSchema).parse(content);
    return found && { url: found.html_url, number: found.number, opened: false };
  }

  return {
    open: async ({ branch, base, title, body, draft, labels }) => {
      const wish = { title, body, head: branch, base, draft };
      const { status, content } = await call("POST", "/pulls", wish);
      let pull: OpenedPullRequest | undefined;
      if (status === 201) {
        const { html_url: url, number } = pullSchema.parse(content);
        pull = { url, number, opened: true };
      } else if (status === 422) pull = await existing(branch, base);
      if (pull === undefined) throw refusalOf(status, content, options);
      // GitHub takes labels only of an issue, which every pull request is; those that it has already stay.
      if (labels.length > 0) {
        const labelled = await call("POST", `/issues/${pull.number}/labels`, { labels });
        if (labelled.status !== 200)
          throw new LabelsRefused(pull, refusalOf(labelled.status, labelled.content, options));
      }
      return pull;
    },
  };
}

const headers = { accept: "application/vnd.github+json", "x-github-api-version": "2022-11-28" };

const pullSchema = z.object({
  html_url: z.url({ protocol: /^https?$/ }).max(2_048),
  number: z.int().positive(),
});
