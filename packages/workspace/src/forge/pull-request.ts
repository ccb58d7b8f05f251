import { messageOf, OutputsFailed } from "@ambit/core";
import type { Forge, GitReceipt, OutputsRequest, PullRequestWish } from "@ambit/core/contract";
import { z } from "zod";
import { type ApiAnswer, ApiFailed, type ApiOptions, callApi, refusalOf, type SendToApi } from "./api.js";
import { type ForgeForm, forgeForms, type NewPullRequest, type Place, type Pull } from "./forms.js";

type GitOutput = NonNullable<OutputsRequest["git"]>;

export interface OpenedPullRequest extends Pick<Pull, "url" | "number"> {
  /** False: one for this branch was open already. */
  readonly opened: boolean;
}

/** Milliseconds of all requests for one pull request. */
const timeoutMs = 60_000;

/** A pull request is open, but not as it was asked for. */
class PartlyOpened extends Error {
  constructor(
    readonly pull: Pull,
    message: string,
  ) {
    super(message);
  }
}

/** What runs at this repository's host; undefined where the request must say. Pure. */
export function forgeAt(url: string, told: Forge | undefined): Forge | undefined {
  const { hostname } = new URL(url);
  const isOf = (form: ForgeForm) =>
    form.hosts.some((host) => (host.startsWith(".") ? hostname.endsWith(host) : hostname === host));
  return told ?? forgeNames.find((forge) => isOf(forgeForms[forge]));
}

const forgeNames = Object.keys(forgeForms).filter((name): name is Forge => name in forgeForms);

