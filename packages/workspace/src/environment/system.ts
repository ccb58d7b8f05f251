import { SandboxFailed } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { searchPathOf } from "../program/inside-program.js";
import { endOf } from "../program/streams.js";

/** What a sandbox says of its system: distribution, architecture, Node.js. */
const script =
  "cat /etc/os-release /etc/debian_version /etc/alpine-release 2>/dev/null; uname -m; node --version";
const maxCharacters = 8_000;

/** @throws SandboxFailed where no program starts; the signal's reason */
export async function readSystem(sandbox: Sandbox, signal: AbortSignal): Promise<string> {
  const env = { PATH: searchPathOf(sandbox) };
  const child = await sandbox.spawn({ argv: ["/bin/sh", "-c", script], env, role: "agent", signal });
  const [printed, { code }] = await Promise.all([
    endOf(child.stdout, maxCharacters),
    child.exit,
    endOf(child.stderr, 0),
    child.stdin.close().catch(() => {}),
  ]);
  signal.throwIfAborted();
  if (code !== 0)
    throw new SandboxFailed("The sandbox couldn't say what it has installed: it needs node and /bin/sh.", {
      concerns: "session",
    });
  return printed;
}
