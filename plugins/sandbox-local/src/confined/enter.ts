import type { Duplex } from "node:stream";
import { SandboxFailed, type SandboxSpec } from "@ambit/core/plugin";
import type { JailInbound } from "../expose/inbound.js";

/**
 * A connection of the runner to a port inside. @param jails the ways in to the session's own, oldest first.
 * @throws SandboxFailed for a port that the boundary doesn't list, and where nothing inside listens
 */
export async function enterJails(
  { id, boundary }: Pick<SandboxSpec, "id" | "boundary">,
  jails: readonly JailInbound[],
  port: number,
): Promise<Duplex> {
  if (boundary.inbound?.includes(port) !== true)
    throw new SandboxFailed(`Port ${port} isn't open in the sandbox ${id}: name it in ports`);
  for (const jail of jails) {
    const connection = await jail.connect(port);
    if (connection !== undefined) return connection;
  }
  throw new SandboxFailed(`Nothing listens on port ${port} in the sandbox ${id}`, { concerns: "session" });
}
