import type { SessionUpdate, ToolCallContent, ToolCallLocation } from "@agentclientprotocol/sdk/unstable";
import type { AgentEvent } from "@ambit/client";
import { isJsonObject } from "@ambit/core/plugin";
import { kindOf, titleOf } from "./call-title.js";
import { outsidePath } from "./places.js";

/** Characters of a running command's output that an editor without a terminal's output gets again with each piece. */
const maxRunningOutput = 8_000;

/** What the mapping depends on besides the log. */
export interface UpdateOptions {
  /** The editor's folder, without links. */
  readonly folder: string;
  /** Whether the editor shows a command's output as that of a terminal, from the updates' `_meta`. */
  readonly showsTerminals: boolean;
  /** Whether it shows notices. */
  readonly showsNotices: boolean;
}

/** A call that has no result yet. */
interface OpenCall {
  readonly hasTerminal: boolean;
  /** The end of what it has printed so far. */
  readonly printed: string;
}

/** What of a run's earlier events the later ones need. */
export interface UpdateState {
  readonly calls: ReadonlyMap<string, OpenCall>;
}

export const noUpdates: UpdateState = { calls: new Map() };

type Mapped = readonly [UpdateState, readonly SessionUpdate[]];
type EventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { type: Type }>;

/** One event of a run's log as the editor's updates. A question, and an event that an editor can't show, is none. Pure. */
export function updatesOf(state: UpdateState, event: AgentEvent, options: UpdateOptions): Mapped {
  switch (event.type) {
    case "message":
      return [state, [message(event.text)]];
    case "message_delta":
      return [state, [message(event.delta)]];
    case "thought":
      return [state, [thought(event.text)]];
    case "thought_delta":
      return [state, [thought(event.delta)]];
    case "tool_call":
      return beginCall(state, event, options);
    case "tool_output":
      return continueCall(state, event);
    case "tool_result":
      return endCall(state, event, options);
    case "boundary_decision":
      return [state, refusedConnection(event)];
    case "mcp_server_failed":
      return [state, [failedServer(event)]];
    case "commands":
      return [state, [commands(event)]];
    case "file":
      return [state, fileOf(event)];
    case "data":
      return [state, dataOf(event, options)];
    case "done":
      return [noUpdates, unfinishedCalls(state)];
    default:
      return [state, []];
  }
}

