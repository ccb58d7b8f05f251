import { type Issue, isJsonObject, type JsonObject, limits } from "@ambit/core/contract";

/** Its names of harnesses. */
export const harnesses: Readonly<Record<string, string>> = { pi_core: "pi", pi_agenta: "pi" };

/** Values, not names, that earlier wires and other SDKs spell otherwise. */
export function withCurrentValues(body: JsonObject, issues: Issue[]): JsonObject {
  issues.push(...namedSkills(body.skills));
  const harness =
    typeof body.harness === "string" && Object.hasOwn(harnesses, body.harness)
      ? harnesses[body.harness]
      : undefined;
  const messages = withKnownRoles(body.messages);
  let current = body;
  if (harness !== undefined) current = { ...current, harness };
  if (messages !== body.messages) current = { ...current, messages };
  if (isOwnedByCaller(body)) current = { ...current, onDisconnect: "cancel" };
  if (!isUnset(body.toolCallback)) return current;
  const { toolCallback: _unset, ...rest } = current;
  return rest;
}

/** A longer list is refused for its length. */
function namedSkills(skills: unknown): Issue[] {
  if (!Array.isArray(skills) || skills.length > limits.skills) return [];
  const message = "names a skill without its content: send an object with name, description and body";
  return skills.flatMap((skill: unknown, index) =>
    typeof skill === "string" ? [{ path: `skills[${index}]`, message }] : [],
  );
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
