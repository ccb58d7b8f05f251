import { join } from "node:path/posix";
import { limitVariables, type ModelRoute, type RunRequest, type Sandbox } from "@ambit/core/plugin";
import type { AgentLaunchPlan } from "../driver/start-agent.js";
import type { PlacedProgram } from "../installation/place-program.js";
import { guarded, restrictsOwnTools } from "../profiles/handoffs.js";
import type { ModelAccess, ModelEndpoint, Profile, ToolEndpoint } from "../profiles/profile.js";
import { effortName, modelAccess, modelName, statedEndpoint } from "./model.js";

export interface LaunchPlanOptions {
  readonly profile: Profile;
  readonly program: PlacedProgram;
  /** The deployer's variables for this agent. */
  readonly env: Readonly<Record<string, string>>;
  readonly request: RunRequest;
  readonly sandbox: Pick<Sandbox, "home" | "workspace" | "placeholders">;
  readonly servers: readonly ToolEndpoint[];
  /** Whether the operator denies tools, whatever the request says. */
  readonly deniesTools: boolean;
  /** Names this start of the agent: unique, and impossible to guess. */
  readonly startId: string;
  /** The address of a model gateway; absent: the agent connects to its model itself. */
  readonly route?: ModelRoute | undefined;
}

/** What the agent is started with. Pure. */
export function planLaunch(options: LaunchPlanOptions): AgentLaunchPlan {
  const { profile, program, sandbox, servers, route } = options;
  const request = withPlatformInstructions(profile, options.request);
  const { home } = sandbox;
  const access = modelAccess(profile, request);
  const model = modelName(profile, request);
  const { companion, compiled } = program;
  const credential = credentialInside(options, access);
  const effort = effortName(profile, request);
  const prepared = profile.prepare({
    request,
    home,
    workspace: sandbox.workspace,
    fresh: join(home, ".ambit", options.startId),
    model,
    endpoint: endpointOf(options, access),
    servers,
    searchPath: program.searchPath,
    credential,
    companion,
    ...(compiled === undefined ? {} : { compiled }),
    effort,
  });
  const agentsFile = join(sandbox.workspace, profile.instructions.agentsFile);
  const { agentsMd } = request;
  const argv: AgentLaunchPlan["argv"] = [
    ...program.argv,
    ...profile.arguments,
    ...(prepared.arguments ?? []),
  ];
  const restricted = options.deniesTools || restrictsOwnTools(request);
  return {
    argv: restricted ? guarded(argv, profile) : argv,
    obeyed: restricted ? (profile.obeys ?? []) : [],
    env: {
      PATH: program.searchPath,
      HOME: home,
      LANG: "C.UTF-8",
      TERM: "dumb",
      NO_COLOR: "1",
      // A pager or a question would wait for a terminal that isn't there.
      PAGER: "cat",
      GIT_PAGER: "cat",
      GIT_TERMINAL_PROMPT: "0",
      ...limitVariables(request.sandboxPermission.resources ?? {}),
      ...sandboxCredentials(request),
      ...withoutModel(access, route, {
        ...options.env,
        ...request.modelConnection?.environment,
        ...credentials(request),
      }),
      ...sandbox.placeholders,
      ...routeVariables(access, route),
      ...prepared.environment,
      ...profile.environment,
    },
    files: prepared.files,
    workspaceFiles: agentsMd === undefined ? [] : [{ path: agentsFile, content: agentsMd }],
    model,
    requiresListed: mustBeListed(options, access),
    sessionMeta: { ...profile.sessionMeta, ...prepared.sessionMeta },
    session: prepared.session ?? {},
    ...(effort === undefined || profile.reasoning?.by !== "session" ? {} : { effort }),
  };
}

function credentialInside(
  { request, env, route, sandbox }: LaunchPlanOptions,
  model: ModelAccess | undefined,
): string | undefined {
  if (route !== undefined) return route.key;
  const variables = { ...env, ...request.modelConnection?.environment, ...credentials(request) };
  const name = model?.credentials.find((credential) => Object.hasOwn(variables, credential));
  return name === undefined ? undefined : (sandbox.placeholders?.[name] ?? variables[name]);
}

/** Another endpoint may have other models; the profile decides on the agent's default. */
function mustBeListed(options: LaunchPlanOptions, model: ModelAccess | undefined): boolean {
  const { request, route, env } = options;
  if (model === undefined || route !== undefined || (request.model ?? "") === "") return false;
  if (statedEndpoint(model, request, env) !== undefined) return false;
  return model.isKnown?.(modelName(options.profile, request)) !== true;
}

function endpointOf(
  { request, env, route }: LaunchPlanOptions,
  model: ModelAccess | undefined,
): ModelEndpoint {
  if (route !== undefined) return { baseUrl: route.baseUrl, key: route.key };
  const baseUrl = model === undefined ? undefined : statedEndpoint(model, request, env);
  return baseUrl === undefined ? {} : { baseUrl };
}

/** If a gateway carries the requests, the credentials that it needs stay with it. */
function withoutModel(
  model: ModelAccess | undefined,
  route: ModelRoute | undefined,
  environment: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (route === undefined || model === undefined) return environment;
  const names = [...model.credentials, ...model.endpoint.variables];
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !names.includes(name)));
}

function routeVariables(
  model: ModelAccess | undefined,
  route: ModelRoute | undefined,
): Record<string, string> {
  if (model === undefined || route === undefined) return {};
  const [baseUrl] = model.endpoint.variables;
  const key = model.route?.keyVariable ?? model.credentials[0];
  return { ...(baseUrl === undefined ? {} : { [baseUrl]: route.baseUrl }), [key]: route.key };
}

/** The issues of a request keep every name out that a later variable would replace. */
function sandboxCredentials(request: RunRequest): Record<string, string> {
  const listed = request.sandboxCredentials ?? [];
  return Object.fromEntries(listed.map(({ binding, value }) => [binding.name, value]));
}

function credentials(request: RunRequest): Record<string, string> {
  const connection = request.modelConnection;
  if (connection === undefined || connection.credentialMode !== "env") return {};
  return Object.fromEntries(connection.credentials.map(({ binding, value }) => [binding.name, value]));
}

/** The fields of a request that become an agent's instructions. */
type InstructionField = "appendSystemPrompt" | "agentsMd";

/** Where this agent gets the platform's instructions: its system prompt, if that can be added to. */
function platformField({ instructions }: Profile): InstructionField {
  return instructions.appendSystemPrompt ? "appendSystemPrompt" : "agentsMd";
}

/** The request with the platform's instructions in front of the author's own. Pure. */
export function withPlatformInstructions(profile: Profile, request: RunRequest): RunRequest {
  const { platformInstructions = "" } = request;
  if (platformInstructions.trim() === "") return request;
  const field = platformField(profile);
  const authored = request[field] ?? "";
  return {
    ...request,
    [field]: authored === "" ? platformInstructions : `${platformInstructions}\n\n${authored}`,
  };
}
