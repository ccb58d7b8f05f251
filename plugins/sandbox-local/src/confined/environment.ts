import { type Command, type NetworkBoundary, SandboxFailed } from "@ambit/core/plugin";
import { type TrustFiles, trustVariables } from "@ambit/egress/credentials";
import { clientEnvironment } from "@ambit/egress/proxy";
import { channelUrl, inside } from "./launch/inside.js";
import { directHosts } from "./loopback.js";

/**
 * The complete environment of a jail's program: what the command names, and what confinement needs. The command's home
 * and scratch folder win; its proxy doesn't, since an empty network has only Ambit's. Pure.
 */
export function jailEnvironment(
  command: Pick<Command, "env" | "role">,
  network: "own" | "shared",
  boundary: NetworkBoundary,
  trust: TrustFiles | undefined,
): Readonly<Record<string, string>> {
  for (const name of Object.keys(command.env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new SandboxFailed(
        `${JSON.stringify(name)} can't be a variable's name here: use letters, digits and _`,
      );
    }
  }
  const value = Object.values(command.env).find((text) => text.includes("\0"));
  if (value !== undefined) throw new SandboxFailed("A variable's value must not contain NUL");
  return {
    HOME: command.role === "agent" ? inside.agentHome : inside.toolHome,
    TMPDIR: inside.scratch,
    USER: inside.user,
    LOGNAME: inside.user,
    // A leak sanitizer traces its process with ptrace, which the filter refuses; every program with one would fail.
    ASAN_OPTIONS: "detect_leaks=0",
    LSAN_OPTIONS: "detect_leaks=0",
    // Of the host's store: a company's authority is trusted without credentials too.
    ...(trust === undefined ? {} : trustVariables(trust)),
    ...command.env,
    ...(network === "own"
      ? clientEnvironment({
          proxy: channelUrl,
          direct: directHosts(boundary),
          preload: inside.nodeProxy,
          given: command.env,
        })
      : {}),
  };
}
