import { isJsonObject } from "@ambit/core";
import colors from "picocolors";
import { printableLine } from "./printable.js";

const levelColors: Readonly<Record<string, (text: string) => string>> = {
  debug: colors.dim,
  info: colors.cyan,
  warn: colors.yellow,
  error: colors.red,
};

/** Converts the log's JSON lines into readable ones: `12:00:01 warn a probe failed actor=local`. */
export function readableLines(output: { write(text: string): unknown }): { write(line: string): void } {
  return { write: (line) => void output.write(`${readableLine(line)}\n`) };
}

export function readableLine(line: string): string {
  const record: unknown = JSON.parse(line);
  if (!isJsonObject(record)) return printableLine(line.trimEnd());
  const { time, level, msg, ...fields } = record;
  const color = levelColors[String(level)] ?? colors.white;
  const rest = Object.entries(fields).map(([key, value]) => `${colors.dim(`${key}=`)}${shown(value)}`);
  return [String(time).slice(11, 19), color(String(level)), printableLine(String(msg)), ...rest].join(" ");
}

function shown(value: unknown): string {
  if (isJsonObject(value) && typeof value.message === "string") {
    return printableLine(`${String(value.type)}: ${value.message}`);
  }
  return printableLine(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
}
