import type { SourceFailureReason } from "@ambit/core";
import type { ArchiveSource, DownloadCredential } from "@ambit/core/contract";
import { sourceFailed } from "./sources/source.js";
import type { Spool, Spooled } from "./spool.js";

/** Redirects that are followed. */
const maxRedirects = 5;

export interface DownloadOptions {
  /** The source's place in the request. */
  readonly index: number;
  readonly open: OpenDownload;
  /** Why a URL can't be used here, without a credential; undefined if it can. */
  readonly whyNot: (url: string) => string | undefined;
  readonly signal: AbortSignal;
}

type Wanted = Pick<ArchiveSource, "credential"> & { readonly url: string };

const fixes = {
  authentication: "needs a credential, or refused the one it got: set `credential` to one that is valid",
  forbidden: "refused the request: give the credential the right to it, or a URL that hasn't expired",
  not_found: "isn't there, or the credential may not see it: check `url` and `credential`",
  unreachable:
    "couldn't be downloaded: check the host's name and certificate; a private address must be in workspace.allowedRanges of the server's configuration",
  too_large:
    "is too large: make it smaller, or raise workspace.maxSourceMiB of the server's configuration, which counts the archive itself and what it unpacks to",
} as const satisfies Partial<Record<SourceFailureReason, string>>;

const reasons: Readonly<Record<number, keyof typeof fixes>> = {
  401: "authentication",
  403: "forbidden",
  404: "not_found",
  410: "not_found",
};

/**
 * Downloads an archive into a spool.
 * @throws SourceFailed, also for more than `maxBytes`; the signal's reason
 */
export async function download(
  wanted: Wanted,
  spool: Spool,
  maxBytes: number,
  options: DownloadOptions,
): Promise<Spooled> {
  const { index, signal } = options;
  const opened = await answerOf(wanted, options);
  const tooLarge = () => sourceFailed(index, "too_large", fixes.too_large);
  let received = 0;
  let isOver = false;
  const within = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const bytes of opened.content) {
      signal.throwIfAborted();
      received += bytes.length;
      isOver = received > maxBytes;
      if (isOver) return;
      yield bytes;
    }
  };
  try {
    if (opened.size !== undefined && opened.size > maxBytes) throw tooLarge();
    let spooled: Spooled;
    try {
      spooled = await spool.add(within());
    } catch (error) {
      signal.throwIfAborted();
      throw failed(index, "unreachable", "it was cut off", error);
    }
    if (isOver) throw tooLarge();
    return spooled;
  } finally {
    opened.close();
  }
}

/**
 * Asks the host for an archive, and reads none of it: only those who may download it pass.
 * @throws SourceFailed; the signal's reason
 */
export async function requireAccess(wanted: Wanted, options: DownloadOptions): Promise<void> {
  (await answerOf(wanted, options)).close();
}

/** The answer that has the content, after redirects. The credential goes to the first URL's origin only. */
async function answerOf(
  { url: first, credential }: Wanted,
  { index, open, whyNot, signal }: DownloadOptions,
): Promise<OpenedDownload> {
  let url = new URL(first);
  // Once another host is in between, it could choose what the credential is used for.
  let isOwn = true;
  for (let redirects = 0; ; redirects += 1) {
    const headers = { accept: "*/*", "accept-encoding": "identity", "user-agent": "ambit" };
    const authorization = isOwn && credential !== undefined ? headerOf(credential) : {};
    let answer: OpenedDownload;
    try {
      answer = await open({ url, headers: { ...headers, ...authorization } }, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw failed(index, "unreachable", codeOf(error), error);
    }
    const { status, location } = answer;
    if (status === 200) return answer;
    answer.close();
    const isRedirect = [301, 302, 303, 307, 308].includes(status) && location !== undefined;
    if (!isRedirect) throw failed(index, reasons[status] ?? "unreachable", `HTTP ${status}`);
    if (redirects === maxRedirects) throw failed(index, "unreachable", `more than ${maxRedirects} redirects`);
    const next = URL.parse(location, url.href);
    if (next === null || `${next.username}${next.password}` !== "")
      throw failed(index, "unreachable", "a redirect to what isn't a URL");
    const isWeaker = url.protocol === "https:" && next.protocol !== "https:";
    if (isWeaker || !/^https?:$/.test(next.protocol) || whyNot(next.href) !== undefined)
      throw failed(index, "unreachable", "a redirect to a URL that isn't allowed");
    isOwn &&= next.origin === url.origin;
    next.hash = "";
    url = next;
  }
}

function headerOf({ value, as }: DownloadCredential): Readonly<Record<string, string>> {
  if (as === "bearer") return { authorization: `Bearer ${value}` };
  const pair = value.includes(":") ? value : `x-access-token:${value}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

function failed(
  index: number,
  reason: keyof typeof fixes,
  detail: string | undefined,
  cause?: unknown,
): Error {
  const more = detail === undefined ? "" : ` (${detail})`;
  return sourceFailed(index, reason, `${fixes[reason]}${more}`, cause);
}

/** Such as `ENOTFOUND`. Addresses that a name has aren't told: they could be of a network that the caller doesn't know. */
function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Z_0-9]{1,64}$/.test(code) ? code : undefined;
}

/** The beginning of an answer, whose content is still on its way. */
export interface OpenedDownload {
  readonly status: number;
  readonly location: string | undefined;
  /** As the server announces it. */
  readonly size: number | undefined;
  /** Its bytes as they were sent, once. Throws where they are cut off. */
  readonly content: AsyncIterable<Uint8Array>;
  /** Ends the connection. */
  close(): void;
}

/**
 * Asks for a file at an address that the operator allows, without following redirects. Rejects where there is no answer.
 */
export type OpenDownload = (
  request: { readonly url: URL; readonly headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
) => Promise<OpenedDownload>;
