import type { Command, Evidence, Exit, Process } from "@ambit/core/plugin";
import { SandboxFailed } from "@ambit/core/plugin";
import type { Channel } from "../transport/channel.js";
import type { Channels } from "../transport/channels.js";
import { streams } from "../transport/frame.js";
import { refusal, runEnded, runStarted } from "./replies.js";
import { IncomingStream, outgoingStream } from "./streams.js";

/** The exit of a process whose real one is unknown. */
const lost: Exit = { code: null, signal: "SIGKILL" };

/**
 * Starts a process inside.
 * @throws SandboxFailed with the words of the guest daemon: no such program, no such folder.
 */
export function startProcess(channels: Channels, command: Command): Promise<Process> {
  return new Promise((resolve, reject) => {
    const stdout = new IncomingStream();
    const stderr = new IncomingStream();
    let settle: (exit: Exit) => void = () => undefined;
    const exit = new Promise<Exit>((settled) => {
      settle = settled;
    });
    const channel = channels.open("run", (opened) => ({
      data: (stream, bytes, taken) => (stream === streams.error ? stderr : stdout).push(bytes, taken),
      end: (stream) => (stream === streams.error ? stderr : stdout).end(),
      message: (message) => {
        const started = runStarted.safeParse(message);
        if (started.success) return resolve(processOn(opened, started.data.started));
        const last = runEnded.safeParse(message);
        if (last.success) return settle(last.data.exit);
        const refused = refusal.safeParse(message);
        const why = refused.success
          ? refused.data.refused
          : "the bridge inside gave no answer that can be read";
        reject(new SandboxFailed(`${command.argv[0]} can't be started: ${why}`));
        opened.close();
      },
      closed: () => {
        stdout.end();
        stderr.end();
        settle(lost);
        reject(new SandboxFailed("The sandbox is closed, or was lost"));
      },
    }));
    const kill = async (signal: "SIGTERM" | "SIGKILL" = "SIGKILL") => {
      if (!channel.isClosed) await channel.send({ kill: signal });
      if (signal === "SIGKILL") await exit;
    };
    // If it is closed before it has started, it is ended as soon as it has.
    let abort = () => {
      reject(command.signal?.reason);
      channel.close();
    };
    const processOn = (opened: Channel, evidence: Evidence): Process => {
      abort = () => void kill();
      return {
        stdin: outgoingStream(opened, streams.main),
        stdout: stdout.stream,
        stderr: stderr.stream,
        evidence,
        exit,
        kill,
      };
    };
    const { argv, env, cwd, role = "tool", signal } = command;
    const onAbort = () => abort();
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    void exit.then(() => signal?.removeEventListener("abort", onAbort));
    channel.send({ argv, env, cwd, role }).catch(reject);
  });
}
