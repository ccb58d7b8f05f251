import {
  type Complaint,
  type Instruction,
  type Step,
  type StopReason,
  stopReasons,
  usageOf,
  type Verb,
} from "./grammar.js";

/**
 * Longest text or highest count that an instruction may request; beyond it a JavaScript string can't hold the frame.
 */
const maxCount = 268_435_456;

/** Thrown by a verb's reader; becomes a {@link Complaint} about that line. */
class Unreadable extends Error {}

type Reader = (rest: string, askFirst: boolean) => Instruction;

/** The parser of each verb. It gets the text after the verb, trimmed. */
const readers: Readonly<Record<Verb, Reader>> = {
  say: (rest) => ({ verb: "say", text: unescaped(needed(rest)) }),
  think: (rest) => ({ verb: "think", text: unescaped(needed(rest)) }),
  call: (rest, askFirst) => {
    const [tool, json] = firstWord(needed(rest));
    return { verb: "call", tool, input: jsonObject(json), askFirst };
  },
  run: (rest, askFirst) => ({ verb: "run", command: needed(rest), askFirst }),
  read: (rest, askFirst) => ({ verb: "read", path: needed(rest), askFirst }),
  write: (rest, askFirst) => {
    const [path, text] = firstWord(needed(rest));
    return { verb: "write", path, text: unescaped(text), askFirst };
  },
  fetch: (rest, askFirst) => ({ verb: "fetch", url: webAddress(needed(rest)), askFirst }),
  ask: (rest) => ({ verb: "ask", text: needed(rest) }),
  delegate: (rest) => {
    const script = unescaped(needed(rest));
    const steps = parseScript(script);
    if (steps.length === 0) throw new Unreadable("it has no instruction for the subagent");
    return { verb: "delegate", script, steps };
  },
  env: (rest) => alone(rest, { verb: "env" }),
  tools: (rest) => alone(rest, { verb: "tools" }),
  attachments: (rest) => alone(rest, { verb: "attachments" }),
  recall: (rest) => alone(rest, { verb: "recall" }),
  plan: (rest) => ({
    verb: "plan",
    entries: (rest === "" ? "look; do; check" : rest)
      .split(";")
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ""),
  }),
  image: (rest) => alone(rest, { verb: "image" }),
  stream: (rest) => {
    const [count, text] = firstWord(needed(rest));
    return { verb: "stream", chunks: wholeNumber(count), text: text === "" ? undefined : unescaped(text) };
  },
  big: (rest) => ({ verb: "big", bytes: wholeNumber(needed(rest)) }),
  sleep: (rest) => ({ verb: "sleep", milliseconds: wholeNumber(needed(rest)) }),
  usage: (rest) => {
    const [input, output] = firstWord(needed(rest));
    return { verb: "usage", inputTokens: wholeNumber(input), outputTokens: wholeNumber(output) };
  },
  stop: (rest) => ({ verb: "stop", reason: stopReason(rest) }),
  fail: (rest) => ({ verb: "fail", text: needed(rest) }),
  crash: (rest) => ({
    verb: "crash",
    text: rest === "" ? "The demo agent crashes, as requested." : rest,
  }),
  hang: (rest) => alone(rest, { verb: "hang" }),
  deaf: (rest) => alone(rest, { verb: "deaf" }),
  noise: (rest) => alone(rest, { verb: "noise" }),
  late: (rest) => {
    const [milliseconds, text] = firstWord(rest);
    return { verb: "late", milliseconds: wholeNumber(milliseconds), text: needed(text) };
  },
  detach: (rest) => ({ verb: "detach", seconds: rest === "" ? 600 : wholeNumber(rest) }),
};

/** The verbs that accept a `!`. */
const askable: ReadonlySet<Verb> = new Set(["call", "run", "read", "write", "fetch"]);

/**
 * Parses a prompt as a script, line by line. Pure.
 *
 * - `[]` means that no line is an instruction: the prompt is ordinary text.
 * - Lines that don't begin like a verb (a lower-case word, then a blank or the end) are prose and skipped.
 * - An unknown verb, or a known one that can't be parsed, becomes a complaint.
 * - Neighbouring lines that start with `& ` become one step whose parts run at the same time.
 */
export function parseScript(prompt: string): readonly Step[] {
  const steps: Step[] = [];
  let instructions = 0;
  let group: (Instruction | Complaint)[] | undefined;
  for (const line of prompt.split(/\r?\n/)) {
    const trimmed = line.trim();
    const grouped = /^&\s+/.test(trimmed);
    const step = parseLine(trimmed.replace(/^&\s+/, ""));
    if (!grouped) group = undefined;
    if (step === undefined) continue;
    if (step.known) instructions += 1;
    if (!grouped) {
      steps.push(step.step);
    } else if (group === undefined) {
      group = [step.step];
      steps.push({ verb: "together", steps: group });
    } else {
      group.push(step.step);
    }
  }
  return instructions === 0 ? [] : steps;
}

function parseLine(
  line: string,
): { readonly known: boolean; readonly step: Instruction | Complaint } | undefined {
  const match = /^([a-z]+)(!?)(?:\s+(.*))?$/s.exec(line);
  const word = match?.[1];
  if (match === null || word === undefined) return undefined;
  if (!isVerb(word)) return { known: false, step: complaint(`I don't know '${word}'`) };
  const askFirst = match[2] === "!";
  if (askFirst && !askable.has(word)) {
    return { known: true, step: complaint(`I can't ask first for '${word}': leave the ! out`) };
  }
  try {
    return { known: true, step: readers[word](match[3] ?? "", askFirst) };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const reply = `I can't read '${line}': ${error.message}. Write it as: ${usageOf[word]}`;
    return { known: true, step: complaint(reply) };
  }
}

function complaint(reply: string): Complaint {
  return { verb: "complain", reply };
}

function isVerb(word: string): word is Verb {
  return Object.hasOwn(readers, word);
}

function needed(rest: string): string {
  if (rest === "") throw new Unreadable("an argument is missing after the verb");
  return rest;
}

function alone(rest: string, instruction: Instruction): Instruction {
  if (rest !== "") throw new Unreadable(`'${rest}' isn't allowed: the verb has no arguments`);
  return instruction;
}

function firstWord(text: string): readonly [string, string] {
  const match = /^(\S+)\s*(.*)$/s.exec(text);
  return [match?.[1] ?? "", match?.[2] ?? ""];
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > maxCount) {
    throw new Unreadable(`'${text}' isn't a whole number between 0 and ${maxCount}`);
  }
  return value;
}

function stopReason(text: string): StopReason {
  const reason = stopReasons.find((known) => known === text);
  if (reason === undefined) throw new Unreadable(`'${text}' isn't a stop reason of ACP`);
  return reason;
}

function webAddress(text: string): string {
  if (!URL.canParse(text)) throw new Unreadable(`'${text}' isn't a URL`);
  return text;
}

function jsonObject(text: string): Record<string, unknown> {
  if (text === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Unreadable(
      `the arguments aren't JSON (${error instanceof Error ? error.message : String(error)})`,
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Unreadable("the arguments aren't a JSON object");
  }
  return { ...value };
}

/** A script's line can't contain a line break, so `\n`, `\t` and `\\` are escapes as in JSON. */
function unescaped(text: string): string {
  return text.replace(/\\([nt\\])/g, (_, letter) => (letter === "n" ? "\n" : letter === "t" ? "\t" : "\\"));
}