/** Where the API of this forge has the repository; undefined where its path isn't one's. Pure. */
export function placeAt(url: string, forge: Forge, apiUrl: string | undefined): Place | undefined {
  const { host, pathname } = new URL(url);
  const path = pathname.replace(/^\//, "").replace(/\.git$/, "");
  // A host that isn't at the root of its site has the same folder before its API.
  const folder =
    apiUrl === undefined ? "" : (/^\/(.+)\/api\/v\d+\/*$/.exec(new URL(apiUrl).pathname)?.[1] ?? "");
  const below = folder !== "" && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
  const place = forgeForms[forge].locate({ host, parts: below.split("/") });
  return place && apiUrl !== undefined ? { ...place, base: apiUrl.replace(/\/+$/, "") } : place;
}

/** Why no such pull request can be opened there, with the field that has to change; undefined if it can. Pure. */
export function whyNoPullRequest(
  url: string,
  { host, apiUrl, labels, body }: Pick<PullRequestWish, "host" | "apiUrl" | "labels" | "body">,
): { readonly field: "host" | "labels" | "body"; readonly message: string } | undefined {
  const forge = forgeAt(url, host);
  if (forge === undefined) {
    const names = forgeNames.map((name) => `"${name}"`).join(", ");
    return { field: "host", message: `must be one of ${names}: the repository's host isn't known` };
  }
  const { title, example, label, bodyCharacters = Number.POSITIVE_INFINITY } = forgeForms[forge];
  if (placeAt(url, forge, apiUrl) === undefined)
    return { field: "host", message: `doesn't fit: a repository of ${title} has a path such as ${example}` };
  if (labels.length > 0 && label === undefined)
    return { field: "labels", message: `must be left out: pull requests of ${title} have none` };
  if (body.length > bodyCharacters)
    return { field: "body", message: `must have at most ${bodyCharacters} characters at ${title}` };
  return undefined;
}

/** The value of `Authorization`: a user with a password as they are, a token as the host takes it. Pure. */
export function authorizationOf(form: ForgeForm, { pullRequest, credential }: GitOutput): string | undefined {
  const stated = pullRequest?.credential?.value;
  if (stated?.includes(":")) return `Basic ${Buffer.from(stated).toString("base64")}`;
  if (stated !== undefined) return form.authorization(stated);
  if (credential === undefined) return undefined;
  const { value, as } = credential;
  const colon = as === "basic" ? value.indexOf(":") : -1;
  return colon < 0
    ? form.authorization(value)
    : form.authorization(value.slice(colon + 1), value.slice(0, colon));
}

/**
 * Opens the pull request of a branch that was pushed, or takes the one that is open.
 * @throws OutputsFailed with the reason `pull_request_failed`; the signal's reason
 */
export async function openPullRequest(
  output: GitOutput,
  { url, branch }: Pick<GitReceipt, "url" | "branch">,
  send: SendToApi,
  signal: AbortSignal,
): Promise<OpenedPullRequest | undefined> {
  const { pullRequest } = output;
  if (pullRequest === undefined) return undefined;
  const forge = forgeAt(url, pullRequest.host);
  const place = forge && placeAt(url, forge, pullRequest.apiUrl);
  if (forge === undefined || place === undefined) return undefined;
  const form = forgeForms[forge];
  const late = AbortSignal.timeout(timeoutMs);
  const options = {
    base: place.base,
    headers: form.headers,
    authorization: authorizationOf(form, output),
    send,
    signal: AbortSignal.any([signal, late]),
  };
  try {
    return await open(form, place, { ...pullRequest, branch }, options);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof PartlyOpened)
      throw new OutputsFailed(`The pull request ${error.pull.url} is open, but ${error.message}`, {
        cause: error,
        reason: "pull_request_failed",
      });
    throw new OutputsFailed(
      `outputs.git.pullRequest couldn't be opened at ${new URL(place.base).host}: ${detailOf(error, late)}. The branch '${branch}' is pushed: open it by hand, or check outputs.git.pullRequest and the rights of its credential.`,
      { cause: error, reason: "pull_request_failed" },
    );
  }
}

async function open(
  form: ForgeForm,
  place: Place,
  wish: NewPullRequest,
  options: ApiOptions,
): Promise<OpenedPullRequest> {
  const { pull, opened } = await openOne(form, place, wish, options);
  if (wish.labels.length > 0)
    for (const call of form.label?.(place, pull.number, wish.labels) ?? []) {
      const answer = await callApi(options, call);
      const missing = isSuccess(answer) ? missingIn(form, answer, wish.labels) : wish.labels;
      if (missing.length === 0) continue;
      const said = isSuccess(answer)
        ? `it has no label ${missing.map((name) => `'${name}'`).join(", ")}`
        : refusalOf(answer, options).message;
      throw new PartlyOpened(
        pull,
        `its labels couldn't be set: ${said}. Set them by hand, or check outputs.git.pullRequest.labels and the rights of its credential.`,
      );
    }
  if (opened && wish.draft && pull.isDraft === false)
    throw new PartlyOpened(
      pull,
      "it isn't a draft, which this version of its host doesn't know. Leave outputs.git.pullRequest.draft out.",
    );
  return { url: pull.url, number: pull.number, opened };
}

async function openOne(
  form: ForgeForm,
  place: Place,
  wish: NewPullRequest,
  options: ApiOptions,
): Promise<{ readonly pull: Pull; readonly opened: boolean }> {
  const existing = async () => {
    const answer = await callApi(options, form.find(place, wish));
    if (!isSuccess(answer)) throw refusalOf(answer, options);
    return form.found(answer.content, wish);
  };
  const before = form.changesOpen ? await existing() : undefined;
  if (before !== undefined) return { pull: before, opened: false };
  const answer = await callApi(options, form.create(place, wish));
  if (isSuccess(answer)) return { pull: form.created(answer.content), opened: true };
  const pull = form.isOpenAlready(answer) ? await existing() : undefined;
  if (pull === undefined) throw refusalOf(answer, options);
  return { pull, opened: false };
}

/** Azure DevOps answers who isn't signed in with a page, and 203. */
const isSuccess = ({ status }: ApiAnswer) => status === 200 || status === 201;

function missingIn(
  { labelled }: ForgeForm,
  { content }: ApiAnswer,
  labels: readonly string[],
): readonly string[] {
  if (labelled === undefined) return [];
  const names = labelled(content);
  return labels.filter((label) => !names.includes(label));
}

function detailOf(error: unknown, late: AbortSignal): string {
  if (late.aborted) return `it didn't answer within ${timeoutMs} ms`;
  if (error instanceof ApiFailed) return error.message;
  if (error instanceof z.ZodError) return "its answer has another form than the documented one";
  return messageOf(error);
}
