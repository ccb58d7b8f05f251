import { type Issue, isJsonObject, type JsonObject } from "@ambit/core/contract";

const olderHarnesses: ReadonlyMap<string, string> = new Map([
  ["pi_core", "pi"],
  ["pi_agenta", "pi"],
]);

/** The names under which earlier wires know a harness besides its own. */
export function olderNamesOf(harness: string): readonly string[] {
  return [...olderHarnesses].flatMap(([older, current]) => (current === harness ? [older] : []));
}

/** Values, not names, that earlier wires and other SDKs spell otherwise. */
export function withCurrentValues(body: JsonObject, issues: Issue[]): JsonObject {
  for (const [index, skill] of (Array.isArray(body.skills) ? body.skills : []).entries()) {
    if (typeof skill !== "string") continue;
    const message = "names a skill without its content: send an object with name, description and body";
    issues.push({ path: `skills[${index}]`, message });
  }
  const harness = typeof body.harness === "string" ? olderHarnesses.get(body.harness) : undefined;
  const messages = withKnownRoles(body.messages);
  let current = body;
  if (harness !== undefined) current = { ...current, harness };
  if (messages !== body.messages) current = { ...current, messages };
  if (isOwnedByCaller(body)) current = { ...current, onDisconnect: "cancel" };
  if (!isUnset(body.toolCallback)) return current;
  const { toolCallback: _unset, ...rest } = current;
  return rest;
}

/**
 * A platform that sends its own instructions says `detached` where a run outlives its caller; one before it let every
 * run of a session continue. Nothing else tells the two apart.
 */
function isOwnedByCaller({ platformInstructions, onDisconnect }: JsonObject): boolean {
  return platformInstructions !== undefined && onDisconnect === undefined;
}

/** A platform without an endpoint still sends the object. A tool that needs one is refused by its executor. */
function isUnset(toolCallback: unknown): boolean {
  return (
    isJsonObject(toolCallback) &&
    toolCallback.endpoint === undefined &&
    Object.keys(toolCallback).every((key) => key === "authorization")
  );
}

/** `developer` is what some SDKs call `system`. */
function withKnownRoles(messages: unknown): unknown {
  if (!Array.isArray(messages) || !messages.some(isOfDeveloper)) return messages;
  return messages.map((message: unknown) =>
    isOfDeveloper(message) ? { ...message, role: "system" } : message,
  );
}

function isOfDeveloper(message: unknown): message is JsonObject {
  return isJsonObject(message) && message.role === "developer";
}
