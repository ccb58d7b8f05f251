import {
  type AmbitError,
  InteractionExpired,
  idOfRun,
  interactionKindSchema,
  limits,
  NotFound,
  RequestInvalid,
} from "@ambit/core";
import { answererSchema, type InteractionsResponse } from "@ambit/durable";
import type { InteractionState, StoredInteraction } from "@ambit/durable/store";
import { pathBeyondDepth, readAnswer } from "@ambit/runner";
import { z } from "zod";
import { callerOf, personOf } from "../../tenants/caller.js";
import { json, sendLargeJson } from "../response/send.js";
import { body, failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, type StoredRoute, stored, streaming } from "../route/route.js";
import type { ForwardedResponse } from "../route-schemas.js";
import { runFilter, visibleRun } from "./find-run.js";
import {
  afterQuestion,
  interactionState,
  limit,
  onlyProject,
  onlyRun,
  onlySession,
  placeAfter,
  projectFilter,
  runsProject,
  sessionFilter,
} from "./parameters.js";
import { timeOf } from "./stored-response.js";

/** Answers to questions of runs. */
export const answerRoutes: readonly HttpRoute[] = [
  {
    method: "POST",
    path: "/runs/{runId}/interactions/{interactionId}",
    query: [runsProject],
    operation: {
      operationId: "answer",
      tag: "Questions",
      summary: "Answers a question of a run to its user",
      description:
        "A run that is held open gets it immediately. An answer to a paused run is kept until a turn of the session has used it. Each question is answered once; a second answer is refused with 404, and one that comes too late with 410.",
      requestBody: body("InteractionAnswer", true),
      responses: {
        200: jsonResponse("The answer was forwarded to the run, or stored.", "ForwardedResponse"),
        ...failed(400, 404, 408, 410, 413, 503),
      },
    },
    handle: stored(handleAnswer),
  },
];

/** The questions of runs to their users. */
export const interactionRoutes: readonly HttpRoute[] = [
  {
    method: "GET",
    path: "/interactions",
    query: [interactionState, onlyRun, onlySession, afterQuestion, onlyProject, limit],
    refusesOthers: true,
    operation: {
      operationId: "interactions",
      tag: "Questions",
      summary: "The questions of runs to their users, the newest first",
      description:
        "A page at a time: `after` is the id of the last question of the page before. Answers aren't shown.",
      responses: { 200: jsonResponse("A page of them.", "InteractionsResponse"), ...failed(400, 404, 503) },
    },
    handle: stored(streaming(handleInteractions)),
  },
];

/** `GET /interactions` */
async function handleInteractions(route: StoredRoute): Promise<void> {
  const { server, exchange, query, context } = route;
  const { outgoing } = exchange;
  const state = query.read(interactionState);
  const ofSession = sessionFilter(route);
  const { store } = server.runs;
  const ofProject = projectFilter(route);
  const place = await placeAfter(query.read(afterQuestion), "question", async (id) => {
    const without = ["payload", "answer"] as const;
    const [question] = await store.interactions({ ...ofProject, ...ofSession, id, limit: 1, without });
    return question;
  });
  const questions = await store.interactions({
    ...ofProject,
    state,
    ...(await runFilter(route)),
    ...ofSession,
    after: place?.id,
    limit: query.read(limit),
    maxCharacters: limits.bodyBytes,
    without: ["answer"],
  });
  const length = questions.reduce((sum, { payload }) => sum + payload.length, 0);
  using _unread = context.unread.hold(length, outgoing);
  const interactions = questions.map(interactionInfo);
  await sendLargeJson(outgoing, 200, { interactions } satisfies InteractionsResponse);
}

function interactionInfo(one: StoredInteraction): InteractionsResponse["interactions"][number] {
  const { id, runId, session, project, kind, payload, state, createdAt, answeredAt, answerer } = one;
  return {
    id,
    runId: idOfRun(runId),
    sessionId: session,
    projectId: project,
    state,
    kind: interactionKindSchema.parse(kind),
    payload: JSON.parse(payload),
    createdAt: timeOf(createdAt),
    ...(answeredAt === undefined ? {} : { answeredAt: timeOf(answeredAt) }),
    ...(answerer === undefined ? {} : { answeredBy: answererSchema.parse(JSON.parse(answerer)) }),
  };
}

/**
 * `POST /runs/:runId/interactions/:interactionId`: passed to the waiting run, on any replica; otherwise stored for the
 * next turn of the session.
 */
async function handleAnswer(route: StoredRoute): Promise<Response> {
  const [runId, id] = [route.path("runId"), route.path("interactionId")];
  const { context, server, exchange } = route;
  const { runner, bodies } = context;
  const body = await bodies.json(exchange.incoming, limits.bodyBytes);
  const { id: key } = await visibleRun(route, runId);
  if (!answeredHere(() => runner.answer(key, id, body))) {
    if (pathBeyondDepth(body) !== undefined) throw new RequestInvalid([{ path: "", message: "is too deep" }]);
    const { store } = server.runs;
    const without = ["payload", "answer"] as const;
    const [question] = await store.interactions({ runId: key, id, limit: 1, without });
    if (question?.state !== "open") throw closed(id, question?.state);
    readAnswer(interactionKindSchema.parse(question.kind), body);
    const outcome = await server.runs.answers.answer(id, body);
    if (outcome !== "kept") throw closed(id, outcome);
  }
  const user = personOf(exchange.incoming);
  await server.runs.answers.nameAnswerer(id, {
    caller: callerOf(exchange.incoming).kind,
    ...(user === undefined ? {} : { user }),
    ...approvalIn(body),
  });
  return json(200, { ok: true } satisfies ForwardedResponse);
}

const approvalSchema = z.object({ approved: z.boolean() });

function approvalIn(body: unknown) {
  const approval = approvalSchema.safeParse(body);
  return approval.success ? { approved: approval.data.approved } : {};
}

/** False when the question isn't held open by a run of this replica. */
function answeredHere(answer: () => void): boolean {
  try {
    answer();
    return true;
  } catch (error) {
    if (error instanceof NotFound) return false;
    throw error;
  }
}

/** @param state of the question, if there is one. */
function closed(id: string, state: InteractionState | undefined): AmbitError {
  if (state === "expired" || state === "withdrawn") return new InteractionExpired(id, state);
  return new NotFound(`There is no open interaction '${id}': it was answered, or never asked.`);
}
