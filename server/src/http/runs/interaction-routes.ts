import {
  type AmbitError,
  InteractionExpired,
  idOfRun,
  interactionKindSchema,
  limits,
  NotFound,
  RequestInvalid,
  SessionElsewhere,
} from "@ambit/core";
import { answererSchema, type InteractionsResponse, type SessionsResponse } from "@ambit/durable";
import type { InteractionState, StoredInteraction } from "@ambit/durable/store";
import { pathBeyondDepth, readAnswer } from "@ambit/runner";
import { z } from "zod";
import { callerOf, callersProjects, personOf } from "../../tenants/caller.js";
import { json, sendLargeJson } from "../response/send.js";
import type { StoredRoute } from "../route/route.js";
import type { EndedResponse, ForwardedResponse } from "../route-schemas.js";
import { runFilter, visibleRun } from "./find-run.js";
import {
  afterQuestion,
  interactionState,
  limit,
  placeAfter,
  projectFilter,
  sessionFilter,
} from "./parameters.js";
import { timeOf } from "./stored-response.js";

/** `GET /interactions` */
export async function handleInteractions(route: StoredRoute): Promise<void> {
  const { server, exchange, query, context } = route;
  const { outgoing } = exchange;
  const state = query.read(interactionState);
  const ofSession = sessionFilter(query, callerOf(exchange.incoming));
  const { store } = server.runs;
  const ofProject = projectFilter(query, callersProjects(exchange.incoming));
  const place = await placeAfter(query.read(afterQuestion), "question", async (id) => {
    const without = ["payload", "answer"] as const;
    const [question] = await store.interactions({ ...ofProject, ...ofSession, id, limit: 1, without });
    return question;
  });
  const found = await store.interactions({
    ...ofProject,
    state,
    ...(await runFilter(route)),
    ...ofSession,
    after: place?.id,
    limit: query.read(limit),
    maxCharacters: limits.bodyBytes,
    without: ["answer"],
  });
  const length = found.reduce((sum, { payload }) => sum + payload.length, 0);
  using _unread = context.unread.hold(length, outgoing);
  const interactions = found.map(interactionInfo);
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
export async function handleAnswer(route: StoredRoute): Promise<Response> {
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
    const kept = await server.runs.answers.answer(id, body);
    if (kept !== "kept") throw closed(id, kept);
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

/** `GET /sessions` */
export async function handleSessions({ server, exchange, query }: StoredRoute): Promise<Response> {
  const filter = projectFilter(query, callersProjects(exchange.incoming));
  const found = await server.runs.openSessions({ ...filter, limit: query.read(limit) });
  const sessions = found.map(({ session, project, sandbox, address, createdAt, usedAt }) => ({
    sessionId: session,
    projectId: project,
    sandbox,
    address,
    createdAt: timeOf(createdAt),
    usedAt: timeOf(usedAt),
  }));
  return json(200, { sessions } satisfies SessionsResponse);
}

/** `DELETE /sessions/:sessionId`: closes its sandbox and agent, and the runs that use it or wait for it. */
export async function handleDeleteSession(route: StoredRoute): Promise<Response> {
  const session = route.path("sessionId");
  const { context, server, exchange, query } = route;
  const projects = callersProjects(exchange.incoming);
  const { project } = projectFilter(query, projects);
  const name = { session, project: project ?? undefined };
  const { runs, queue } = server;
  if (!context.runner.hasSession(name)) {
    // What a lost replica has left is freed for the run that waits for it.
    const abandoned = await runs.asking(() => runs.sessions.endAbandoned(name));
    if (abandoned !== undefined) {
      await context.runner.discardSession(abandoned, name.project);
      return json(200, { ok: true, ended: true } satisfies EndedResponse);
    }
    const elsewhere = await runs.asking(() => runs.sessions.addressOf(session, name.project));
    if (elsewhere !== undefined) throw new SessionElsewhere(session, elsewhere);
  }
  if (!(await queue.endSession(name))) {
    const fix =
      projects === "all"
        ? "send ?projectId= with the project of its runs, unless it has ended already"
        : "it has ended already, or never began";
    throw new NotFound(`There is no session ${JSON.stringify(session)}: ${fix}.`);
  }
  await runs.asking(() => runs.sessions.release(session, name.project));
  return json(200, { ok: true, ended: true } satisfies EndedResponse);
}
