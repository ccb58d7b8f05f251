/**
 * The steps of a set-up: one line for each with its time, and a spinner at a terminal. What their programs print goes to
 * a log, whose end a failure shows. Must itself run on any Node with ES modules.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, appendFileSync, constants, existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What the programs of all steps printed. */
const log = fileURLToPath(new URL("../.cache/setup.log", import.meta.url));
/** Lines of a failed program's output that are shown. */
const shownLines = 30;

const frames = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
const isTerminal = process.stderr.isTTY === true;
const clearLine = isTerminal ? "\r\u001b[K" : "";

/** Names of the running steps. @type {Set<string>} */
const running = new Set();
/** @type {NodeJS.Timeout | undefined} */
let spinner;
let frame = 0;

function spin() {
  frame = (frame + 1) % frames.length;
  process.stderr.write(`${clearLine}${frames[frame]} ${[...running].join(" · ")}`);
}

/** @param {string} message */
export const say = (message) => process.stderr.write(`${clearLine}setup: ${message}\n`);

/**
 * Shows a step while it runs, and then its time.
 * @template Result
 * @param {string} name what is made: "npm packages".
 * @param {() => Promise<Result>} act
 * @returns {Promise<Result>}
 */
export async function step(name, act) {
  const start = Date.now();
  running.add(name);
  if (isTerminal) spinner ??= setInterval(spin, 100);
  let outcome = "failed after ";
  try {
    const result = await act();
    outcome = "";
    return result;
  } finally {
    running.delete(name);
    if (running.size === 0) {
      clearInterval(spinner);
      spinner = undefined;
    }
    say(`${name} (${outcome}${((Date.now() - start) / 1000).toFixed(1)} s)`);
  }
}

/**
 * npm downloads to the user's home; where that can't be written, to this clone's `.cache`. Without any home, as for an
 * account that has no entry in /etc/passwd, npm doesn't start.
 */
function npmPlaces() {
  const cacheFolder = dirname(log);
  try {
    const { npm_config_cache: cache = join(homedir(), ".npm") } = process.env;
    return isWritable(cache) ? {} : { npm_config_cache: join(cacheFolder, "npm") };
  } catch {
    return { HOME: cacheFolder };
  }
}

/** Whether a folder can be written, or made. @param {string} folder @returns {boolean} */
function isWritable(folder) {
  if (!existsSync(folder)) return isWritable(dirname(folder));
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs a program, with its output in the log.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} cwd
 * @returns {Promise<void>} rejects with the end of its output if it fails.
 */
export async function runLogged(command, args, cwd) {
  const commandLine = [command, ...args].join(" ");
  mkdirSync(dirname(log), { recursive: true });
  appendFileSync(log, `\n$ ${commandLine}\n`);
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...npmPlaces() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
      appendFileSync(log, text);
    });
  }
  const [status, signal] = await once(child, "close").catch((cause) => {
    throw new Error(`"${commandLine}" failed: ${cause.message}`, { cause });
  });
  if (status === 0) return;
  const end = output.trimEnd().split("\n").slice(-shownLines).join("\n");
  throw new Error(`"${commandLine}" failed (${signal ?? `exit ${status}`}); everything is in ${log}\n${end}`);
}