/** Text of the agent. Pure. */
export function message(text: string): SessionUpdate {
  return { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
}

function thought(text: string): SessionUpdate {
  return { sessionUpdate: "agent_thought_chunk", content: { type: "text", text } };
}

/** Something to know about a turn, which the agent didn't say. Pure. */
export function notice(
  severity: "info" | "warning" | "error",
  title: string,
  { showsNotices }: Pick<UpdateOptions, "showsNotices">,
): SessionUpdate {
  return showsNotices ? { sessionUpdate: "notice", severity, title } : message(`\n\n> ${title}\n\n`);
}

function beginCall(
  state: UpdateState,
  { id, name = "tool", input, locations }: EventOf<"tool_call">,
  options: UpdateOptions,
): Mapped {
  const kind = kindOf(name, input);
  const hasTerminal = kind === "execute" && options.showsTerminals;
  const update: SessionUpdate = {
    sessionUpdate: "tool_call",
    toolCallId: id,
    title: titleOf(name, input, (path) => shortPath(path, options)),
    name,
    kind,
    status: "in_progress",
    rawInput: input,
    ...locationsOf(locations, options),
    ...(hasTerminal
      ? {
          content: [{ type: "terminal", terminalId: id }],
          _meta: { terminal_info: { terminal_id: id, cwd: options.folder } },
        }
      : {}),
  };
  return [withCall(state, id, { hasTerminal, printed: "" }), [update]];
}

function continueCall(state: UpdateState, { id, delta }: EventOf<"tool_output">): Mapped {
  const call = state.calls.get(id) ?? { hasTerminal: false, printed: "" };
  const printed = `${call.printed}${delta}`.slice(-maxRunningOutput);
  const shown = call.hasTerminal
    ? { _meta: { terminal_output: { terminal_id: id, data: delta } } }
    : { content: [textContent(printed)] };
  const update: SessionUpdate = { sessionUpdate: "tool_call_update", toolCallId: id, ...shown };
  return [withCall(state, id, { ...call, printed }), [update]];
}

function endCall(
  state: UpdateState,
  { id, output, changes = [], locations, isError = false }: EventOf<"tool_result">,
  options: UpdateOptions,
): Mapped {
  const call = state.calls.get(id);
  const text = output === undefined ? "" : typeof output === "string" ? output : JSON.stringify(output);
  const diffs = changes.map((change) => diffOf(change, options));
  const content: ToolCallContent[] = [
    ...diffs,
    ...(text === "" || (diffs.length > 0 && !isError) ? [] : [textContent(text)]),
  ];
  const update: SessionUpdate = {
    sessionUpdate: "tool_call_update",
    toolCallId: id,
    status: isError ? "failed" : "completed",
    rawOutput: output,
    ...locationsOf(locations, options),
    ...(call?.hasTerminal === true ? terminalEnd(id, call.printed === "" ? text : "") : { content }),
  };
  return [withoutCall(state, id), [update]];
}

/** @param data what the terminal hasn't shown yet */
function terminalEnd(id: string, data: string) {
  const output = data === "" ? {} : { terminal_output: { terminal_id: id, data } };
  const exit = { terminal_exit: { terminal_id: id, exit_code: null, signal: null } };
  return { _meta: { ...output, ...exit } };
}

/** A run is over, and these calls have no result: a question wasn't answered, or the run was cancelled or lost. Pure. */
export function unfinishedCalls({ calls }: UpdateState): readonly SessionUpdate[] {
  return [...calls].map(unfinished);
}

function unfinished([id, { hasTerminal }]: readonly [string, OpenCall]): SessionUpdate {
  const ended = hasTerminal ? terminalEnd(id, "") : {};
  return { sessionUpdate: "tool_call_update", toolCallId: id, status: "failed", ...ended };
}

interface Change {
  readonly path: string;
  readonly oldText?: string;
  readonly newText?: string;
  readonly omitted?: number;
}

/** A change of a file as the editor shows it. Pure. */
export function diffOf(
  { path, oldText, newText, omitted }: Change,
  options: Pick<UpdateOptions, "folder">,
): ToolCallContent {
  const place = outsidePath(options.folder, path);
  if (omitted !== undefined)
    return textContent(`${place} was changed: ${omitted} characters, too many to show here.`);
  return { type: "diff", path: place, oldText: oldText ?? null, newText: newText ?? "" };
}

interface Location {
  readonly path: string;
  readonly line?: number;
}

/** Pure. */
export function locationsOf(
  locations: readonly Location[] | undefined,
  { folder }: Pick<UpdateOptions, "folder">,
): { readonly locations?: ToolCallLocation[] } {
  if (locations === undefined) return {};
  return {
    locations: locations.map(({ path, line }) => ({
      path: outsidePath(folder, path),
      ...(line === undefined ? {} : { line }),
    })),
  };
}

function textContent(text: string): ToolCallContent {
  return { type: "content", content: { type: "text", text } };
}

/** A path as a title shows it. Pure. */
export function shortPath(path: string, { folder }: Pick<UpdateOptions, "folder">): string {
  const place = outsidePath(folder, path);
  return place.startsWith(`${folder}/`) ? place.slice(folder.length + 1) : place;
}

/** One entry for each destination, so that a refusal never looks like a fault of the network. */
function refusedConnection({
  target,
  allowed,
  reason,
  failure,
  count,
}: EventOf<"boundary_decision">): readonly SessionUpdate[] {
  if (allowed && failure === undefined) return [];
  const title = allowed
    ? `The connection to ${target} failed: ${failure}`
    : `The boundary refused ${target} (${reason})${count > 1 ? `, ${count} times` : ""}`;
  return [failed(`boundary:${target}`, title, "fetch")];
}

function failedServer({ serverName, message: why }: EventOf<"mcp_server_failed">): SessionUpdate {
  return failed(`mcp:${serverName}`, `The MCP server ${serverName} failed: ${why}`, "other");
}

function failed(toolCallId: string, title: string, kind: "fetch" | "other"): SessionUpdate {
  return { sessionUpdate: "tool_call", toolCallId, title, kind, status: "failed" };
}

function commands({ commands: listed }: EventOf<"commands">): SessionUpdate {
  return {
    sessionUpdate: "available_commands_update",
    availableCommands: listed.map(({ name, description = "", hint }) => ({
      name,
      description,
      ...(hint === undefined ? {} : { input: { hint } }),
    })),
  };
}

/** An image, or a link. What `outputs` of the request took out of the workspace is in the editor's folder already. */
function fileOf({ url, mediaType, path }: EventOf<"file">): readonly SessionUpdate[] {
  if (path !== undefined) return [];
  const inline = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1];
  if (inline !== undefined && mediaType.startsWith("image/"))
    return [
      {
        sessionUpdate: "agent_message_chunk",
        content: { type: "image", data: inline, mimeType: mediaType },
      },
    ];
  if (inline !== undefined) return [];
  return [
    {
      sessionUpdate: "agent_message_chunk",
      content: {
        type: "resource_link",
        uri: url,
        name: url.slice(url.lastIndexOf("/") + 1),
        mimeType: mediaType,
      },
    },
  ];
}

