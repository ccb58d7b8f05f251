import { isJsonObject, type Log, runRequestSchema, schemaFields, suggestsSecret } from "@ambit/core";
import type { LogLine, RunObserver } from "@ambit/core/plugin";
import { Redactor } from "@ambit/runner";
import colors from "picocolors";
import { pino } from "pino";
import { z } from "zod";
import { configurationSchema, type LogLevel } from "../configuration/schema.js";
import { printableLine } from "./printable.js";

/** The runner's log on stderr: JSON lines, or readable ones at a terminal. */
export function openLog(level: LogLevel, redaction: LogRedaction, copies: LineCopies): Log {
  // A text has no fields.
  const ofError = (error: unknown) =>
    error instanceof Error ? withoutSecrets(pino.stdSerializers.errWithCause(error)) : error;
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: object) => withoutSecrets(fields),
    },
    serializers: { error: ofError, err: ofError },
    hooks: {
      streamWrite: (line: string) => {
        const redacted = redaction.line(line);
        copies.line(redacted);
        return redacted;
      },
    },
  };
  // Written synchronously: the last lines before an exit matter most.
  if (!process.stderr.isTTY) return pino(options, pino.destination({ dest: 2, sync: true }));
  return pino(options, readableLines(process.stderr));
}

/** Levels of objects in an entry's fields. What is deeper was not made by the runner; it is searched by value. */
const maxLevels = 4;

/** Names of fields that hold a secret as a whole: of a URL only parts do, which are searched by value. */
const secretNames = new Set(
  [runRequestSchema, configurationSchema]
    .flatMap((schema) => schemaFields(schema))
    .flatMap(({ name, kind }) => (kind === undefined || kind === "url" || kind === "address" ? [] : [name])),
);

/** An entry's fields without those that always hold a secret. `LogRedaction` finds secrets that are known by value. Pure. */
export function withoutSecrets(fields: object, levels = maxLevels): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (secretNames.has(name) || suggestsSecret(name)) return [name, "[redacted]"];
      const isOfFields = isJsonObject(value) && !(value instanceof Error) && levels > 1;
      return [name, isOfFields ? withoutSecrets(value, levels - 1) : value];
    }),
  );
}

const levelColors: Readonly<Record<string, (text: string) => string>> = {
  debug: colors.dim,
  info: colors.cyan,
  warn: colors.yellow,
  error: colors.red,
};

/** Converts the log's JSON lines into readable ones: `12:00:01 warn a probe failed actor=local`. */
function readableLines(output: { write(text: string): unknown }): { write(line: string): void } {
  return { write: (line) => void output.write(`${readableLine(line)}\n`) };
}

export function readableLine(line: string): string {
  const record: unknown = JSON.parse(line);
  if (!isJsonObject(record)) return printableLine(line.trimEnd());
  const { time, level, msg, ...fields } = record;
  const color = levelColors[String(level)] ?? colors.white;
  const shownFields = Object.entries(fields).map(([key, value]) => `${colors.dim(`${key}=`)}${shown(value)}`);
  return [String(time).slice(11, 19), color(String(level)), printableLine(String(msg)), ...shownFields].join(
    " ",
  );
}

function shown(value: unknown): string {
  if (isJsonObject(value) && typeof value.message === "string") {
    return printableLine(`${String(value.type)}: ${value.message}`);
  }
  return printableLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}

/** Redacts secrets from the log: the server's token always, credentials as long as their run or session. */
export class LogRedaction {
  /** One redactor per set of secrets, so that none has to be rebuilt when another is added or removed. */
  readonly #redactors = new Set<Redactor>();

  /** Hides the secrets until the returned function is called. */
  hide(secrets: readonly string[]): () => void {
    if (secrets.length === 0) return () => {};
    const redactor = new Redactor(secrets);
    this.#redactors.add(redactor);
    return () => void this.#redactors.delete(redactor);
  }

  line(line: string): string {
    let redacted = line;
    for (const redactor of this.#redactors) redacted = redactor.text(redacted);
    return redacted;
  }
}

/** As `openLog` has pino write it. */
const lineSchema = z.looseObject({
  level: z.enum(["debug", "info", "warn", "error"]),
  time: z.iso.datetime(),
  msg: z.string().default(""),
});

/** Passes each line of the log on, as it was written, to the observers that take them. */
export class LineCopies {
  #takers: readonly Pick<RunObserver, "logged">[] = [];

  /** From now on. The log is there before the plugins are. */
  giveTo(observers: readonly RunObserver[]): void {
    this.#takers = observers.filter(({ logged }) => logged !== undefined);
  }

  /** @param line redacted JSON. Costs nothing without a listener. */
  line(line: string): void {
    if (this.#takers.length === 0) return;
    const copy = readLine(line);
    if (copy === undefined) return;
    for (const taker of this.#takers) {
      try {
        taker.logged?.(copy);
      } catch {
        // It can't be logged: that line would be passed on, too.
      }
    }
  }
}

function readLine(line: string): LogLine | undefined {
  try {
    const { level, time, msg: message, ...fields } = lineSchema.parse(JSON.parse(line));
    return { level, at: Date.parse(time), message, fields };
  } catch {
    // A secret that was redacted across a quotation mark.
    return { level: "warn", at: Date.now(), message: line, fields: {} };
  }
}
