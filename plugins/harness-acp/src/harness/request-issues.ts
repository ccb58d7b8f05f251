import type { Issue, RunRequest } from "@ambit/core/plugin";
import { handoffIssues } from "../profiles/handoffs.js";
import { subscriptionIssues } from "../profiles/pi.js";
import type { ModelAccess, Profile } from "../profiles/profile.js";
import { withPlatformInstructions } from "./launch.js";
import { effortName, modelAccess, visibleCredentials } from "./model.js";

/** Variables that determine how the agent's process runs. */
const reserved: ReadonlySet<string> = new Set(["PATH", "HOME", "LANG", "TERM", "TMPDIR", "NO_COLOR"]);

/**
 * The parts of a request that this agent doesn't support, assuming that it is installed. Pure.
 *
 * @param isRouted whether a model gateway carries its requests to the endpoint.
 * @param now milliseconds since 1970.
 */
export function requestIssues(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
  isRouted: boolean,
  now: number,
): readonly Issue[] {
  return [
    ...instructionIssues(profile, request),
    ...handoffIssues(profile, request),
    ...(profile.issues?.(request) ?? []),
    ...modelIssues(profile, request, env, isRouted),
    ...effortIssues(profile, request),
    ...subscriptionIssues(profile, request, now),
    ...variableIssues(request),
    ...sandboxCredentialIssues(profile, request, env),
  ];
}

function instructionIssues(profile: Profile, request: RunRequest): readonly Issue[] {
  const { instructions, title } = profile;
  const issues: Issue[] = [];
  for (const field of ["systemPrompt", "appendSystemPrompt"] as const) {
    if (request[field] === undefined || request[field] === "" || instructions[field]) continue;
    issues.push({ path: field, message: `${title} takes none: use agentsMd, or another harness` });
  }
  const mode = request.harnessMode;
  if (mode !== undefined && mode !== "" && !instructions.modes.includes(mode)) {
    const modes = instructions.modes.length === 0 ? "has no modes" : `knows ${instructions.modes.join(", ")}`;
    issues.push({ path: "harnessMode", message: `${title} ${modes}: leave it out` });
  }
  const index = request.harnessFiles.findIndex(({ path }) => isSameFile(path, instructions.agentsFile));
  if (withPlatformInstructions(profile, request).agentsMd !== undefined && index !== -1) {
    const field = request.agentsMd === undefined ? "platformInstructions" : "agentsMd";
    const message = `${field} becomes ${instructions.agentsFile} as well: give one of the two`;
    issues.push({ path: `harnessFiles[${index}].path`, message });
  }
  return issues;
}

function modelIssues(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
  isRouted: boolean,
): readonly Issue[] {
  const connection = request.modelConnection;
  const { title } = profile;
  const model = modelAccess(profile, request);
  if (model === undefined) return [];
  const issues: Issue[] = [];
  const provider = connection?.provider;
  if (provider !== undefined && provider !== "" && !model.providers.includes(provider)) {
    const message =
      profile.modelFor === undefined || model.providers.length < 3
        ? `${title} talks to ${model.providers[0]}, not to ${provider}: use another harness`
        : `${title} talks to ${model.providers.join(", ")}, not to ${provider}: where it has Chat Completions, name the provider "openai" and give its baseUrl`;
    issues.push({ path: "modelConnection.provider", message });
  }
  for (const field of ["apiVersion", "region", "headers"] as const) {
    if (connection?.endpoint?.[field] === undefined) continue;
    if (isRouted && field === "headers") continue;
    if (field === "region" && hasRegion(model)) continue;
    const message = `${title} has no setting for it: leave it out`;
    issues.push({ path: `modelConnection.endpoint.${field}`, message });
  }
  const mode = connection?.credentialMode ?? "env";
  const credentialNames = visibleCredentials(profile, request, env);
  if (mode === "env" && !credentialNames.some((name) => model.credentials.includes(name))) {
    issues.push({
      path: "modelConnection.credentials",
      message: `${title} needs ${model.credentials[0]}: give it here, or say credentialMode "none" where its endpoint asks for none`,
    });
  }
  return issues;
}

function effortIssues(profile: Profile, request: RunRequest): readonly Issue[] {
  if (request.reasoningEffort === undefined || effortName(profile, request) !== undefined) return [];
  const efforts = Object.keys(profile.reasoning?.efforts ?? {});
  const message = efforts.length === 0 ? "has no setting for it" : `knows ${efforts.join(", ")}`;
  return [{ path: "reasoningEffort", message: `${profile.title} ${message}: leave it out` }];
}

/** Whether the model is in a cloud's region. */
function hasRegion({ route }: ModelAccess): boolean {
  return route?.protocol === "bedrock" || route?.protocol === "vertex";
}

function variableIssues(request: RunRequest): readonly Issue[] {
  const connection = request.modelConnection;
  const names = [
    ...Object.keys(connection?.environment ?? {}).map((name) => ({
      path: `modelConnection.environment.${name}`,
      name,
    })),
    ...(connection?.credentials ?? []).map(({ binding }, index) => ({
      path: `modelConnection.credentials[${index}].binding.name`,
      name: binding.name,
    })),
  ];
  const taken = new Set(names.map(({ name }) => name));
  const outside = request.credentials.map(({ name }, index) => ({
    path: `credentials[${index}].name`,
    name,
  }));
  const clashes = outside
    .filter(({ name }) => taken.has(name))
    .map(({ path, name }) => ({
      path,
      message: `modelConnection has a variable ${name} too: give it another name`,
    }));
  return [
    ...clashes,
    ...[...names, ...outside].flatMap(({ path, name }) => {
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return [{ path, message: "must be a variable's name" }];
      return reserved.has(name) ? [{ path, message: `the runner sets ${name}: leave it out` }] : [];
    }),
  ];
}

/** Variables by which programs of an agent are steered: as a credential, such a name is a mistake or an attack. */
const steering =
  /^(NODE_OPTIONS|NODE_PATH|LD_PRELOAD|LD_LIBRARY_PATH|PYTHONPATH|BASH_ENV|ENV|SHELL|USER|LOGNAME|[A-Z]+_PROXY|NO_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(CODEX|CLAUDE_CODE|CLAUDE|ANTHROPIC|OPENAI|PI|PI_CODING_AGENT|GEMINI_CLI|QWEN|OPENCODE|AGENTA_AGENT|SANDBOX_AGENT|AMBIT|MCP)_.*)$/i;

/** A name that the agent's own settings, or its model's, would replace isn't delivered, so it is refused. */
function sandboxCredentialIssues(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): readonly Issue[] {
  const access = modelAccess(profile, request);
  const taken = new Set([
    ...reserved,
    ...Object.keys(profile.environment),
    ...Object.keys(env),
    ...(access?.credentials ?? []),
    ...(access?.endpoint.variables ?? []),
    ...request.credentials.map(({ name }) => name),
    ...Object.keys(request.modelConnection?.environment ?? {}),
    ...(request.modelConnection?.credentials ?? []).map(({ binding }) => binding.name),
  ]);
  return (request.sandboxCredentials ?? []).flatMap(({ binding: { name } }, index) => {
    if (!taken.has(name) && !steering.test(name)) return [];
    const path = `sandboxCredentials[${index}].binding.name`;
    const message = `${name} belongs to the runner, to ${profile.title} or to another credential: give it another name`;
    return [{ path, message }];
  });
}

function isSameFile(path: string, file: string): boolean {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return parts.length === 1 && parts[0] === file;
}
