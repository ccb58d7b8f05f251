import type { HiddenCredential, RunRequest } from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";

/** The request's model as the agent knows it, or the profile's default; empty for an agent without a model. */
export function modelName(profile: Profile, request: RunRequest): string {
  if (profile.model === undefined) return "";
  const { model } = request;
  if (model === undefined || model === "") return profile.model.defaultModel;
  const prefix = profile.model.providers.find((provider) => model.startsWith(`${provider}/`));
  return prefix === undefined ? model : model.slice(prefix.length + 1);
}

/** Where the agent's model lives; undefined for an agent without one. */
export function modelDestination(
  profile: Profile,
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): URL | undefined {
  if (profile.model === undefined) return undefined;
  const { endpoint } = profile.model;
  const connection = request.modelConnection;
  const stated = [
    connection?.endpoint?.baseUrl,
    ...endpoint.variables.map((name) => connection?.environment?.[name] ?? env[name]),
  ].find((url) => url !== undefined && URL.canParse(url));
  return new URL(stated ?? endpoint.url);
}

/** The request's credentials that the agent does nothing with but send them to its model, over TLS. */
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
  const known = profile.model?.credentials ?? [];
  const fromDeployer = known.filter((name) => name in env);
  const fromEnvironment = known.filter((name) => name in (connection?.environment ?? {}));
  return [...new Set([...fromRequest, ...fromDeployer, ...fromEnvironment])];
}
