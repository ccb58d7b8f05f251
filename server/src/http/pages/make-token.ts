import { limits, projectOf, RequestInvalid } from "@ambit/core";
import type { JsonObject } from "@ambit/core/contract";
import { validBody } from "@ambit/core/plugin";
import type { AdmittedRun } from "@ambit/runner";
import { callerOf, type Principal, principalOf } from "../../tenants/caller.js";
import { callerOptions } from "../caller/admit-caller.js";
import { issuerIn } from "../caller/operator-access.js";
import { json } from "../response/send.js";
import type { HttpRoute } from "../route/route.js";
import { type TokenResponse, tokenRequestSchema } from "../route-schemas.js";

/** The message with which the template of a page's runs is planned: its user has said nothing yet. */
const anyMessages = [{ role: "user", content: "A message of the page." }];

/**
 * `POST /tokens`: a token for a page in a user's browser. The template of its runs is planned now, so that its gaps are the
 * platform's to see, not the user's.
 */
export const handleMakeToken: HttpRoute["handle"] = async ({ context, exchange: { incoming } }) => {
  const { sessionId, may, ttlMs, ...template } = validBody(
    tokenRequestSchema,
    await context.bodies.json(incoming, limits.bodyBytes),
  );
  const principal = principalOf(callerOf(incoming));
  let project = projectFor(principal, template.projectId ?? undefined);
  let request: JsonObject | undefined;
  if (template.request !== undefined) {
    request = templateOf(template.request, project);
    const body = { ...request, sessionId, messages: anyMessages };
    const planned = await context.runner.plan(body, callerOptions(incoming));
    requireOnlyTemplate(planned, sessionId);
    project = projectOf(planned.request);
  }
  const expiresAt = context.pageTokens.now() + ttlMs;
  const token = await context.pageTokens.make({
    issuer: issuerIn(principal, context.operator),
    ...(project === undefined ? {} : { project }),
    expiresAt,
    scope: { kind: "session", sessionId, may, ...(request === undefined ? {} : { request }) },
  });
  return json(200, { token, expiresAt: new Date(expiresAt).toISOString() } satisfies TokenResponse);
};

/** @throws RequestInvalid where a tenant names another project */
function projectFor(principal: Principal, named: string | undefined): string | undefined {
  if (principal.kind === "operator") return projectOf({ projectId: named });
  const { project } = principal.tenant;
  if (named === undefined || named === project) return project;
  throw new RequestInvalid([
    { path: "projectId", message: "is not the project of this token: leave it out" },
  ]);
}

/** @throws RequestInvalid for a field that each run brings, or a project that differs from the token's */
function templateOf(request: JsonObject, project: string | undefined): JsonObject {
  const issues = ["sessionId", "messages", "runId"]
    .filter((name) => (request[name] ?? undefined) !== undefined)
    .map((name) => ({
      path: `request.${name}`,
      message: "is what each of the page's runs has: leave it out",
    }));
  const named = request.projectId ?? undefined;
  if (project !== undefined && named !== undefined && named !== project)
    issues.push({ path: "request.projectId", message: "differs from the token's project: leave it out" });
  if (issues.length > 0) throw new RequestInvalid(issues);
  return project === undefined ? request : { ...request, projectId: project };
}

/** Checks the request as it was read, since each dialect has spellings of its own. @throws RequestInvalid for what a page's runs bring themselves */
function requireOnlyTemplate({ request, command }: AdmittedRun, session: string): void {
  const { sessionId, messages, runId } = request;
  if (sessionId === undefined) {
    const message = "is needed: this server has several tenants, and a session without a project isn't kept";
    throw new RequestInvalid([{ path: "projectId", message }]);
  }
  if (sessionId === session && runId === undefined && messages.length === 1 && command === undefined) return;
  const message =
    "names a session, a run, a command or messages, which each of the page's runs has for itself: leave them out";
  throw new RequestInvalid([{ path: "request", message }]);
}
