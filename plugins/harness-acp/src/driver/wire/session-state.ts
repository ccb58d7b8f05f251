import { isDeepStrictEqual } from "node:util";
import type { AgentEventOf } from "@ambit/core/plugin";
import { isRecord, type JsonRecord, textAt, valueAt } from "../json-reading.js";

type StateEvent = AgentEventOf<"commands" | "mode" | "configuration">;

/** Commands, or options of the configuration. Further ones are left out. */
const maxEntries = 256;
/** Characters of an id, a name or a value; an entry with a longer one is left out. */
const maxNameLength = 256;
/** Characters of a description; a longer one is left out. */
const maxDescriptionLength = 1_024;

/**
 * What an agent says about its session: its commands, its mode, its configuration. Agents repeat themselves, and say some
 * of it between two turns: each turn reports what has changed since the last report.
 */
export class SessionState {
  readonly #current = new Map<StateEvent["type"], StateEvent>();
  readonly #unreported = new Set<StateEvent["type"]>();

  /** The event for an update; undefined if it changes nothing, or isn't about the session's state. */
  changed(update: unknown): StateEvent | undefined {
    const event = isRecord(update) ? stateIn(update) : undefined;
    if (event === undefined || isDeepStrictEqual(event, this.#current.get(event.type))) return undefined;
    this.#current.set(event.type, event);
    return event;
  }

  /** An update outside of a turn. */
  note(update: unknown): void {
    const event = this.changed(update);
    if (event !== undefined) this.#unreported.add(event.type);
  }

  /** What was noted so far of the mode and the configuration is what this run has set itself. */
  begin(): void {
    this.#unreported.delete("mode");
    this.#unreported.delete("configuration");
  }

  /** What was noted since the last turn. */
  take(): readonly StateEvent[] {
    const events = [...this.#current.values()].filter(({ type }) => this.#unreported.has(type));
    this.#unreported.clear();
    return events;
  }
}

/** Pure. */
export function stateIn(update: JsonRecord): StateEvent | undefined {
  switch (update.sessionUpdate) {
    case "available_commands_update":
      return { type: "commands", commands: entries(update.availableCommands).flatMap(commandIn) };
    case "current_mode_update": {
      const mode = name(textAt(update, "currentModeId"));
      return mode === undefined ? undefined : { type: "mode", mode };
    }
    case "config_option_update":
      return { type: "configuration", options: entries(update.configOptions).flatMap(optionIn) };
    default:
      return undefined;
  }
}

function commandIn(command: JsonRecord): AgentEventOf<"commands">["commands"] {
  const named = name(textAt(command, "name"));
  if (named === undefined) return [];
  const description = text(textAt(command, "description"));
  const hint = text(valueAt(command, "input", "hint"));
  return [
    {
      name: named,
      description,
      hint,
    },
  ];
}

function optionIn(option: JsonRecord): AgentEventOf<"configuration">["options"] {
  const id = name(textAt(option, "id"));
  const { currentValue } = option;
  const value = typeof currentValue === "boolean" ? currentValue : name(currentValue);
  if (id === undefined || value === undefined) return [];
  const title = name(option.name);
  const category = name(option.category);
  return [
    {
      id,
      name: title,
      category,
      value,
    },
  ];
}

function entries(list: unknown): readonly JsonRecord[] {
  return Array.isArray(list) ? list.filter(isRecord).slice(0, maxEntries) : [];
}

function name(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= maxNameLength ? value : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= maxDescriptionLength
    ? value
    : undefined;
}
