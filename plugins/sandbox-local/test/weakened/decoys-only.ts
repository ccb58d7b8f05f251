import { normaliseBoundary } from "@ambit/core";
import type { NetworkBoundary } from "@ambit/core/plugin";
import { type Attack, canary, type Decoys } from "@ambit/testkit";
import type { JailDecoys } from "./jails/index.ts";

/** What a removed mechanism is replaced with. */
export function standIns({ id }: Pick<Attack, "id">, { folder, secret }: Decoys): JailDecoys {
  return {
    // A decoy process has its shared memory where every process of this host has it.
    folders: [id === "filesystem.host-hidden/shared-memory" ? "/dev/shm" : folder.path],
    environment: { [canary]: secret },
  };
}

/** An allowlist of the kit's decoys, by name and by address with port, and of nothing else. */
export function decoyList(decoys: Decoys): NetworkBoundary {
  const { tcp, tcp6, neighbour, rebound, listed, listed6, unlisted } = decoys;
  const addresses = [tcp, tcp6, neighbour, rebound, listed, listed6]
    .filter((endpoint) => endpoint !== undefined)
    // In both address families: a name may resolve to an address that this host doesn't have.
    .flatMap(({ host, port }) => [
      host.includes(":") ? `127.0.0.1:${port}` : `${host}:${port}`,
      `[::1]:${port}`,
    ]);
  // The name resolves to nothing but these addresses.
  const names = ["localhost", ...(unlisted === undefined ? [] : [unlisted.host])];
  const allowlist = [...names, ...addresses];
  return normaliseBoundary({ network: { allowlist }, enforcement: "strict" }).boundary.network;
}
