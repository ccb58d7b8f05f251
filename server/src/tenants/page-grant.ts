import { RequestInvalid, Unauthorized } from "@ambit/core";
import { jsonObjectSchema } from "@ambit/core/contract";
import type { Sealing } from "@ambit/durable";
import { z } from "zod";

/** What a page may do with its session: read its runs, answer their questions, begin and cancel runs. */
export const pageRights = ["read", "answer", "run"] as const;
export type PageRight = (typeof pageRights)[number];

const grantSchema = z.strictObject({
  /** The hash of the token whose owner made it; null: an operator who has none that is configured. */
  issuer: z.string().nullable(),
  project: z.string().optional(),
  /** Milliseconds since 1970. */
  expiresAt: z.int(),
  scope: z.discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("session"),
      sessionId: z.string(),
      may: z.array(z.enum(pageRights)),
      /** Everything of its runs but their messages. */
      request: jsonObjectSchema.optional(),
    }),
    z.strictObject({
      kind: z.literal("file"),
      /** The run's, among those of all callers. */
      runKey: z.string(),
      path: z.string(),
    }),
  ]),
});

/** What a page's token lets its bearer do, and until when. */
export type PageGrant = z.infer<typeof grantSchema>;

const prefix = "page_";

/** Characters of a token: it must fit into a URL, beside what else a request's header holds (16 KiB). */
const maxTokenLength = 12_000;

/** What it is sealed for: the sealing's key is derived for page tokens alone. */
const subject = "page";

/** Whether it claims to be a page's token. Then no other kind of token is looked for in it. */
export function isPageToken(token: string): boolean {
  return token.startsWith(prefix);
}

/** Makes and reads the tokens of pages: sealed, so that they need no store, and every replica with the key reads them. */
export class PageTokens {
  constructor(
    /** Its key seals nothing else. */
    readonly sealing: () => Promise<Sealing>,
    /** Milliseconds since 1970. */
    readonly now: () => number = Date.now,
  ) {}

  /** @throws RequestInvalid for one that is too long for a URL */
  async make(grant: PageGrant): Promise<string> {
    const token = (await this.maker())(grant);
    if (token.length <= maxTokenLength) return token;
    const message = `makes the token ${token.length.toLocaleString("en")} characters long, and a URL has room for ${maxTokenLength.toLocaleString("en")}: send less, such as fewer or shorter tools`;
    throw new RequestInvalid([{ path: "request", message }]);
  }

  /** What makes many tokens at once, each of them short. */
  async maker(): Promise<(grant: PageGrant) => string> {
    const sealing = await this.sealing();
    return (grant) => prefix + Buffer.from(sealing.seal(subject, grant), "base64").toString("base64url");
  }

  /** @throws Unauthorized for one that was altered, sealed with another key, or has expired */
  async read(token: string): Promise<PageGrant> {
    const grant = opened(await this.sealing(), token);
    if (grant === undefined)
      throw new Unauthorized(`Unauthorized: this isn't a page's token of this server: ${renewal}.`);
    if (grant.expiresAt <= this.now())
      throw new Unauthorized(`Unauthorized: the page's token has expired: ${renewal}.`);
    return grant;
  }
}

const renewal = "get a new one from the platform, which makes them by POST /tokens";

function opened(sealing: Sealing, token: string): PageGrant | undefined {
  if (!isPageToken(token) || token.length > maxTokenLength) return undefined;
  try {
    const sealed = Buffer.from(token.slice(prefix.length), "base64url").toString("base64");
    return grantSchema.parse(sealing.unseal(subject, sealed));
  } catch {
    // Whatever is wrong with it: only this server's own tokens can be read.
    return undefined;
  }
}

/** What a route needs of a page's token. `file`: the run's file that the token names, or the right to read. */
type PageNeed = PageRight | "file";

/**
 * Every route that a page may call, by its `operationId`, and what it needs. A route that isn't here is closed to pages.
 * Each of them shows and takes only what belongs to the token's session.
 */
export const pageNeeds: ReadonlyMap<string, PageNeed> = new Map([
  ["run", "run"],
  ["stream", "run"],
  ["cancel", "run"],
  ["sendMessage", "run"],
  ["answer", "answer"],
  ["interactions", "read"],
  ["runs", "read"],
  ["runInfo", "read"],
  ["events", "read"],
  ["outputFiles", "read"],
  ["outputFile", "file"],
  ["patch", "read"],
  ["bundle", "read"],
  ["archive", "read"],
  ["sessionRun", "read"],
]);

/** A route, as far as it matters to a page. */
interface PageRoute {
  readonly operation: { readonly operationId: string };
  /** Whether it only calls other routes, as its caller. */
  readonly isDoor?: boolean;
}

/**
 * Why a page may not call this route; undefined if it may. Pure.
 * @param path gives a parameter of the route's path; empty where it has none of this name.
 */
export function whyNotForPage(
  { scope }: Pick<PageGrant, "scope">,
  { operation, isDoor = false }: PageRoute,
  path: (name: string) => string,
): string | undefined {
  const need = pageNeeds.get(operation.operationId);
  if (scope.kind === "file") {
    if (need === "file" && path("path") === scope.path) return undefined;
    return "This token is for one file of a run, at the URL that it came with.";
  }
  const may = `it may ${scope.may.join(", ")} in the session ${JSON.stringify(scope.sessionId)}, and nothing else`;
  const right = need === "file" ? "read" : need;
  // What a door does for a page, the routes that it calls decide.
  if (right === undefined && !isDoor) return `A page's token doesn't open this route: ${may}.`;
  if (right !== undefined && !scope.may.includes(right)) return `This page's token lacks "${right}": ${may}.`;
  const session = path("sessionId");
  if (session !== "" && session !== scope.sessionId)
    return `This page's token is of another session: ${may}.`;
  return undefined;
}
