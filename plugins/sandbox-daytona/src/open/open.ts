import { openRemoteSandbox, type RemoteSandbox } from "@ambit/bridge";
import type { Evidence, NetworkBoundary, SandboxSpec, Scope } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import { attemptsAgainst, reachedIn } from "../inside/attempts.js";
import { daemon, daemonCure, fallsWithDaemon, whyDaemonAnswers } from "../inside/daemon.js";
import { tryFrom } from "../inside/try-from.js";
import { LimitsNotApplied, type StartedMachine, startMachine } from "./start-machine.js";
import { watch } from "./watch.js";

/**
 * One sandbox, with its limits read back and tried from inside before anything runs in it.
 *
 * @throws SandboxFailed; nothing is left then, or the message says what is.
 */
export async function openSandbox(account: Account, spec: SandboxSpec, scope: Scope): Promise<RemoteSandbox> {
  const { config } = account;
  const { id: session, boundary, log } = spec;
  const started = await startMachine(account, {
    session,
    boundary,
    secrets: spec.secrets ?? [],
    log,
    signal: scope.signal,
  });
  const { machine, order, platform, placeholders, view } = started;
  const evidence: Evidence = {
    "daytona.sandbox": machine.id,
    "daytona.supervisor": view.supervisor,
    "daytona.network": written(order.network),
    "daytona.size": `${view.cpu} cores, ${view.memory} GiB of memory, ${view.disk} GiB of disk`,
  };
  // Both take a while, and neither needs the other.
  const [tried, opened] = await Promise.allSettled([
    tryAgain(account, started, boundary.network),
    // Each sandbox is a container or machine of its own: its /proc is nobody else's.
    openRemoteSandbox(
      {
        ...{ platform, spec, bridge: config.bridge, evidence, placeholders },
        ownSystem: true,
        supervisor: daemon,
      },
      scope,
    ),
  ]);
  if (opened.status === "rejected") throw opened.reason;
  const sandbox = opened.value;
  const exposed = whatDaemonBreaks(sandbox, spec.required);
  if (tried.status === "rejected" || exposed !== undefined) {
    await sandbox.close();
    throw tried.status === "rejected" ? tried.reason : exposed;
  }
  const unwatch = watch({
    machine,
    order,
    everyMs: config.watchSeconds * 1_000,
    log,
    onFailure: (failure) => spec.onFailure?.(failure),
  });
  return withEvidence(sandbox, tried.value, unwatch);
}

function whatDaemonBreaks(
  { facts }: RemoteSandbox,
  required: SandboxSpec["required"],
): LimitsNotApplied | undefined {
  const reason = whyDaemonAnswers(facts);
  const broken = fallsWithDaemon.filter((capability) => required.includes(capability));
  if (reason === undefined || broken.length === 0) return undefined;
  return new LimitsNotApplied(`${broken.join(", ")}: ${reason}: ${daemonCure}`);
}

/** Looks at the limits from inside: the platform's word alone is no proof. */
async function tryAgain(
  { config }: Account,
  { machine }: StartedMachine,
  network: NetworkBoundary,
): Promise<Evidence> {
  const attempts = attemptsAgainst(network, config.canary);
  if (attempts.length === 0) return {};
  const reached = reachedIn(await tryFrom(machine, attempts, config));
  if (reached.length === 0)
    return { "daytona.tried": `${attempts.map(({ id }) => id).join(", ")}: none was reached` };
  throw new LimitsNotApplied(
    `Daytona says that it limits the network, and ${reached.join(", ")} was reached all the same`,
  );
}

function withEvidence(sandbox: RemoteSandbox, more: Evidence, onClose: () => void): RemoteSandbox {
  const { workspace, home, confinement, image, placeholders, facts } = sandbox;
  return {
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
    close: () => {
      onClose();
      return sandbox.close();
    },
  };
}

function closureOf(facts: RemoteSandbox["facts"]): string {
  return whyDaemonAnswers(facts) ?? `closed to all but root${facts.closedBy ? ` by ${facts.closedBy}` : ""}`;
}

function written(network: object): string {
  const settings = Object.entries(network).map(([name, value]) => `${name}=${value}`);
  return settings.length === 0 ? "not limited" : settings.join(" ");
}
