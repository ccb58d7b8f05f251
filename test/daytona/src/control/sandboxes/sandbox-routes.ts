import { SandboxState } from "@daytona/api-client";
import { z } from "zod";
import { badRequest } from "../../http/api-error.js";
import { readJson, sendEmpty, sendJson } from "../../http/json.js";
import type { Exchange, Routes } from "../../http/routes.js";
import type { ResolvedOptions } from "../../options.js";
import type { FaultPlan } from "../fault-plan.js";
import { parseBody, parseCreateRequest } from "./create-request.js";
import { type Sandbox, sandboxDto, sandboxListItem } from "./sandbox.js";
import type { Sandboxes } from "./sandboxes.js";

const texts = z.record(z.string(), z.string());
const labelsRequest = z.object({ labels: texts });
const snapshotRequest = z.object({ name: z.string().min(1) });
const secretsRequest = z.object({ secrets: z.array(texts) });
const networkRequest = z.object({
  networkBlockAll: z.boolean().optional(),
  networkAllowList: z.string().optional(),
  domainAllowList: z.string().optional(),
});
const listQuery = z.object({
  labels: z
    .string()
    .default("{}")
    .transform((text, context) => {
      try {
        return texts.parse(JSON.parse(text));
      } catch {
        context.addIssue("must be a JSON object of strings");
        return z.NEVER;
      }
    }),
  states: z.string().optional(),
  name: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(200).default(100),
  cursor: z.coerce.number().int().min(0).default(0),
  createdAtBefore: z.coerce.date().optional(),
  lastActivityBefore: z.coerce.date().optional(),
});

export interface SandboxRoutesContext {
  readonly sandboxes: Sandboxes;
  readonly faults: FaultPlan;
  readonly options: ResolvedOptions;
  /** The base URL of the sandboxes' toolboxes. */
  toolboxUrl(): string;
}

export function addSandboxRoutes(routes: Routes, context: SandboxRoutesContext): void {
  const { sandboxes, options } = context;
  const one = "/api/sandbox/:sandbox";
  const dto = (sandbox: Sandbox) => sandboxDto(sandbox, options.minuteMs, context.toolboxUrl());
  const on = (
    method: string,
    path: string,
    handler: (exchange: Exchange, sandbox: Sandbox) => Promise<void>,
  ) => routes.on(method, path, (exchange) => handler(exchange, sandboxes.get(exchange.path("sandbox"))));

  routes.on("POST", "/api/sandbox", async ({ request, response }) => {
    const wanted = parseCreateRequest(await readJson(request));
    const sandbox = sandboxes.create(wanted, context.faults.takeFate());
    // A snapshot for the client: later changes don't affect it.
    const taken = dto(sandbox);
    if (!wanted.buildInfo) {
      await sandboxes.settled(sandbox);
      const failed: string[] = [SandboxState.ERROR, SandboxState.BUILD_FAILED];
      if (failed.includes(sandbox.state)) throw badRequest(`Sandbox failed to start: ${sandbox.errorReason}`);
    }
    sendJson(response, 200, taken);
  });

  routes.on("GET", "/api/sandbox", ({ response, query }) => {
    const filter = parseBody(listQuery, Object.fromEntries(query));
    const states = filter.states?.split(",");
    const found = sandboxes
      .all()
      .filter(
        (sandbox) =>
          Object.entries(filter.labels).every(([label, value]) => sandbox.labels[label] === value) &&
          (!states || states.includes(sandbox.state)) &&
          (filter.name === undefined || sandbox.name.startsWith(filter.name)) &&
          (!filter.createdAtBefore || sandbox.createdAt < filter.createdAtBefore.getTime()) &&
          (!filter.lastActivityBefore || sandbox.lastActivityAt < filter.lastActivityBefore.getTime()),
      );
    const end = filter.cursor + filter.limit;
    const items = found
      .slice(filter.cursor, end)
      .map((sandbox) => sandboxListItem(sandbox, options.minuteMs, context.toolboxUrl()));
    sendJson(response, 200, { items, nextCursor: end < found.length ? String(end) : null });
  });

  on("GET", one, async ({ response }, sandbox) => sendJson(response, 200, dto(sandbox)));

  on("DELETE", one, async ({ response }, sandbox) => {
    const gone = sandboxes.requestDestroy(sandbox);
    sendJson(response, 200, dto(sandbox));
    await gone;
  });

  on("POST", `${one}/start`, async ({ response }, sandbox) => {
    await sandboxes.start(sandbox);
    if (sandbox.state === SandboxState.ERROR)
      throw badRequest(`Sandbox failed to start: ${sandbox.errorReason}`);
    sendJson(response, 200, dto(sandbox));
  });

  on("POST", `${one}/stop`, async ({ response }, sandbox) => {
    const stopped = sandboxes.stop(sandbox);
    sendJson(response, 200, dto(sandbox));
    await stopped;
  });

  on("POST", `${one}/snapshot`, async ({ request, response }, sandbox) => {
    sandboxes.makeSnapshot(sandbox, parseBody(snapshotRequest, await readJson(request)).name);
    sendJson(response, 200, dto(sandbox));
  });

  on("POST", `${one}/last-activity`, async ({ response }, sandbox) => {
    sandboxes.touch(sandbox);
    sendEmpty(response, 201);
  });

  on("PUT", `${one}/labels`, async ({ request, response }, sandbox) => {
    const { labels } = parseBody(labelsRequest, await readJson(request));
    sandbox.labels = labels;
    sendJson(response, 200, { labels });
  });

  on("POST", `${one}/network-settings`, async ({ request, response }, sandbox) => {
    await sandboxes.changeNetwork(sandbox, parseBody(networkRequest, await readJson(request)));
    sendJson(response, 200, dto(sandbox));
  });

  on("PUT", `${one}/secrets`, async ({ request, response }, sandbox) => {
    const { secrets } = parseBody(secretsRequest, await readJson(request));
    await sandboxes.changeSecrets(sandbox, new Map(secrets.flatMap((entry) => Object.entries(entry))));
    sendJson(response, 200, dto(sandbox));
  });

  const minutes = (path: string, set: (sandbox: Sandbox, value: number) => void) =>
    on("POST", `${one}/${path}/:minutes`, async ({ response, path: value }, sandbox) => {
      const number = Number(value("minutes"));
      if (!Number.isInteger(number)) throw badRequest(`${path} must be an integer`);
      set(sandbox, number);
      sendJson(response, 200, dto(sandbox));
    });
  minutes("autostop", (sandbox, value) => {
    sandbox.autoStopInterval = value;
  });
  minutes("autodelete", (sandbox, value) => {
    sandbox.autoDeleteInterval = value;
  });
  minutes("ttl", (sandbox, value) => {
    sandbox.ttlMinutes = value;
  });

  on("GET", `${one}/toolbox-proxy-url`, async ({ response }) =>
    sendJson(response, 200, { url: context.toolboxUrl() }),
  );
}
