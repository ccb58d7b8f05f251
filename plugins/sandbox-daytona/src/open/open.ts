import { openRemoteSandbox, type RemoteSandbox, type RemoteSandboxOptions } from "@ambit/bridge";
import {
  type Evidence,
  type NetworkBoundary,
  SandboxFailed,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { z } from "zod";
import type { Account } from "../account.js";
import { addressId, attemptsAgainst, leaksIn, tryFrom } from "../inside/attempts.js";
import { bridgeSettings, daemonFix, lostToDaemon, whyDaemonAnswers } from "../inside/daemon.js";
import { snapshotName } from "../layers/layer-snapshots.js";
import { pauseFor } from "../platform/retries.js";
import { mountedSecretsSchema } from "../secrets/organisation-secrets.js";
import { LayerOfMachine } from "./layer-of-machine.js";
import { LimitsNotApplied, type StartedMachine, startMachine } from "./start-machine.js";
import { watch } from "./watch.js";

const handoverSchema = z.strictObject({
  /** The platform's id of the sandbox. */
  machine: z.string().min(1),
  secrets: mountedSecretsSchema.default({ ids: [], mounts: {}, placeholders: {} }),
  bridge: z.strictObject({ key: z.string(), epoch: z.string(), copied: z.array(z.string()).readonly() }),
});
/** What another runner needs to take the sandbox over. */
type Handover = z.output<typeof handoverSchema>;

function writeHandover(handover: Handover): string {
  return JSON.stringify(handover);
}

/** @throws SandboxFailed for data of another version. */
export function readHandover(text: string): Handover {
  const read = handoverSchema.safeParse(JSON.parse(text));
  if (read.success) return read.data;
  throw new SandboxFailed("Another version of sandbox-daytona opened the session's sandbox", {
    cause: read.error,
    concerns: "session",
  });
}

/**
 * One sandbox, with its limits read back and tried from inside before anything runs in it.
 *
 * @throws SandboxFailed; nothing is left then, or the message names what is left.
 */
export async function openSandbox(account: Account, spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
  const { id: session, boundary, secrets = [], fence, layer, log } = spec;
  const { signal } = scope;
  const source = layer?.use === "begin" ? { snapshot: snapshotName(account.config, layer.name) } : undefined;
  const started = await startMachine(account, { session, boundary, source, secrets, fence, log, signal });
  return openBridge(account, started, spec, scope, fence === undefined ? undefined : { fence });
}

/**
 * Tests the limits from inside, and opens the bridge.
 *
 * @throws SandboxFailed; nothing is left then, except for a sandbox that was to be taken over.
 */
export async function openBridge(
  account: Account,
  started: StartedMachine,
  spec: SandboxSpec,
  scope: Scope,
  takeover: RemoteSandboxOptions["takeover"],
): Promise<RemoteSandbox> {
  const { config } = account;
  const { boundary, log } = spec;
  const { machine, order, secrets, view } = started;
  const layer = spec.layer && new LayerOfMachine(account, started, spec.layer, log);
  if (!view.hasTimeToLive)
    log.warn(
      { sandbox: machine.name },
      "this Daytona gives no sandbox a time to live: only auto-stop ends an orphan",
    );
  const evidence: Evidence = {
    "daytona.sandbox": machine.id,
    "daytona.supervisor": view.supervisor,
    "daytona.network": written(order.network),
    "daytona.timeToLive": view.hasTimeToLive ? `${order.ttlMinutes} minutes` : noTimeToLive(order),
    "daytona.size": `${view.cpu} cores, ${view.memory} GiB of memory, ${view.disk} GiB of disk`,
    ...(spec.layer?.use === "begin" ? { "daytona.layer": spec.layer.name.slice(0, 12) } : {}),
  };
  // They take a while and are independent.
  const [tried, begun, entered] = await Promise.allSettled([
    tryAgain(account, started, boundary.network, scope.signal),
    layer?.check(),
    openRemoteSandbox(
      {
        platform: layer?.platform ?? started.platform,
        hasFolders: layer !== undefined,
        spec,
        bridge: config.bridge,
        evidence,
        imageName: config.image,
        placeholders: () => secrets.placeholders,
        ...bridgeSettings,
        inbound: () => boundary.inbound ?? [],
        ...(takeover === undefined ? {} : { takeover }),
      },
      scope,
    ),
  ]);
  // The bridge finds no folders then.
  if (begun.status === "rejected" && entered.status === "rejected") throw begun.reason;
  if (entered.status === "rejected") throw entered.reason;
  const sandbox = entered.value;
  const exposed = daemonGaps(sandbox, spec.required);
  if (tried.status === "rejected" || begun.status === "rejected" || exposed !== undefined) {
    await sandbox.close();
    if (tried.status === "rejected") throw tried.reason;
    throw begun.status === "rejected" ? begun.reason : exposed;
  }
  const unwatch = watch({
    machine,
    order,
    everyMs: config.watchSeconds * 1_000,
    log,
    onFailure: (failure) => spec.onFailure?.(failure),
  });
  const usual = opened(sandbox, started, tried.value, unwatch);
  if (layer === undefined) return usual;
  const close = () => {
    unwatch();
    return layer.close(sandbox);
  };
  if (spec.layer?.use === "begin") return { ...usual, close };
  return {
    ...usual,
    close,
    keepAsLayer: () => {
      unwatch();
      return layer.keep(sandbox);
    },
  };
}

function daemonGaps(
  { facts }: RemoteSandbox,
  required: SandboxSpec["required"],
): LimitsNotApplied | undefined {
  const reason = whyDaemonAnswers(facts);
  const broken = lostToDaemon.filter((capability) => required.includes(capability));
  if (reason === undefined || broken.length === 0) return undefined;
  return new LimitsNotApplied(`${broken.join(", ")}: ${reason}: ${daemonFix}`);
}

/** Tests the limits from inside: what the platform reports is no proof. */
async function tryAgain(
  { config }: Account,
  { machine }: StartedMachine,
  network: NetworkBoundary,
  signal: AbortSignal,
): Promise<Evidence> {
  const attempts = attemptsAgainst(network, config.canary);
  const ids = Object.keys(attempts);
  if (ids.length === 0) return {};
  // The platform sets its rules after the start, and reports no failure.
  const end = performance.now() + config.canary.settleMs;
  for (;;) {
    const leaks = leaksIn(await tryFrom(machine, attempts, config), network);
    if (leaks.length === 0) return { "daytona.tried": `${ids.join(", ")}: none was reached` };
    signal.throwIfAborted();
    if (performance.now() >= end || leaks.some((leak) => leak.startsWith(addressId))) {
      throw new LimitsNotApplied(
        `Daytona reports that it limits the network, but ${leaks.join(", ")} was reached`,
      );
    }
    await pauseFor(retryMs, signal);
  }
}

const retryMs = 250;

function opened(
  sandbox: RemoteSandbox,
  { machine: { id: machine }, secrets }: StartedMachine,
  more: Evidence,
  onClose: () => void,
): RemoteSandbox {
  const { workspace, home, confinement, image, placeholders, facts, resumption, connect } = sandbox;
  return {
    resumption,
    ...(resumption === undefined
      ? {}
      : { handover: writeHandover({ machine, secrets, bridge: resumption }) }),
    leave: () => {
      onClose();
      return sandbox.leave();
    },
    workspace,
    home,
    confinement,
    facts,
    ...(image === undefined ? {} : { image }),
    ...(placeholders === undefined ? {} : { placeholders }),
    evidence: { ...sandbox.evidence, ...more, "daytona.daemon": closureOf(facts) },
    spawn: (command) => sandbox.spawn(command),
    writeFiles: (files) => sandbox.writeFiles(files),
    readFile: (path) => sandbox.readFile(path),
    expose: (handler) => sandbox.expose(handler),
    forward: (path) => sandbox.forward(path),
    ...(connect === undefined ? {} : { connect }),
    handOver: (server) => sandbox.handOver(server),
    close: () => {
      onClose();
      return sandbox.close();
    },
  };
}

/** Daytona's open-source version, v0.190, doesn't support this, and ignores the setting. */
function noTimeToLive({ autoStopMinutes }: StartedMachine["order"]): string {
  return `none: this Daytona gives no sandbox one; leftovers of a dead runner are deleted ${autoStopMinutes} minutes after its last activity`;
}

function closureOf(facts: RemoteSandbox["facts"]): string {
  return whyDaemonAnswers(facts) ?? `closed to all but root${facts.closedBy ? ` by ${facts.closedBy}` : ""}`;
}

function written(network: object): string {
  const settings = Object.entries(network).map(([name, value]) => `${name}=${value}`);
  return settings.length === 0 ? "not limited" : settings.join(" ");
}
