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

type Reader = (argument: string, askFirst: boolean) => Instruction;

/** The parser of each verb. It gets the text after the verb, trimmed. */
const readers: Readonly<Record<Verb, Reader>> = {
  say: (argument) => ({ verb: "say", text: unescaped(needed(argument)) }),
  think: (argument) => ({ verb: "think", text: unescaped(needed(argument)) }),
  call: (argument, askFirst) => {
    const [tool, json] = firstWord(needed(argument));
    return { verb: "call", tool, input: jsonObject(json), askFirst };
  },
  run: (argument, askFirst) => ({ verb: "run", command: needed(argument), askFirst }),
  read: (argument, askFirst) => ({ verb: "read", path: needed(argument), askFirst }),
  write: (argument, askFirst) => {
    const [path, text] = firstWord(needed(argument));
    return { verb: "write", path, text: unescaped(text), askFirst };
  },
  fetch: (argument, askFirst) => ({ verb: "fetch", url: webAddress(needed(argument)), askFirst }),
  ask: (argument) => ({ verb: "ask", text: needed(argument) }),
  delegate: (argument) => {
    const script = unescaped(needed(argument));
    const steps = parseScript(script);
    if (steps.length === 0) throw new Unreadable("it has no instruction for the subagent");
    return { verb: "delegate", script, steps };
  },
  env: (argument) => alone(argument, { verb: "env" }),
  tools: (argument) => alone(argument, { verb: "tools" }),
  attachments: (argument) => alone(argument, { verb: "attachments" }),
  recall: (argument) => alone(argument, { verb: "recall" }),
  plan: (argument) => ({
    verb: "plan",
    entries: (argument === "" ? "look; do; check" : argument)
      .split(";")
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ""),
  }),
  image: (argument) => alone(argument, { verb: "image" }),
  stream: (argument) => {
    const [count, text] = firstWord(needed(argument));
    return { verb: "stream", chunks: wholeNumber(count), text: text === "" ? undefined : unescaped(text) };
  },
  big: (argument) => ({ verb: "big", bytes: wholeNumber(needed(argument)) }),
  sleep: (argument) => ({ verb: "sleep", milliseconds: wholeNumber(needed(argument)) }),
  usage: (argument) => {
    const [input, output] = firstWord(needed(argument));
    return { verb: "usage", inputTokens: wholeNumber(input), outputTokens: wholeNumber(output) };
  },
  stop: (argument) => ({ verb: "stop", reason: stopReason(argument) }),
  fail: (argument) => ({ verb: "fail", text: needed(argument) }),
  crash: (argument) => ({
    verb: "crash",
    text: argument === "" ? "The demo agent crashes, as requested." : argument,
  }),
  hang: (argument) => alone(argument, { verb: "hang" }),
  deaf: (argument) => alone(argument, { verb: "deaf" }),
  noise: (argument) => alone(argument, { verb: "noise" }),
  late: (argument) => {
    const [milliseconds, text] = firstWord(argument);
    return { verb: "late", milliseconds: wholeNumber(milliseconds), text: needed(text) };
  },
  detach: (argument) => ({ verb: "detach", seconds: argument === "" ? 600 : wholeNumber(argument) }),
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
    if (step.hasVerb) instructions += 1;
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
): { readonly hasVerb: boolean; readonly step: Instruction | Complaint } | undefined {
  const match = /^([a-z]+)(!?)(?:\s+(.*))?$/s.exec(line);
  const word = match?.[1];
  if (match === null || word === undefined) return undefined;
  if (!isVerb(word)) return { hasVerb: false, step: complaint(`I don't know '${word}'`) };
  const askFirst = match[2] === "!";
  if (askFirst && !askable.has(word)) {
    return { hasVerb: true, step: complaint(`I can't ask first for '${word}': leave the ! out`) };
  }
  try {
    return { hasVerb: true, step: readers[word](match[3] ?? "", askFirst) };
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    const reply = `I can't read '${line}': ${error.message}. Write it as: ${usageOf[word]}`;
    return { hasVerb: true, step: complaint(reply) };
  }
}

function complaint(reply: string): Complaint {
  return { verb: "complain", reply };
}

function isVerb(word: string): word is Verb {
  return Object.hasOwn(readers, word);
}

function needed(argument: string): string {
  if (argument === "") throw new Unreadable("an argument is missing after the verb");
  return argument;
}

function alone(argument: string, instruction: Instruction): Instruction {
  if (argument !== "") throw new Unreadable(`'${argument}' isn't allowed: the verb has no arguments`);
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
  const reason = stopReasons.find((option) => option === text);
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
