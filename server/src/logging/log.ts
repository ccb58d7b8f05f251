import type { Log } from "@ambit/core";
import { pino } from "pino";
import type { LogLevel } from "../configuration/schema.js";
import type { LineCopies } from "./line-copies.js";
import { readableLines } from "./readable-lines.js";
import type { LogRedaction } from "./redaction.js";
import { withoutSecrets } from "./secret-fields.js";

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
