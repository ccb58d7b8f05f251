import { messageOf, OutputsFailed } from "@ambit/core";
import type { Forge, GitReceipt, OutputsRequest } from "@ambit/core/contract";
import { z } from "zod";
import { ApiFailed, LabelsRefused, type OpenedPullRequest, type SendToApi } from "./api.js";
import { githubApi } from "./github.js";
import { gitlabApi } from "./gitlab.js";

type GitOutput = NonNullable<OutputsRequest["git"]>;

/** Milliseconds of all requests for one pull request. */
const timeoutMs = 60_000;

const knownHosts: ReadonlyMap<string, Forge> = new Map([
  ["github.com", "github"],
  ["gitlab.com", "gitlab"],
]);

/** What runs at this repository's host; undefined where the request must say. Pure. */
export function forgeAt(url: string, told: Forge | undefined): Forge | undefined {
  return told ?? knownHosts.get(new URL(url).hostname);
}

/** Without a slash at its end. Pure. */
export function apiBaseOf(url: string, forge: Forge, told: string | undefined): string {
  if (told !== undefined) return told.replace(/\/+$/, "");
  const { host, hostname } = new URL(url);
  if (hostname === "github.com") return "https://api.github.com";
  return `https://${host}${forge === "github" ? "/api/v3" : "/api/v4"}`;
}

/** Why no pull request can be opened there; undefined if one can. Pure. */
export function whyNoPullRequest(url: string, told: Forge | undefined): string | undefined {
  const forge = forgeAt(url, told);
  if (forge === undefined) return 'must be "github" or "gitlab": the repository\'s host isn\'t known';
  const parts = pathOf(url).split("/").length;
  if (forge === "github" ? parts === 2 : parts >= 2) return undefined;
  return `doesn't fit: a repository of ${forge} has a path such as /acme/app.git`;
}

/**
 * Opens the pull request of a branch that was pushed, or takes the one that is open.
 * @throws OutputsFailed with the reason `pull_request_failed`; the signal's reason
 */
export async function openPullRequest(
  { pullRequest, credential }: GitOutput,
  { url, branch }: Pick<GitReceipt, "url" | "branch">,
  send: SendToApi,
  signal: AbortSignal,
): Promise<OpenedPullRequest | undefined> {
  if (pullRequest === undefined) return undefined;
  const forge = forgeAt(url, pullRequest.host);
  if (forge === undefined) return undefined;
  const late = AbortSignal.timeout(timeoutMs);
  const base = apiBaseOf(url, forge, pullRequest.apiUrl);
  const token = pullRequest.credential?.value ?? passwordOf(credential?.value);
  const options = { base, path: pathOf(url), token, send, signal: AbortSignal.any([signal, late]) };
  try {
    const api = forge === "github" ? githubApi(options) : gitlabApi(options);
    return await api.open({ ...pullRequest, branch });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof LabelsRefused)
      throw new OutputsFailed(
        `The pull request ${error.pull.url} is open, but its labels couldn't be set: ${error.message}. Set them by hand, or check outputs.git.pullRequest.labels and the rights of its credential.`,
        { cause: error, reason: "pull_request_failed" },
      );
    throw new OutputsFailed(
      `outputs.git.pullRequest couldn't be opened at ${new URL(base).host}: ${detailOf(error, late)}. The branch '${branch}' is pushed: open it by hand, or check outputs.git.pullRequest and the rights of its credential.`,
      { cause: error, reason: "pull_request_failed" },
    );
  }
}

function detailOf(error: unknown, late: AbortSignal): string {
  if (late.aborted) return `it didn't answer within ${timeoutMs} ms`;
  if (error instanceof ApiFailed) return error.message;
  if (error instanceof z.ZodError) return "its answer has another form than the documented one";
  return messageOf(error);
}

const pathOf = (url: string) => new URL(url).pathname.replace(/^\//, "").replace(/\.git$/, "");

/** Of `user:password`, as git sends it. */
function passwordOf(value: string | undefined): string | undefined {
  return value?.slice(value.indexOf(":") + 1);
}
