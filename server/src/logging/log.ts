import type { Log } from "@ambit/core";
import { pino } from "pino";
import type { LogLevel } from "../configuration/schema.js";
import { readableLines } from "./readable-lines.js";
import type { LogRedaction } from "./redaction.js";

/** Fields that always hold a secret; `LogRedaction` finds secrets that are known by value. */
const secretFields = ["authorization", "token", "password", "apiKey", "headers", "env", "environment"];

/** The runner's log on stderr: JSON lines, or readable ones at a terminal. */
export function openLog(level: LogLevel, redaction: LogRedaction): Log {
  const serializers = { error: pino.stdSerializers.errWithCause, err: pino.stdSerializers.errWithCause };
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers,
    redact: {
      paths: secretFields.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
      censor: "[redacted]",
    },
    hooks: { streamWrite: (line: string) => redaction.line(line) },
  };
  // Written synchronously: the last lines before an exit matter most.
  if (!process.stderr.isTTY) return pino(options, pino.destination({ dest: 2, sync: true }));
  return pino(options, readableLines(process.stderr));
}
