import { type Issue, isJsonObject, type JsonObject } from "@ambit/core/contract";

/** Headers and variables that a request brings: each is searched for secrets. */
const maxEntries = 2_000;

/** The maps of names and values below one field of a request. */
const mapsBelow: Readonly<Record<string, (field: unknown) => readonly unknown[]>> = {
  mcpServers: (servers) =>
    objectsIn(servers).flatMap(({ connection }) =>
      isJsonObject(connection) ? [connection.headers, connection.env] : [],
    ),
  customTools: (tools) => objectsIn(tools).map(({ env }) => env),
  modelConnection: (connection) => [fieldOf(fieldOf(connection, "endpoint"), "headers")],
  telemetry: (telemetry) => [fieldOf(fieldOf(fieldOf(telemetry, "exporters"), "otlp"), "headers")],
};

/** The request without its fields that have headers and variables, where it has too many: nothing else is checked of them then. Pure. */
export function withinHeaderRoom(request: unknown): { readonly body: unknown; readonly issues: Issue[] } {
  if (!isJsonObject(request)) return { body: request, issues: [] };
  let entries = 0;
  const found = Object.entries(mapsBelow).find(([path, maps]) => {
    for (const map of maps(request[path])) if (isJsonObject(map)) entries += Object.keys(map).length;
    return entries > maxEntries;
  });
  if (found === undefined) return { body: request, issues: [] };
  const [path] = found;
  const {
    mcpServers: _servers,
    customTools: _tools,
    modelConnection: _model,
    telemetry: _to,
    ...body
  } = request;
  const message = `makes more than ${maxEntries.toLocaleString("en")} headers and variables together: send fewer`;
  return { body, issues: [{ path, message }] };
}

function objectsIn(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

function fieldOf(value: unknown, name: string): unknown {
  return isJsonObject(value) ? value[name] : undefined;
}
