import type { AgentEventOf } from "@ambit/core";
import { stringify } from "yaml";
import { printable } from "../../../logging/printable.js";
import { colors } from "../../display/layout.js";
import { changeLine } from "../../display/timeline.js";
import { jsonOrText } from "../../read-request.js";
import { type Field, type FieldValue, fieldsOf, readField } from "./form.js";
import { askLine, choose, type Terminal } from "./terminal.js";

/** Characters of a call's arguments, or of an agent's message, that are shown. */
const maxShown = 4_000;

type Request = AgentEventOf<"interaction_request">;
type Payload = NonNullable<Request["payload"]>;

/** Whether the run waits for an answer, and doesn't pause instead. Pure. */
export function isAsked({ payload }: Request): boolean {
  return payload?.expiresAt !== undefined;
}

/** Asks at the terminal what a run asks its user, one question at a time. */
export class Questions {
  readonly #always = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    readonly terminal: Terminal,
    /** Gives an answer to the run. It may throw for a question that is no longer open. */
    readonly answer: (id: string, body: unknown) => void,
    readonly signal: AbortSignal,
  ) {}

  ask(question: Request): void {
    if (!isAsked(question)) return;
    this.#last = this.#last
      .then(() => this.#ask(question))
      .catch(() => {
        // The run has ended, or no longer waits: its result says so.
      });
  }

  async #ask({ id, kind, payload = {} }: Request): Promise<void> {
    this.signal.throwIfAborted();
    switch (kind) {
      case "user_approval":
        return this.answer(id, { approved: await this.#approval(payload) });
      case "user_input":
        return this.answer(id, await this.#input(payload.input));
      case "client_tool":
        return this.answer(id, await this.#output(payload));
    }
  }

  async #approval({
    toolName = "the tool",
    server,
    input = {},
    changes = [],
    used,
  }: Payload): Promise<boolean> {
    // Another server's tool, or the run's budget, may have the same name.
    const subject = JSON.stringify([toolName, server, used !== undefined]);
    if (this.#always.has(subject)) return true;
    const head = colors.magenta(`May ${onOneLine(toolName)} be called?`);
    const of = server === undefined ? "" : `MCP server: ${onOneLine(server)}\n`;
    const would = changes.map((change) => `  would change ${onOneLine(changeLine(change))}\n`).join("");
    const text = `${head}\n${of}${shownInput(input)}${would}${colors.bold("[o]nce, [a]lways in this run, [n]o")} `;
    const choice = await choose(this.terminal, text, /^(o(nce)?|y(es)?|a(lways)?|no?)$/, this.signal);
    if (choice.startsWith("a")) this.#always.add(subject);
    return !choice.startsWith("n");
  }

  /** A form, or a page to visit. */
  async #input(input: unknown): Promise<object> {
    const { message, form, url } = inputOf(input);
    this.#write(`${colors.magenta("The agent asks:")} ${message}\n`);
    if (url !== undefined) this.#write(`Open this page: ${url}\n`);
    const fields = form === undefined ? [] : fieldsOf(form);
    if (fields === undefined) {
      this.#write("This terminal can't show its form, so it is declined.\n");
      return declined;
    }
    const text = colors.bold(url === undefined ? "Answer? [y/n] " : "Done? [y/n] ");
    const choice = await choose(this.terminal, text, /^(y(es)?|no?)$/, this.signal);
    if (choice.startsWith("n")) return declined;
    const values: [string, FieldValue][] = [];
    for (const field of fields) {
      const value = await askLine(
        this.terminal,
        asked(field),
        (line) => {
          const reading = readField(field, line);
          return "value" in reading ? { value: { given: reading.value } } : reading;
        },
        this.signal,
      );
      if (value === undefined) return declined;
      if (value.given !== undefined) values.push([field.name, value.given]);
    }
    return { output: Object.fromEntries(values) };
  }

  /** A client tool: the person is the client. */
  async #output({ toolName = "The tool", input = {} }: Payload): Promise<object> {
    const head = colors.magenta(`${onOneLine(toolName)} is yours to execute:`);
    const text = `${head}\n${shownInput(input)}${colors.bold("Its output, as text or JSON; an empty line declines:")} `;
    const line = await askLine(this.terminal, text, (value) => ({ value }), this.signal);
    if (line === undefined || line === "") return declined;
    return { output: jsonOrText(line) };
  }

  #write(text: string): void {
    this.terminal.output.write(text);
  }
}

const declined = { output: "The user declined.", isError: true };

function inputOf(input: unknown) {
  const fields: Readonly<Record<string, unknown>> =
    typeof input === "object" && input !== null ? { ...input } : {};
  return {
    message: typeof fields.message === "string" ? shown(fields.message) : "",
    form: fields.form,
    url: typeof fields.url === "string" ? shown(fields.url) : undefined,
  };
}

function asked({ title, description, choices = [], required, default: preset }: Field): string {
  const lines = [
    ...(description === undefined ? [] : [shown(description)]),
    ...choices.map((choice, index) => `  ${index + 1}  ${shown(choice.title)}`),
  ];
  const note = preset === undefined ? (required ? "" : " (optional)") : ` (${shown(String(preset))})`;
  return [...lines, colors.bold(`${shown(title)}${note}: `)].join("\n");
}

/** A call's arguments, a line each: `  path: src/app.ts`. Empty for a call without any. */
function shownInput(input: unknown): string {
  if (input === undefined || (typeof input === "object" && Object.keys(Object(input)).length === 0))
    return "";
  return shown(stringify(input, { lineWidth: 0 }).trimEnd())
    .replace(/^/gm, "  ")
    .concat("\n");
}

/** A name that can't look like a question of its own. */
const onOneLine = (name: string) => shown(name).replaceAll(/\s+/g, " ");

/** Says what it leaves out, so that a person knows what they allow unseen. */
function shown(text: string): string {
  const whole = printable(text);
  if (whole.length <= maxShown) return whole;
  const more = (whole.length - maxShown).toLocaleString("en");
  return `${whole.slice(0, maxShown)}\n${colors.red(`… ${more} more characters aren't shown`)}`;
}
