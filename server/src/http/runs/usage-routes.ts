import { RequestInvalid } from "@ambit/core";
import { type Tally, tallyDays } from "@ambit/durable/store";
import { json } from "../response/send.js";
import { failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, type StoredRoute, stored } from "../route/route.js";
import type { QuotasResponse, UsageResponse } from "../route-schemas.js";
import { firstDay, groupedBy, lastDay, onlyProject, projectFilter } from "./parameters.js";
import { timeOf } from "./stored-response.js";

/** What runs used, and what projects may use. */
export const usageRoutes: readonly HttpRoute[] = [
  {
    method: "GET",
    path: "/usage",
    query: [firstDay, lastDay, groupedBy, onlyProject],
    refusesOthers: true,
    operation: {
      operationId: "usage",
      tag: "Usage",
      summary: "What runs used: by day, project, agent or model",
      description:
        "Runs by outcome, tokens, US dollars and the time in sandboxes, of runs that ended on these days, over all replicas. It is kept for 400 days, also of runs that were deleted.",
      responses: { 200: jsonResponse("The groups and their total.", "UsageResponse"), ...failed(400, 503) },
    },
    handle: stored(handleUsage),
  },
  {
    method: "GET",
    path: "/quotas",
    query: [onlyProject],
    refusesOthers: true,
    operation: {
      operationId: "quotas",
      tag: "Usage",
      summary: "What each project with a token may use, and uses now",
      description: "Over all replicas of a store. A tenant sees its own project's.",
      responses: { 200: jsonResponse("Every project.", "QuotasResponse"), ...failed(400, 503) },
    },
    handle: stored(handleQuotas),
  },
];

const dayMs = 86_400_000;
const defaultDays = 30;

/** `GET /usage` */
async function handleUsage(route: StoredRoute): Promise<Response> {
  const { server, query } = route;
  const ofProject = projectFilter(route);
  const by = query.read(groupedBy) ?? "day";
  const to = query.read(lastDay) ?? dayAt(Date.now());
  const from = query.read(firstDay) ?? dayAt(Date.parse(to) - (defaultDays - 1) * dayMs);
  const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
  if (days < 1 || days > tallyDays) {
    const message = `must be a day up to ${to}, with which there are at most ${tallyDays} days`;
    throw new RequestInvalid([{ path: firstDay.name, message }]);
  }
  const { groups, total } = await server.runs.store.tallies({ ...ofProject, from, to, by });
  return json(200, {
    from,
    to,
    by,
    total: onWire(total),
    groups: groups.map(({ key, ...tally }) => ({ key, ...onWire(tally) })),
  } satisfies UsageResponse);
}

const dayAt = (time: number) => timeOf(time).slice(0, "2026-11-29".length);

function onWire({ completed, paused, cancelled, failed, ...used }: Tally) {
  return { runs: { completed, paused, cancelled, failed }, ...used };
}

/** `GET /quotas` */
async function handleQuotas(route: StoredRoute): Promise<Response> {
  const { server, context } = route;
  const { project } = projectFilter(route);
  const projects = context.tenants.projects.filter((one) => project === undefined || one === project);
  const used = await server.quotas.used(projects);
  const quotas = used.map(({ dayLeftMs, usdPerDay, ...others }) => ({
    ...others,
    usdPerDay: usdPerDay && { ...usdPerDay, resetsAt: timeOf(Date.now() + dayLeftMs) },
  }));
  return json(200, { quotas } satisfies QuotasResponse);
}
