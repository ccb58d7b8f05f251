import { RequestInvalid } from "@ambit/core";
import { type Tally, tallyDays } from "@ambit/durable/store";
import { callersProjects } from "../../tenants/caller.js";
import { json } from "../response/send.js";
import type { StoredRoute } from "../route/route.js";
import type { QuotasResponse, UsageResponse } from "../route-schemas.js";
import { firstDay, groupedBy, lastDay, projectFilter } from "./parameters.js";
import { timeOf } from "./stored-response.js";

const dayMs = 86_400_000;
const defaultDays = 30;

/** `GET /usage` */
export async function handleUsage({ server, exchange, query }: StoredRoute): Promise<Response> {
  const ofProject = projectFilter(query, callersProjects(exchange.incoming));
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
export async function handleQuotas({ server, context, exchange, query }: StoredRoute): Promise<Response> {
  const { project } = projectFilter(query, callersProjects(exchange.incoming));
  const projects = context.tenants.projects.filter((one) => project === undefined || one === project);
  const used = await server.quotas.used(projects);
  const quotas = used.map(({ dayLeftMs, usdPerDay, ...others }) => ({
    ...others,
    usdPerDay: usdPerDay && { ...usdPerDay, resetsAt: timeOf(Date.now() + dayLeftMs) },
  }));
  return json(200, { quotas } satisfies QuotasResponse);
}
