import { gatesOf, requireText, rulesOf } from "../gate.js";
import { agentNotices, agentsIn, type LoadedAgent } from "../host.js";
import type { Ambit } from "../open.js";
import { keptVerifications } from "../verifications.js";
import { version } from "../version.js";
import { requireOperator } from "./caller/admit-caller.js";
import { json } from "./response/send.js";
import { failed, jsonResponse } from "./route/responses.js";
import type { HttpRoute } from "./route/route.js";
import type { HostResponse } from "./route-schemas.js";

/** What `ambit doctor`, `ambit agents` and `ambit verify` say of this host, beside what its actors were seen to do. */
export async function hostResponse({
  registry,
  settings,
}: Pick<Ambit, "registry" | "settings">): Promise<HostResponse> {
  const agents = await agentsIn(registry);
  const gates = gatesOf(rulesOf(settings), registry.knownCandidates());
  return {
    version: version(),
    node: process.version,
    agents: agents.map(({ id, title, pinned, installed, comesAlong }) => ({
      harness: id,
      title,
      comesAlong,
      installed: installed === null ? undefined : versionsOf(installed),
      installs: [...pinned],
    })),
    rules: gates.map(({ name, required, metBy, gaps }) => ({
      name,
      requires: requireText(required),
      metBy: [...metBy],
      gaps: [...gaps],
    })),
    notices: [...settings.notices, ...(await agentNotices(registry, agents))],
    verifications: [...(await keptVerifications())],
  };
}

/** Without its path, which is this machine's. */
function versionsOf({ version: installed, tested, agent }: NonNullable<LoadedAgent["installed"]>) {
  return {
    version: installed,
    tested,
    agent: agent && { name: agent.name, version: agent.version, tested: agent.tested },
  };
}

export const hostRoute: HttpRoute = {
  method: "GET",
  path: "/host",
  operation: {
    operationId: "host",
    tag: "Server",
    summary:
      "The agents with their versions, whether this host meets what is required, and what was verified",
    description:
      "What `ambit agents`, `ambit doctor` and the last `ambit verify` of this user say; `GET /plugins` has what was proven. Only for the operator.",
    responses: { 200: jsonResponse("This replica's host.", "HostResponse"), ...failed() },
  },
  handle: async ({ context, exchange: { incoming } }) => {
    requireOperator(incoming);
    return json(200, await context.host());
  },
};
