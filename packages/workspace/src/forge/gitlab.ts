import { z } from "zod";
import { type ApiOptions, callApi, type ForgeApi, type OpenedPullRequest, refusalOf } from "./api.js";

/** GitLab's REST API (docs.gitlab.com/api/merge_requests). */
export function gitlabApi(options: ApiOptions): ForgeApi {
  const requests = `/projects/${encodeURIComponent(options.path)}/merge_requests`;
  const headers = { accept: "application/json" };

  async function existing(branch: string, base: string): Promise<OpenedPullRequest | undefined> {
    const query = new URLSearchParams({ state: "opened", source_branch: branch, target_branch: base });
    const { status, content } = await callApi(options, "GET", `${requests}?${query}`, headers);
    if (status !== 200) throw refusalOf(status, content, options);
    const [found] = z.array(mergeRequestSchema).parse(content);
    return found && { url: found.web_url, number: found.iid, opened: false };
  }

  return {
    open: async ({ branch, base, title, body, draft, labels }) => {
      const wish = {
        source_branch: branch,
        target_branch: base,
        // GitLab knows a draft by its title.
        title: draft && !/^draft: /i.test(title) ? `Draft: ${title}`.slice(0, maxTitle) : title,
        description: body,
        ...(labels.length === 0 ? {} : { labels: labels.join(",") }),
      };
      const { status, content } = await callApi(options, "POST", requests, headers, wish);
      if (status === 201) {
        const { web_url: url, iid: number } = mergeRequestSchema.parse(content);
        return { url, number, opened: true };
      }
      const found = status === 409 ? await existing(branch, base) : undefined;
      if (found === undefined) throw refusalOf(status, content, options);
      return found;
    },
  };
}

/** Characters that GitLab takes. */
const maxTitle = 255;

const mergeRequestSchema = z.object({
  web_url: z.url({ protocol: /^https?$/ }).max(2_048),
  iid: z.int().positive(),
});
