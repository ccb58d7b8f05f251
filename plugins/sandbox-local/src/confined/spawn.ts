import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { PathMapping } from "@ambit/backend-kit/safe-fs";
import { type Command, SandboxFailed } from "@ambit/core/plugin";
import { JailInbound } from "../expose/inbound.js";
import { inheritableDescriptors } from "../process/descriptors.js";
import { markArgument, markOf } from "../process/marked-processes.js";
import { checkCommand } from "../process/start-child.js";
import { jailEnvironment } from "./environment.js";
import { filtered } from "./evidence.js";
import { openSessionFolder } from "./files/session-folder.js";
import { isWritable } from "./files/workspace-rules.js";
import { bubblewrapArguments, type Jail, type WorkspaceMount } from "./launch/arguments.js";
import { gateScript, type WayOut } from "./launch/gate.js";
import { inside } from "./launch/inside.js";
import { argumentsDescriptor, jailDescriptors, launchJail } from "./launch/launch.js";
import { launchOf } from "./launch/stages.js";
import { loopbackForwards } from "./loopback.js";
import { ConfinedProcess } from "./process.js";
import type { ConfinedSession } from "./session.js";
import { limitReached, withoutHost } from "./start-failure.js";

/**
 * Starts a command in a new jail.
 *
 * @param rules whether the workspace's path rules apply. Not in a trial, which would create the listed paths too early.
 * No other jail of the session lives then, and this one runs nothing of it.
 */
export async function spawnConfined(
  session: ConfinedSession,
  command: Command,
  { rules: applied = true }: { readonly rules?: boolean } = {},
): Promise<ConfinedProcess> {
  checkCommand(command);
  const held = applied ? await session.rules?.hold(command.role) : undefined;
  try {
    const started = await spawnWith(session, command, held?.mounts ?? []);
    session.onLaunch?.();
    session.firstJail ??= started.evidence;
    // It settles when nothing of the jail lives.
    if (held !== undefined) started.exit.then(held.release, held.release);
    return started;
  } catch (error) {
    session.onLaunch?.(error);
    held?.release();
    throw error;
  }
}

async function spawnWith(
  session: ConfinedSession,
  command: Command,
  workspaceMounts: readonly WorkspaceMount[],
): Promise<ConfinedProcess> {
  const { spec, config, jailSetup, folder, user, parts } = session;
  const { filesystem } = spec.boundary;
  const number = ++session.spawned;
  const inbound = await openInbound(session, number);
  const closing: (() => Promise<void> | void)[] = [];
  const descriptors: number[] = [];
  const give = (descriptor: number) => jailDescriptors.seccomp + descriptors.push(descriptor) - 1;
  const giveFolder = async (mapping: PathMapping) => {
    const handle = await openSessionFolder(mapping);
    closing.push(() => handle.close());
    return give(handle.fd);
  };
  try {
    const groups = await session.groups?.entrances();
    closing.push(...(groups ?? []).map((group) => () => group.close()));
    const seccomp = openSync(jailSetup.seccompFile, "r");
    closing.push(() => closeSync(seccomp));
    give(seccomp);
    const agentHome =
      command.role === "agent" ? await giveFolder({ guest: inside.agentHome, host: folder.home }) : undefined;
    const workspace =
      filesystem.mode === "off"
        ? undefined
        : {
            descriptor: await giveFolder({ guest: inside.workspace, host: folder.workspace }),
            writable: isWritable(filesystem),
          };
    const jail: Jail = {
      ...sharedParts(session, command.role === "agent", inbound),
      workspace,
      workspaceMounts,
      agentHome,
      environment: jailEnvironment(
        withCredentials(command, session),
        session.network,
        spec.boundary.network,
        jailSetup.trust,
      ),
      cwd: command.cwd ?? inside.workspace,
      descriptors: { seccomp: jailDescriptors.seccomp, info: jailDescriptors.info },
    };
    const shown = workspaceMounts.filter(({ kind }) => kind === "read" || kind === "write");
    const { commandLines, launcher, inheritable, expected } = parts.complete(
      {
        commandLines: bubblewrapArguments(jail),
        launcher: [],
        inheritable: inheritableDescriptors(),
        expected: { shared: session.network === "shared" ? ["net"] : [], seccomp: filtered },
      },
      {
        shown: shown.map(({ path }) => join(folder.workspace, path)),
        give,
        defer: (close) => closing.push(close),
      },
    );
    const makers = commandLines.flatMap((_line, index) => {
      const program = index === 0 ? jailSetup.programs.bubblewrap : inside.bubblewrap;
      return [program, "--args", String(argumentsDescriptor(index, descriptors.length)), "--"];
    });
    const wayOut: WayOut | undefined =
      session.network === "own"
        ? {
            relay: jailSetup.programs.relay,
            forwards: loopbackForwards(spec.boundary.network),
            isInbound: inbound !== undefined,
            variables: Object.keys(jail.environment),
          }
        : undefined;
    const [program, ...args] = command.argv;
    const mark = markOf(session.runnerKey, spec.id, number);
    const hits = session.groups?.hits();
    const launched = await launchJail({
      launch: launchOf({
        jail: [
          ...launcher,
          ...makers,
          inside.shell,
          "-c",
          gateScript(wayOut),
          "sandbox",
          markArgument(mark),
          program,
          ...args,
        ],
        groups: (groups ?? []).flatMap((_group, index) => jailDescriptors.groups[index] ?? []),
        relocatedMounts: session.requiredPaths.relocatedMounts,
        user,
      }),
      commandLines,
      workspaceMounts,
      descriptors,
      devNull: jailSetup.devNull,
      inheritable,
      expected: { ...expected, uid: user?.uid ?? ownUid() },
      refuse: parts.refuse,
      runnerNamespaces: jailSetup.namespaces,
      program,
      startMs: config.startMs,
      mark,
      groups: session.groups && {
        descriptors: (groups ?? []).map(({ fd }) => fd),
        include: session.groups.include,
      },
      conceal: (words) => withoutHost(words, { folder: folder.path, mark }),
      signal: command.signal,
    }).catch((error: unknown) => {
      const after = session.groups?.hits();
      if (hits === undefined || after === undefined) throw error;
      throw limitReached(program, spec.boundary.resources, hits, after, error) ?? error;
    });
    const relays = wayOut === undefined ? 0 : 1;
    return new ConfinedProcess(launched, { relays, inbound, signal: command.signal });
  } catch (error) {
    await inbound?.close();
    throw error;
  } finally {
    await Promise.all(closing.map((close) => close()));
  }
}

