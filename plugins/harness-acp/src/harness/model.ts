import { type HiddenCredential, type ModelUse, type RunRequest, subscriptionPath } from "@ambit/core/plugin";
import type { ModelAccess, Profile } from "../profiles/profile.js";
import { regionOf, withoutVersion, withVersion } from "../profiles/providers.js";

/** How this request's agent reaches its model; undefined for an agent without one. */
export function modelAccess(profile: Profile, request: RunRequest): ModelAccess | undefined {
  return profile.modelFor?.(request) ?? profile.model;
}

/** The request's model by the agent's name for it, or the profile's default; empty for an agent without a model. */
export function modelName(profile: Profile, request: RunRequest): string {
  const access = modelAccess(profile, request);
  if (access === undefined) return "";
  const { model } = request;
  if (model === undefined || model === "") return access.defaultModel;
  const prefix = (access.prefixes ?? access.providers).find((provider) => model.startsWith(`${provider}/`));
  return prefix === undefined ? model : model.slice(prefix.length + 1);
}

/** The agent's name for the request's reasoning effort; undefined if the request names none, or one it doesn't have. */
export function effortName({ reasoning }: Profile, { reasoningEffort }: RunRequest): string | undefined {
  return reasoningEffort === undefined ? undefined : reasoning?.efforts[reasoningEffort];
}

/** The host of the agent's model; undefined for an agent without one. */
export function modelDestination(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): URL | undefined {
  const access = modelAccess(profile, request);
  if (access === undefined) return undefined;
  return new URL(statedEndpoint(access, request, env) ?? access.endpoint.url);
}

/** The model's address according to the request or the deployer. */
export function statedEndpoint(
  { endpoint }: ModelAccess,
  { modelConnection: connection }: RunRequest,
  env: Readonly<Record<string, string>>,
): string | undefined {
  const url = [
    connection?.endpoint?.baseUrl,
    ...endpoint.variables.map((name) => connection?.environment?.[name] ?? env[name]),
  ].find((url) => url !== undefined && URL.canParse(url));
  if (url === undefined) return undefined;
  if (endpoint.includes !== undefined) return withVersion(url, endpoint.includes);
  return endpoint.excludes === undefined ? url : withoutVersion(url, endpoint.excludes);
}

/** The request's credentials that the agent only sends to its model, over TLS. */
export function hideableCredentials(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): readonly HiddenCredential[] {
  const connection = request.modelConnection;
  const destination = modelDestination(profile, request, env);
  if (destination?.protocol !== "https:" || connection?.credentialMode !== "env") return [];
  return connection.credentials
    .filter(({ usage }) => usage === "opaque_http")
    .map(({ binding, value }) => ({ name: binding.name, value, hosts: [destination.host] }));
}

/** Names of the credentials that the agent's environment will hold: the request's, and the deployer's. */
export function visibleCredentials(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): readonly string[] {
  const connection = request.modelConnection;
  const fromRequest =
    connection === undefined || connection.credentialMode !== "env"
      ? []
      : connection.credentials.map(({ binding }) => binding.name);
  const modelCredentials = modelAccess(profile, request)?.credentials ?? [];
  const fromDeployer = modelCredentials.filter((name) => name in env);
  const fromEnvironment = modelCredentials.filter((name) => name in (connection?.environment ?? {}));
  const isLoggedIn = profile.takesSubscription === true && connection?.subscription !== undefined;
  const login = isLoggedIn ? [subscriptionPath] : [];
  const forAgent = (request.sandboxCredentials ?? []).map(({ binding }) => binding.name);
  return [...new Set([...fromRequest, ...fromDeployer, ...fromEnvironment, ...forAgent, ...login])];
}

/** The description of this request's model for a model gateway. Undefined if the agent can't use one. Pure. */
export function modelUse(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): ModelUse | undefined {
  const destination = modelDestination(profile, request, env);
  const model = modelAccess(profile, request);
  if (model?.route === undefined || destination === undefined) return undefined;
  const { protocol, auxiliaryModels = [] } = model.route;
  const { basePath = protocol === "openai" ? "/v1" : "" } = model.route;
  const { endpoint, gatewayCredentials: gateway } = request.modelConnection ?? {};
  const region = regionOf(request);
  return {
    protocol,
    basePath,
    endpoint: destination.href.replace(/\/+$/, ""),
    credentials: credentialsOf(model.credentials, request, env),
    headers: { ...endpoint?.headers, ...(gateway === undefined ? {} : { [gateway.header]: gateway.value }) },
    region,
    model: modelName(profile, request),
    auxiliaryModels,
  };
}

/** The credentials in `visibleCredentials` that belong to the model. */
function credentialsOf(
  names: readonly string[],
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const connection = request.modelConnection;
  const environment = { ...env, ...connection?.environment };
  const variables = Object.entries(environment).filter(([name]) => names.includes(name));
  const credentials = connection?.credentialMode === "env" ? connection.credentials : [];
  const named = credentials.filter(({ binding }) => names.includes(binding.name));
  return Object.fromEntries([...variables, ...named.map(({ binding, value }) => [binding.name, value])]);
}
