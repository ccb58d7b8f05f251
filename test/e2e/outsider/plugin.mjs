/**
 * A plugin as somebody outside this repository writes it: tools of kind `lookup`, answered from a table in the
 * plugin's configuration. Nothing of it leaves this process, so it touches no domain and claims nothing.
 */
import { definePlugin } from "@ambit/core/plugin";
import { z } from "zod";

const configuration = z.strictObject({
  /** What each key stands for. */
  entries: z.record(z.string(), z.string()),
});

/** @implements {import("@ambit/core/plugin").ToolExecutor} */
class LookupExecutor {
  name = "lookup";
  kind = "lookup";
  site = /** @type {const} */ ("runner");
  claims = [];
  #entries;

  /** @param {Readonly<Record<string, string>>} entries */
  constructor(entries) {
    this.#entries = new Map(Object.entries(entries));
  }

  touches() {
    return [];
  }

  gaps() {
    return [];
  }

  async probe() {
    return [];
  }

  /** @param {import("@ambit/core/plugin").ToolUse} use */
  issues({ tool }) {
    if (tool.options === undefined) return [];
    return [{ path: "options", message: "a lookup has no options: remove them" }];
  }

  /** @param {import("@ambit/core/plugin").ToolCall} call */
  async execute({ arguments: given }) {
    const value = this.#entries.get(String(given.key));
    if (value !== undefined) return { status: "completed", output: value };
    const known = [...this.#entries.keys()].join(", ");
    return { status: "failed", output: `There is no such key; known are ${known}.` };
  }
}

export default definePlugin({
  name: "lookup",
  api: 1,
  config: configuration,
  register: (registrar, { entries }) => registrar.add("executor", new LookupExecutor(entries)),
});
