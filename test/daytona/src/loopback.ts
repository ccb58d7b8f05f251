import { rm } from "node:fs/promises";
import { SnapshotState } from "@daytona/api-client";
import { ApiServer } from "./control/api-server.js";
import { FaultPlan } from "./control/fault-plan.js";
import { watchIntervals } from "./control/intervals.js";
import { LogStreams } from "./control/logs/log-streams.js";
import { addOrganizationRoutes } from "./control/organization-routes.js";
import { addSandboxRoutes } from "./control/sandboxes/sandbox-routes.js";
import { sandboxView } from "./control/sandboxes/sandbox-view.js";
import { Sandboxes } from "./control/sandboxes/sandboxes.js";
import { Snapshots } from "./control/sandboxes/snapshots.js";
import { Secrets } from "./control/secrets.js";
import { RunnerClient } from "./control/toolbox/runner-client.js";
import { askVersion } from "./control/toolbox/toolbox-client.js";
import { ToolboxProxy } from "./control/toolbox-proxy.js";
import { Routes } from "./http/routes.js";
import type { Faults, LoopbackDaytona } from "./interface.js";
import { createFolder, removeLeftovers } from "./leftovers.js";
import { type LoopbackOptions, loopbackOptions, type ResolvedOptions } from "./options.js";
import { unavailableReason } from "./requirements.js";
import { WorldServer } from "./world/world-server.js";

/**
 * Starts a loopback Daytona, after removing what killed ones left. Rejects with `unavailableReason()` if there is one, and
 * for invalid options.
 */
export async function startLoopbackDaytona(wanted: LoopbackOptions = {}): Promise<LoopbackDaytona> {
  const options = loopbackOptions.parse(wanted);
  const reason = unavailableReason();
  if (reason !== undefined) throw new Error(reason);
  await removeLeftovers();
  const { folder, name } = await createFolder();
  const undo: (() => Promise<unknown>)[] = [() => rm(folder, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await assemble(options, folder, name, undo, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function assemble(
  options: ResolvedOptions,
  folder: string,
  name: string,
  undo: (() => Promise<unknown>)[],
  close: () => Promise<void>,
): Promise<LoopbackDaytona> {
  const world = new WorldServer(`${folder}/world.sock`);
  await world.listen();
  undo.push(() => world.close());

  const { essentials, openResolver, ownProcessors, leaks } = options.organization;
  const runner: RunnerClient = await RunnerClient.start(
    { folder, name, essentials, openResolver, ownProcessors, leaks },
    (said) => {
      if (said.report === "exited") sandboxes.ended(said.id);
      else if (said.report === "query") world.recordQuery(said.id, said.name);
      else world.heardDatagram(said.id, said.host, said.port);
    },
  );
  undo.push(() => runner.close());
  world.connect(runner);
  for (const host of options.world) await world.add(host);

  const secrets = new Secrets();
  const snapshots = new Snapshots(options);
  const sandboxes: Sandboxes = new Sandboxes(options, runner, secrets, snapshots, ({ index }) =>
    askVersion(`${folder}/${index}.sock`),
  );
  const faults = new FaultPlan();
  const logStreams = new LogStreams(options.daemon !== undefined);
  const routes = new Routes();
  const toolbox = new ToolboxProxy(sandboxes, folder, options.daemon !== undefined);
  const server = new ApiServer({ apiKey: options.apiKey, routes, toolbox, logStreams, faults });
  await server.listen();
  const toolboxUrl = () => `${server.url}/toolbox`;
  addSandboxRoutes(routes, { sandboxes, faults, options, toolboxUrl });
  addOrganizationRoutes(routes, secrets, sandboxes, snapshots);
  undo.push(async () => {
    logStreams.close();
    await server.close();
  });
  const intervals = watchIntervals(sandboxes, options.minuteMs, (error) =>
    process.emitWarning(String(error)),
  );
  undo.push(async () => intervals.stop());

  return {
    apiUrl: `${server.url}/api`,
    apiKey: options.apiKey,
    limits: runner.limits,
    faults: faultsOf(faults, sandboxes, snapshots, logStreams),
    world,
    sandboxes: () => sandboxes.all().map(sandboxView),
    secrets: () =>
      secrets
        .all()
        .map(({ id, name, value, placeholder, hosts }) => ({ id, name, value, placeholder, hosts })),
    snapshots: () =>
      snapshots
        .all()
        .map(({ name, state, sandboxId }) => ({ name, state, isOfSandbox: sandboxId !== undefined })),
    requests: () => server.requests.map((request) => ({ ...request })),
    close,
  };
}

function faultsOf(
  plan: FaultPlan,
  sandboxes: Sandboxes,
  snapshots: Snapshots,
  logStreams: LogStreams,
): Faults {
  return {
    answer: (fault) => plan.answer(fault),
    nextSandbox: (fate) => plan.nextSandbox(fate),
    stop: (idOrName) => sandboxes.stop(sandboxes.get(idOrName)),
    crash: (idOrName) => sandboxes.crash(sandboxes.get(idOrName)),
    expireKey: () => {
      plan.keyIsExpired = true;
    },
    renewKey: () => {
      plan.keyIsExpired = false;
    },
    deactivateSnapshot: (idOrName) => {
      snapshots.get(idOrName).state = SnapshotState.INACTIVE;
    },
    cutLogStreams: () => logStreams.cut(),
    clear: () => plan.clear(),
  };
}
