import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { freePort } from "@ambit/backend-kit";
import type { Log, NetworkBoundary, SandboxFailed } from "@ambit/core/plugin";
import type { CredentialBroker } from "../../src/credentials/index.js";
import type { EgressDecision, Lookup } from "../../src/proxy/index.js";
import { type GatePipe, openRelay, RemoteGate, secretBytes } from "../../src/remote/index.js";
import { fromGateSchema, fromRelaySchema, MessageReader } from "../../src/remote/messages.js";

const INTERNET = "127.0.0.2";

const programAt = (name: string) => fileURLToPath(new URL(`../../dist/${name}.cjs`, import.meta.url));

/**
 * A program of this package as a process of its own, in place of one in a pod.
 * @param heard gets what it says.
 * @param isSilent whether what is written to it gets lost on the way.
 */
function start(
  name: "gate" | "relay",
  heard: (message: unknown) => void,
  isSilent: () => boolean,
): { readonly child: ChildProcess; readonly pipe: GatePipe } {
  const child = spawn(process.execPath, [programAt(name)], { stdio: ["pipe", "pipe", "inherit"] });
  const { stdin, stdout } = child;
  stdin.on("error", () => undefined);
  const reader = new MessageReader(100_000, heard);
  stdout.on("data", (bytes: Buffer) => reader.push(bytes));
  return {
    child,
    pipe: {
      output: Readable.toWeb(stdout) as ReadableStream<Uint8Array>,
      write: (bytes) =>
        new Promise((resolve, reject) => {
          if (isSilent()) return resolve();
          stdin.write(bytes, (error) => (error ? reject(error) : resolve()));
        }),
      close: async () => void child.kill("SIGKILL"),
    },
  };
}

const ignore = () => undefined;
const log: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

export interface RemoteSessionOptions {
  readonly credentials?: CredentialBroker;
  readonly isUnclaimed?: () => boolean;
  /** Default: every name leads to the tests' internet. */
  readonly lookup?: Lookup;
  /** Milliseconds. Default: longer than a test. */
  readonly silenceMs?: number;
}

/** A gate and a relay, each in a process of its own, and the relay's socket in place of the proxy's. */
export async function openRemoteSession(policy: NetworkBoundary, options: RemoteSessionOptions = {}) {
  const {
    credentials,
    isUnclaimed = () => false,
    lookup = async () => [INTERNET],
    silenceMs = 60_000,
  } = options;
  const folder = await mkdtemp(join(tmpdir(), "ambit-gate-"));
  const [secret, port] = [randomBytes(secretBytes), await freePort()];
  const decisions: { readonly target: string; readonly allowed: boolean; readonly reason: string }[] = [];
  const lookups: string[] = [];
  const lost: SandboxFailed[] = [];
  const { signal } = new AbortController();
  const onLost = (failure: SandboxFailed) => void lost.push(failure);
  /** As the gate reports them, and as the run gets them. */
  const [reports, faults]: [EgressDecision[], string[]] = [[], []];
  const pongs = { gate: 0, relay: 0 };
  let isSilent = false;
  const heard = (message: unknown) => {
    const said = fromGateSchema.parse(message);
    if ("pong" in said) pongs.gate += 1;
    if ("decision" in said) reports.push(said.decision);
    if ("fault" in said) faults.push(said.fault);
  };
  const heardOfRelay = (message: unknown) => {
    if ("pong" in fromRelaySchema.parse(message)) pongs.relay += 1;
  };
  const gateProcess = start("gate", heard, () => isSilent);
  const relayProcess = start("relay", heardOfRelay, () => isSilent);
  const gate = await RemoteGate.begin({ pipe: gateProcess.pipe, port, secret, silenceMs, signal, onLost });
  const path = join(folder, "relay.sock");
  const settings = {
    path,
    gate: { host: "127.0.0.1", port },
    secret,
    settleMs: 5_000,
    silenceMs,
    user: 65_532,
  };
  const relay = await openRelay({ pipe: relayProcess.pipe, settings, signal, onLost });
  const boundary = { network: policy } as Parameters<RemoteGate["serve"]>[0]["spec"]["boundary"];
  await gate.serve({
    spec: { id: "s", boundary, log, isUnclaimed, onDecision: (decision) => void decisions.push(decision) },
    lookup: async (name) => {
      lookups.push(name);
      return await lookup(name);
    },
    credentials,
  });
  return {
    path,
    port,
    secret,
    decisions,
    reports,
    faults,
    lookups,
    lost,
    /** How often each has answered that it is there. */
    pongs,
    /** From now on the runner says nothing, and both pipes stay open. */
    silenceRunner: () => {
      isSilent = true;
    },
    gate,
    relay,
    gateProcess: gateProcess.child,
    relayProcess: relayProcess.child,
    close: async () => {
      await relay.close();
      await gate.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
