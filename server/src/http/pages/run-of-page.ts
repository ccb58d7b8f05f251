import { type Issue, isJsonObject, RequestInvalid, runIdSchema } from "@ambit/core";
import { type ContentBlock, type JsonObject, type Message, messageSchema } from "@ambit/core/contract";
import { validBody } from "@ambit/core/plugin";
import type { Store } from "@ambit/durable/store";
import { z } from "zod";
import type { PageGrant } from "../../tenants/page-grant.js";
import { HttpRefusal } from "../response/refusal.js";

/** What a page may bring of a run. Everything else comes from its token. */
const pageRunSchema = z.strictObject({
  sessionId: z.string().nullish(),
  messages: z.array(messageSchema).max(1_000).nullish(),
  runId: runIdSchema.nullish(),
});

/** A run of a page, as any caller would have asked for it. */
export interface PageRun {
  readonly body: JsonObject;
  /** The questions that its messages answer. */
  readonly answers: readonly string[];
}

/**
 * The request for a run of a page: its message or answers within the token's template. Pure.
 * @throws RequestInvalid for anything else that it brings; HttpRefusal for answers without the right to answer
 */
export function runOfPage({ scope }: PageGrant, asked: unknown): PageRun {
  if (scope.kind === "file") throw new HttpRefusal(403, "This token is for one file.", "unauthorized");
  const { sessionId, may, request = {} } = scope;
  if (isJsonObject(asked)) refuseForeignFields(asked);
  const body = validBody(pageRunSchema, asked);
  const messages = body.messages ?? [];
  const issues = messageIssues(messages);
  if ((body.sessionId ?? sessionId) !== sessionId)
    issues.push({ path: "sessionId", message: "is not the session of this page's token: leave it out" });
  if (issues.length > 0) throw new RequestInvalid(issues);
  const answers = messages.flatMap(resultsIn).map(({ toolCallId = "" }) => toolCallId);
  if (answers.length > 0 && !may.includes("answer"))
    throw new HttpRefusal(403, `This page's token lacks "answer": leave tool results out.`, "unauthorized");
  const { runId } = body;
  return { answers, body: { ...request, sessionId, messages, ...(runId == null ? {} : { runId }) } };
}

/** @throws RequestInvalid: a page can't widen what its platform has decided */
function refuseForeignFields(asked: JsonObject): void {
  const foreign = Object.keys(asked).filter((key) => !(key in pageRunSchema.shape));
  if (foreign.length === 0) return;
  const message =
    "is not for a page to say: it comes from the `request` of its token (POST /tokens); a page brings only sessionId, messages and runId";
  throw new RequestInvalid(foreign.slice(0, 100).map((path) => ({ path: path.slice(0, 100), message })));
}

/** The past is the session's own: a page could make it up. */
function messageIssues(messages: readonly Message[]): Issue[] {
  return messages.flatMap((message, index) => {
    const path = `messages[${index}]`;
    const { role, content } = message;
    const results = resultsIn(message);
    if (results.length > 0) {
      if (role !== "user" && role !== "tool") return [{ path: `${path}.role`, message: onlyNow }];
      if (results.length !== content.length) return [{ path: `${path}.content`, message: apart }];
      return results.flatMap(({ toolCallId }, at) =>
        toolCallId
          ? []
          : [{ path: `${path}.content[${at}].toolCallId`, message: "is missing: the id of the question" }],
      );
    }
    if (role !== "user" || index !== messages.length - 1) return [{ path, message: onlyNow }];
    const calls = typeof content !== "string" && content.some(({ type }) => type === "tool_call");
    return calls ? [{ path: `${path}.content`, message: onlyNow }] : [];
  });
}

const onlyNow =
  "is of the past, which the session has itself: send only the user's new message, and tool results of open questions before it";
const apart = "has tool results beside something else: send them as a message of their own";

function resultsIn({ content }: Message): readonly ContentBlock[] {
  return typeof content === "string" ? [] : content.filter(({ type }) => type === "tool_result");
}

/** Questions of a session that are read at once: more of them aren't open. */
const maxOpen = 1_000;

/** @throws RequestInvalid for an answer to what isn't an open question of the page's session */
export async function requireOpenQuestions(
  store: Pick<Store, "interactions">,
  { project, scope }: PageGrant,
  answers: readonly string[],
): Promise<void> {
  if (answers.length === 0 || scope.kind === "file") return;
  const open = await store.interactions({
    project: project ?? null,
    session: scope.sessionId,
    state: "open",
    limit: maxOpen,
    without: ["payload", "answer"],
  });
  const ids = new Set(open.map(({ id }) => id));
  if (answers.every((id) => ids.has(id))) return;
  const message =
    "has the result of a call that is no open question of this session: it was answered, has expired, or was never asked";
  throw new RequestInvalid([{ path: "messages", message }]);
}
