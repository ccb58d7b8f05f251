/** Times, numbers and names as people read them, in the browser's own language. */

const numbers = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

export const numberText = (value: number) => numbers.format(value);
export const compactText = (value: number) => compact.format(value);
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
export const clockText = (ms: number) => clock.format(ms);
export const momentText = (iso: string) => moment.format(new Date(iso));

const dayOfYear = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
/** @param day of UTC, such as `2026-11-29` */
export const dayText = (day: string) => (day === "" ? "" : dayOfYear.format(new Date(day)));

/** `840 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

/** `now`, `5 min. ago`, in the browser's language. */
export function agoText(iso: string, now: number): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1_000);
  if (seconds > -10) return relative.format(0, "second");
  if (seconds > -60) return relative.format(seconds, "second");
  if (seconds > -3_600) return relative.format(Math.round(seconds / 60), "minute");
  if (seconds > -86_400) return relative.format(Math.round(seconds / 3_600), "hour");
  return relative.format(Math.round(seconds / 86_400), "day");
}

const units = ["B", "KB", "MB", "GB"];

export function bytesText(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1_024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

const dollarsFrom1 = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD" });

export const dollarsText = (dollars: number) =>
  dollars >= 1 ? dollarsFrom1.format(dollars) : `$${dollars.toPrecision(2)}`;

const share = new Intl.NumberFormat(undefined, { style: "percent", maximumSignificantDigits: 2 });
/** @param part of 1 */
export const shareText = (part: number) => share.format(part);

/** The beginning of an id, which tells a few from each other. */
export const shortId = (id: string) => (id.length > 13 ? id.slice(0, 8) : id);

/** What people read instead of a code of the wire: `harness_failed` is "harness failed". */
export const plainCode = (code: string) => code.replaceAll("_", " ");

/**
 * What an agent names, on one line, without characters that reorder or hide text: a title that shows other words than
 * it has would lie.
 */
export const visibleText = (text: string) => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ").trim();

/** The argument that says most of a call, on one line. */
export function callSummary(input: unknown): string {
  if (typeof input === "string") return visibleText(input);
  if (typeof input !== "object" || input === null) return input === undefined ? "" : String(input);
  const fields: Readonly<Record<string, unknown>> = { ...input };
  for (const name of ["command", "path", "file_path", "url", "query", "pattern", "prompt"]) {
    const value = fields[name];
    if (typeof value === "string") return visibleText(value);
  }
  return visibleText(JSON.stringify(input));
}

/**
 * A text of several lines with its invisible characters made visible: one that reorders what follows would show an approver
 * another command than the one that runs.
 */
export const exactText = (text: string) =>
  text
    .replaceAll("\r\n", "\n")
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) =>
      character === "\n" || character === "\t" ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
    );