function dataOf({ name, data }: EventOf<"data">, options: UpdateOptions): readonly SessionUpdate[] {
  const read = isJsonObject(data) ? data : {};
  switch (name) {
    case "plan":
      return [{ sessionUpdate: "plan", entries: entriesIn(read.entries) }];
    case "notice": {
      const severity = read.severity === "error" || read.severity === "warning" ? read.severity : "info";
      return typeof read.title === "string" ? [notice(severity, read.title, options)] : [];
    }
    case "truncated":
      return [notice("warning", "This turn was too long to be kept whole: some of it isn't shown.", options)];
    case "preview":
    case "pull_request":
      return typeof read.url === "string" ? [message(`\n\n${read.url}\n\n`)] : [];
    default:
      return [];
  }
}

const priorities = ["high", "medium", "low"] as const;
const statuses = ["pending", "in_progress", "completed"] as const;

function entriesIn(entries: unknown) {
  return (Array.isArray(entries) ? entries : []).filter(isJsonObject).map((entry) => ({
    content: String(entry.content ?? ""),
    priority: priorities.find((priority) => priority === entry.priority) ?? "medium",
    status: statuses.find((status) => status === entry.status) ?? "pending",
  }));
}

function withCall({ calls }: UpdateState, id: string, call: OpenCall): UpdateState {
  return { calls: new Map(calls).set(id, call) };
}

function withoutCall({ calls }: UpdateState, id: string): UpdateState {
  const left = new Map(calls);
  left.delete(id);
  return { calls: left };
}

/** The same updates with neighbouring texts joined, and without the pieces of what a command printed. Pure. */
export function coalesced(updates: readonly SessionUpdate[]): SessionUpdate[] {
  const joined: SessionUpdate[] = [];
  for (const update of updates) {
    const last = joined.at(-1);
    const before = last?.sessionUpdate === update.sessionUpdate ? textIn(last) : undefined;
    const text = textIn(update);
    if (isText(update) && text !== undefined && before !== undefined)
      joined[joined.length - 1] = { ...update, content: { type: "text", text: before + text } };
    else if (!isPiece(update)) joined.push(update);
  }
  return joined;
}

/** The agent's words. Pure. */
export function textSaid(updates: readonly SessionUpdate[]): string {
  return updates
    .flatMap((update) => (update.sessionUpdate === "agent_message_chunk" ? [textIn(update) ?? ""] : []))
    .join("");
}

type TextUpdate = Extract<SessionUpdate, { sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" }>;

function isText(update: SessionUpdate): update is TextUpdate {
  const { sessionUpdate } = update;
  return sessionUpdate === "agent_message_chunk" || sessionUpdate === "agent_thought_chunk";
}

function textIn(update: SessionUpdate): string | undefined {
  return isText(update) && update.content.type === "text" ? update.content.text : undefined;
}

/** A command's output while it runs: its end has the whole, or the terminal that showed it is gone. */
function isPiece(update: SessionUpdate): boolean {
  return update.sessionUpdate === "tool_call_update" && update.status === undefined;
}
