import { isJsonObject, type JsonObject, type PublishedTool } from "@ambit/core/plugin";

/** What the SDK gets in place of a message, and what was taken out of it. */
export interface Reduced {
  readonly message: unknown;
  readonly tools?: readonly PublishedTool[];
}

/** The message breaks MCP, or costs too much. The text completes "MCP server 'a' …". */
export class NotTaken extends Error {
  override readonly name = "NotTaken";
}

/**
 * The key by which a tool asks for headers that repeat its arguments (MCP 2026-07-28). The SDK leaves out tools whose
 * declarations break its rules: it gets the tools that have one.
 */
const headerKey = "x-mcp-header";

/** Values that the SDK gets of one message: 20 ms at 10 µs each; and characters. */
const maxPassedValues = 2_000;
const maxPassedCharacters = 1_048_576;

/**
 * A message without what costs the SDK much: its schemas take 10 to 100 µs for each tool, property and block of content.
 * A list's tools are taken out, and a result's content becomes what `kept` returns for
 * its text. Any other message is passed on as it is, or not at all if it is large.
 *
 * @throws NotTaken
 */
export function reduced(message: unknown, kept: (text: string) => string): Reduced {
  const result = isJsonObject(message) ? message.result : undefined;
  if (!isJsonObject(message) || !isJsonObject(result)) return { message: passed(message) };
  if (Array.isArray(result.tools)) {
    const tools = passed(result.tools.filter(asksForHeaders));
    return {
      message: { ...message, result: { ...plainOf(result), tools } },
      tools: result.tools.map(toolIn),
    };
  }
  if (!Array.isArray(result.content) && result.structuredContent === undefined)
    return { message: passed(message) };
  const content = [{ type: "text", text: kept(textOf(result)) }];
  return { message: { ...message, result: { ...plainOf(result), content } } };
}

/** Whether the tool's schema has to be the SDK's too. */
export function asksForHeaders(tool: unknown): boolean {
  for (const { key } of valuesIn(tool)) if (key === headerKey) return true;
  return false;
}

function passed<Value>(value: Value): Value {
  let values = 0;
  let characters = 0;
  for (const { key, value: inner } of valuesIn(value)) {
    values += 1;
    characters += key.length + (typeof inner === "string" ? inner.length : 0);
    if (values > maxPassedValues || characters > maxPassedCharacters)
      throw new NotTaken(
        `sent a message that holds more than ${maxPassedValues.toLocaleString("en")} values or ${maxPassedCharacters.toLocaleString("en")} characters, and isn't a result or a list of tools without ${headerKey}`,
      );
  }
  return value;
}

function* valuesIn(value: unknown): Generator<{ readonly key: string; readonly value: unknown }> {
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const [key, inner] of Object.entries(next)) {
      yield { key, value: inner };
      open.push(inner);
    }
  }
}

/** What a list or a result says of itself: its cursor, whether it is an error, its type, how long it may be kept. */
function plainOf(result: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => typeof value !== "object"));
}

/** A result's text. Other content is replaced by its description; structured content replaces missing text. */
function textOf({ content = [], structuredContent }: JsonObject): string {
  if (!Array.isArray(content)) throw new NotTaken("sent a result whose content isn't a list");
  const texts = content.map(textOfBlock);
  if (texts.length > 0 || structuredContent === undefined) return texts.join("\n");
  return JSON.stringify(structuredContent);
}

function textOfBlock(block: unknown): string {
  const { type, text, uri, resource } = isJsonObject(block) ? block : {};
  if (typeof type !== "string") throw new NotTaken("sent a result with content that has no type");
  const described = `[${type}]`;
  const found =
    type === "text"
      ? text
      : type === "resource_link"
        ? uri
        : type === "resource" && isJsonObject(resource)
          ? (resource.text ?? described)
          : described;
  if (typeof found === "string") return found;
  throw new NotTaken(`sent a result with content of type '${type.slice(0, 100)}' that isn't complete`);
}

function toolIn(tool: unknown): PublishedTool {
  const { name, description, inputSchema, annotations } = isJsonObject(tool) ? tool : {};
  if (typeof name !== "string") throw new NotTaken("lists a tool without a name");
  const named = `lists the tool '${name.slice(0, 100)}'`;
  if (!isJsonObject(inputSchema) || inputSchema.type !== "object")
    throw new NotTaken(`${named} without an inputSchema of type 'object'`);
  if (description !== undefined && typeof description !== "string")
    throw new NotTaken(`${named} with a description that isn't a text`);
  const readOnly = isJsonObject(annotations) ? annotations.readOnlyHint : undefined;
  return {
    name,
    inputSchema,
    ...(description === undefined ? {} : { description }),
    ...(typeof readOnly === "boolean" ? { readOnly } : {}),
  };
}