/** The command with the variables that make its programs send placeholders and trust the proxy that replaces them. */
function withCredentials(command: Command, { credentials }: ConfinedSession): Command {
  if (credentials === undefined) return command;
  return {
    ...command,
    env: credentials.broker.environment(command.role ?? "tool", inside.trust, command.env),
  };
}

/** The jail's own way in, where the boundary has one. */
async function openInbound(session: ConfinedSession, number: number): Promise<JailInbound | undefined> {
  const { spec, folder, user, channel } = session;
  if (spec.boundary.inbound === undefined || channel === undefined) return undefined;
  return JailInbound.open(folder.path, number, user);
}

/** The parts of a jail that all jails of a session share, with its own way in. */
function sharedParts(
  { jailSetup, requiredPaths, limitFiles, network, channel, credentials, config }: ConfinedSession,
  isAgent: boolean,
  inbound: JailInbound | undefined,
) {
  const trustStore = credentials?.shown ?? jailSetup.trustStore;
  return {
    shell: jailSetup.shell,
    bubblewrap: jailSetup.programs.bubblewrap,
    system: jailSetup.system,
    etc: {
      folder: jailSetup.etc.folder,
      shown: [
        ...jailSetup.etc.shown,
        ...trustStore.filter(({ path }) => path.startsWith("/etc/")),
        ...(isAgent ? jailSetup.etc.agent : []),
        ...(network === "shared" ? jailSetup.etc.shared : []),
      ],
    },
    requiredPaths: [
      ...requiredPaths.shown,
      ...limitFiles,
      ...trustStore.filter(({ path }) => path.startsWith("/run/")),
    ],
    covered: requiredPaths.covered,
    scratchBytes: config.scratchMb * 1024 * 1024,
    channel:
      channel === undefined
        ? []
        : [
            { source: channel.path, path: inside.channel, socket: true },
            ...(inbound === undefined ? [] : [{ source: inbound.path, path: inside.inbound, socket: true }]),
            { source: jailSetup.nodeProxy, path: inside.nodeProxy, socket: false },
            {
              source: jailSetup.relays[jailSetup.programs.relay.kind],
              path: inside.relayProgram,
              socket: false,
            },
          ],
    network,
    coveredProc: jailSetup.coveredProc,
  } satisfies Partial<Jail>;
}

function ownUid(): number {
  const uid = process.getuid?.();
  if (uid === undefined) throw new SandboxFailed("This host has no user ids");
  return uid;
}
