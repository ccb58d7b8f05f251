import type { ModelUse, RunRequest } from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";
import { regionOf } from "../profiles/region.js";
import { modelAccess, modelDestination, modelName } from "./model.js";

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
  known: readonly string[],
  request: RunRequest,
  env: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const connection = request.modelConnection;
  const given = { ...env, ...connection?.environment };
  const variables = Object.entries(given).filter(([name]) => known.includes(name));
  const own = connection?.credentialMode === "env" ? connection.credentials : [];
  const named = own.filter(({ binding }) => known.includes(binding.name));
  return Object.fromEntries([...variables, ...named.map(({ binding, value }) => [binding.name, value])]);
}
