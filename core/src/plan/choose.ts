import type { Gap, Issue, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import { issueLine } from "../errors.js";
import type {
  Harness,
  ModelGateway,
  ModelUse,
  Rootfs,
  SandboxBackend,
  ToolDelivery,
  ToolExecutor,
  ToolSource,
} from "../plugin/index.js";
import type { PlannedActor, Probed } from "./candidates.js";
import { chooseOwn, credentialGaps, gapsOf, type OwnSandbox } from "./gaps.js";
import { callPure, pluginReturns } from "./plugin-call.js";
import type { BoundedRequest } from "./requirements.js";

/** A model gateway in the run, with the use that it carries. It holds credentials: never log or return it. */
export interface PlannedGateway {
  readonly probed: Probed<ModelGateway>;
  readonly use: ModelUse;
}

export interface GatewayChoice {
  readonly chosen: PlannedGateway | undefined;
  /** Why no gateway carries the agent's model; undefined when one does, or the agent has no such model. */
  readonly why: string | undefined;
}

/** The first configured gateway that carries what the agent needs of its model. Pure. */
export function chooseGateway(
  request: RunRequest,
  harness: Harness | undefined,
  gateways: readonly Probed<ModelGateway>[],
): GatewayChoice {
  const use =
    harness?.model === undefined
      ? undefined
      : callPure(harness, "model", pluginReturns.modelUse, () => harness.model?.(request));
  if (use === undefined) return { chosen: undefined, why: undefined };
  const refusals: Issue[] = [];
  for (const probed of gateways) {
    const { actor } = probed;
    const issues = callPure(actor, "issues", pluginReturns.issues, () => actor.issues(use));
    if (issues.length === 0) return { chosen: { probed, use }, why: undefined };
    refusals.push(...issues);
  }
  const why = refusals.length === 0 ? "no model gateway is loaded" : refusals.map(issueLine).join("; ");
  return { chosen: undefined, why };
}

/** Why a budget can't be enforced: nothing counts what is used, or nothing has a price for it. Pure. */
export function budgetIssues({ budget }: RunRequest, { chosen, why }: GatewayChoice): readonly Issue[] {
  if (budget === undefined) return [];
  if (chosen === undefined) {
    const reason = why ?? "this agent's requests to a model go through no model gateway";
    const message = `can't be enforced: nothing counts what is used (${reason}): load @ambit/model-route and use an agent that it carries, or leave it out`;
    return [{ path: "budget", message }];
  }
  const paths = [
    ...(budget.usd === undefined ? [] : ["budget.usd"]),
    ...(budget.session?.usd === undefined ? [] : ["budget.session.usd"]),
  ];
  if (paths.length === 0) return [];
  const { actor } = chosen.probed;
  const unpriced = callPure(actor, "unpriced", pluginReturns.texts, () => actor.unpriced(chosen.use));
  if (unpriced.length === 0) return [];
  const message = `can't be enforced: ${actor.name} has no price for ${unpriced.join(", ")}: set prices in its configuration, or limit tokens`;
  return paths.map((path) => ({ path, message }));
}

/** The names of the credentials that the gateway keeps outside the sandbox. */
export function carriedBy(gateway: PlannedGateway | undefined): readonly string[] {
  return Object.keys(gateway?.use.credentials ?? {});
}

/** A choice, or the issues that say why there is none. */
interface Choice<Chosen> {
  readonly chosen: Chosen;
  readonly issues: readonly Issue[];
}

/** The harness by id or alias; without a name, the first configured. Whether it can run the request is checked later. */
export function chooseHarness(
  request: RunRequest,
  harnesses: readonly Probed<Harness>[],
): Choice<Probed<Harness> | undefined> {
  const named = request.harness;
  const chosen =
    named === undefined
      ? harnesses[0]
      : // An id wins over another harness's alias.
        (harnesses.find(({ actor }) => actor.id === named) ??
        harnesses.find(({ actor }) => actor.aliases.includes(named)));
  if (chosen !== undefined) return { chosen, issues: [] };
  const loaded = list(harnesses.map(({ actor }) => actor.id));
  const wanted = named === undefined ? "no harness is loaded" : `unknown harness '${named}'`;
  return {
    chosen: undefined,
    issues: [{ path: "harness", message: `${wanted}; expected one of ${loaded}` }],
  };
}

/** The executor for each tool of the request. */
export function chooseExecutors(
  request: RunRequest,
  executors: readonly Probed<ToolExecutor>[],
): Choice<readonly PlannedActor<ToolExecutor, ToolSpec>[]> {
  return assign("customTools", request.customTools, executors, {
    handles: (executor, tool) => executor.kind === tool.kind,
    issues: (executor, tool) => executor.issues({ tool, request }),
    unhandled: ({ kind }) => {
      const loaded = list(executors.map(({ actor }) => actor.kind));
      const message = `no loaded plugin executes tools of kind '${kind}'; expected one of ${loaded}`;
      return { path: "kind", message };
    },
  });
}

/** The tool source for each MCP server of the request. */
export function chooseToolSources(
  request: RunRequest,
  toolSources: readonly Probed<ToolSource>[],
): Choice<readonly PlannedActor<ToolSource, McpServer>[]> {
  return assign("mcpServers", request.mcpServers, toolSources, {
    handles: (source, server) => source.connection === server.connection.type,
    issues: (source, server) => source.issues(server),
    unhandled: ({ connection: { type } }) => {
      const message = `no loaded plugin connects to MCP servers over ${type}: load one, or remove the server`;
      return { path: "connection.type", message };
    },
  });
}

interface Assignment<A, Use> {
  handles(actor: A, use: Use): boolean;
  /** Why the actor can't handle it, by path within the entry. */
  issues(actor: A, use: Use): readonly Issue[];
  /** The issue of an entry that no actor handles. */
  unhandled(use: Use): Issue;
}

/** Gives each entry of a list of the request to the first configured actor that handles it, if there is no issue. */
function assign<A extends { readonly name: string }, Use>(
  path: string,
  entries: readonly Use[],
  actors: readonly Probed<A>[],
  { handles, issues: issuesOf, unhandled }: Assignment<A, Use>,
): Choice<readonly PlannedActor<A, Use>[]> {
  const planned = actors.map((probed): { readonly probed: Probed<A>; readonly uses: Use[] } => ({
    probed,
    uses: [],
  }));
  const issues: Issue[] = [];
  for (const [index, use] of entries.entries()) {
    const part = planned.find(({ probed }) => handles(probed.actor, use));
    const entryIssues =
      part === undefined
        ? [unhandled(use)]
        : callPure(part.probed.actor, "issues", pluginReturns.issues, () => issuesOf(part.probed.actor, use));
    // `gaps` and the run only get entries without an issue.
    if (entryIssues.length === 0) part?.uses.push(use);
    for (const { path: within, message } of entryIssues) {
      issues.push({ path: `${path}[${index}]${within === "" ? "" : `.${within}`}`, message });
    }
  }
  return { chosen: planned.filter(({ uses }) => uses.length > 0), issues };
}

/** The first configured delivery, when there is anything to deliver. */
export function chooseDelivery(
  request: RunRequest,
  deliveries: readonly Probed<ToolDelivery>[],
): Choice<Probed<ToolDelivery> | undefined> {
  if (request.customTools.length === 0 && request.mcpServers.length === 0)
    return { chosen: undefined, issues: [] };
  const chosen = deliveries[0];
  if (chosen !== undefined) return { chosen, issues: [] };
  const path = request.customTools.length > 0 ? "customTools" : "mcpServers";
  return {
    chosen: undefined,
    issues: [{ path, message: "no loaded plugin delivers tools to an agent: load one, such as mcp-http" }],
  };
}

/** The named sandbox, or the first configured one without a gap that has the image; if there is none, the gaps of each. */
export function chooseSandbox(
  bounded: BoundedRequest,
  sandboxes: readonly Probed<SandboxBackend>[],
  ownSandboxes: readonly OwnSandbox[],
  workspaceFolder?: string,
): Choice<Probed<SandboxBackend> | undefined> & {
  readonly gaps: readonly Gap[];
  readonly rootfs: Rootfs;
  /** Which backend opens each further sandbox, by its subject. */
  readonly own: ReadonlyMap<string, Probed<SandboxBackend>>;
} {
  const none = { chosen: undefined, own: new Map() };
  const { sandbox: named, environment } = bounded.request;
  const eligible = named === undefined ? sandboxes : sandboxes.filter(({ actor }) => actor.name === named);
  const image = environment?.image;
  const opening =
    workspaceFolder === undefined ? eligible : eligible.filter(({ actor }) => actor.opensFolders === true);
  const candidates =
    image === undefined ? opening : opening.filter(({ actor }) => isSameImage(image, actor.image));
  if (candidates.length === 0) {
    const issue =
      eligible.length === 0
        ? unknownSandbox(named, sandboxes)
        : opening.length === 0
          ? notInPlace(eligible, sandboxes)
          : unknownImage(image, opening);
    return { ...none, issues: [issue], gaps: [], rootfs: "host" };
  }
  const gaps: Gap[] = [];
  for (const probed of candidates) {
    const lacks = [
      // Everything inside acts through the sandbox, so its claims must cover every requirement.
      ...gapsOf(bounded, { probed, use: undefined, binding: bounded.required }),
      ...credentialGaps(bounded, probed),
    ];
    const further = new Map<string, Probed<SandboxBackend>>();
    for (const wanted of ownSandboxes) {
      const choice = chooseOwn(wanted, probed, sandboxes);
      if ("gaps" in choice) lacks.push(...choice.gaps);
      else further.set(wanted.subject, choice.chosen);
    }
    const { rootfs = "host" } = probed.actor;
    if (lacks.length === 0) return { chosen: probed, issues: [], gaps: [], rootfs, own: further };
    gaps.push(...lacks);
  }
  return { ...none, issues: [], gaps, rootfs: candidates[0]?.actor.rootfs ?? "host" };
}

function unknownSandbox(named: string | undefined, sandboxes: readonly Probed<SandboxBackend>[]): Issue {
  const loaded = list(sandboxes.map(({ actor }) => actor.name));
  const wanted = named === undefined ? "no sandbox is loaded" : `unknown sandbox '${named}'`;
  return { path: "sandbox", message: `${wanted}; expected one of ${loaded}` };
}

function notInPlace(
  eligible: readonly Probed<SandboxBackend>[],
  sandboxes: readonly Probed<SandboxBackend>[],
): Issue {
  const able = sandboxes.filter(({ actor }) => actor.opensFolders === true);
  const others =
    able.length === 0 ? "load sandbox-local" : `use ${list(able.map(({ actor }) => actor.name))}`;
  const message = `${list(eligible.map(({ actor }) => actor.name))} can't have a folder of this host as its workspace: ${others}, or run on a copy of the folder`;
  return { path: "sandbox", message };
}

function unknownImage(image: string | undefined, eligible: readonly Probed<SandboxBackend>[]): Issue {
  const images = list(eligible.map(({ actor }) => `${actor.image ?? "no image"} (${actor.name})`));
  const message = `no sandbox that the request may use has the image '${image}'; expected one of ${images}, or add a backend with it to the configuration`;
  return { path: "environment.image", message };
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "(none loaded)" : names.join(", ");
}

/** Whether a container engine resolves two names to one image: Docker Hub and `latest` may be left out. Pure. */
export function isSameImage(first: string, second: string | undefined): boolean {
  return second !== undefined && wholeName(first) === wholeName(second);
}

function wholeName(image: string): string {
  const named = image.replace(/^(?:docker\.io\/)?(?:library\/)?/, "");
  return /[:@][^/]*$/.test(named) ? named : `${named}:latest`;
}
