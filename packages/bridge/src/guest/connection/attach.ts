import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { connect, Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { preamble, signalRecord } from "../../transport/byte-records.js";
import { signalLine } from "../../transport/frame.js";
import { type DaemonSettings, socketOf } from "../settings.js";
import { handOver } from "./hand-over.js";

/** Milliseconds for the bridge to start. */
const startMs = 10_000;

/** Connects standard input and output to the bridge, which the first attachment starts. */
export async function attach(settings: DaemonSettings, isBinary: boolean): Promise<void> {
  const socket = await reach(settings, isBinary ? "serve-bytes" : "serve");
  if (socket === undefined) {
    if (isBinary) process.stdout.write(Buffer.concat([preamble, signalRecord(["dead"])]));
    else process.stdout.write(signalLine("inside", ["dead"]));
    return;
  }
  socket.on("error", () => undefined);
  // Lines may lead to a daemon of an earlier version, which wouldn't answer.
  if (isBinary && (await handOver(socket))) {
    socket.once("close", () => process.exit());
    socket.resume();
    return;
  }
  if (socket.destroyed) return;
  // Not `process.stdout`, whose writes to a pipe are synchronous and block everything else.
  const stdout = new Socket({ fd: 1, readable: false, writable: true });
  process.stdin.pipe(socket);
  socket.pipe(stdout);
  // A platform may hold our standard input open forever, so this process ends when either side closes.
  socket.once("close", () => stdout.end(() => process.exit()));
  stdout.once("error", () => process.exit());
}

/** Undefined: there was a bridge, and it is dead. */
async function reach(settings: DaemonSettings, mode: "serve" | "serve-bytes"): Promise<Socket | undefined> {
  const path = socketOf(settings.folder);
  let first = await tryConnect(path);
  if (first.code === "ECONNREFUSED") {
    // Includes one that is just being created.
    await after(100);
    first = await tryConnect(path);
  }
  if (first.socket !== undefined) return first.socket;
  if (first.code === "ECONNREFUSED") return undefined;
  const log = start(settings, mode);
  const until = Date.now() + startMs;
  while (Date.now() < until) {
    const { socket } = await tryConnect(path);
    if (socket !== undefined) return socket;
    if (failureIn(log) !== undefined) break;
    await after(5);
  }
  const said = readFileSync(log, "utf8").trim().slice(-500);
  throw new Error(`The guest daemon didn't start: ${failureIn(log) ?? said}`);
}

/** The error that ended it. */
function failureIn(log: string): string | undefined {
  return /^\w*Error: (.*)$/m.exec(readFileSync(log, "utf8"))?.[1];
}

function start({ folder }: DaemonSettings, mode: "serve" | "serve-bytes"): string {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const log = join(folder, "bridge.log");
  const errors = openSync(log, "w", 0o600);
  const [program = "", , ...settings] = process.argv.slice(1);
  // Through a shell that exits at once, so that it has no parent: a platform that ends a pipe also ends all descendants
  // of its command, whatever their session.
  const argv = ["-c", '"$@" &', "sh", process.execPath, ...process.execArgv, program, mode, ...settings];
  spawn("/bin/sh", argv, {
    detached: true,
    cwd: "/",
    stdio: ["ignore", "ignore", errors],
  }).unref();
  closeSync(errors);
  return log;
}

function tryConnect(path: string): Promise<{ socket?: Socket; code?: string | undefined }> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve({ socket }));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve({ code: error.code }));
  });
}
