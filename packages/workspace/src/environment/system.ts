import { SandboxFailed } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { runScript } from "../program/run-script.js";

/** What a sandbox says of its system: distribution, architecture, Node.js. */
const script =
  "cat /etc/os-release /etc/debian_version /etc/alpine-release 2>/dev/null; uname -m; node --version";
const maxCharacters = 8_000;

/** @throws SandboxFailed where no program starts; the signal's reason */
export async function readSystem(sandbox: Sandbox, signal: AbortSignal): Promise<string> {
  const { code, stdout } = await runScript(sandbox, script, [], { maxCharacters, signal });
  if (code !== 0)
    throw new SandboxFailed("The sandbox couldn't say what it has installed: it needs node and /bin/sh.", {
      concerns: "session",
    });
  return stdout;
}
