import { dockerEngine } from "@ambit/docker-engine";
import Docker from "dockerode";

/** Creates a network of the test engine, which sandboxes without limits are in. It is removed with the engine. */
export async function ownNetwork(): Promise<string> {
  const { socket, bridges } = dockerEngine();
  const docker = new Docker({ socketPath: socket });
  const name = "ambit-kit";
  const existing = await docker.listNetworks({ filters: { name: [name] } });
  if (existing.length === 0) {
    await docker
      .createNetwork({
        Name: name,
        Driver: "bridge",
        CheckDuplicate: true,
        IPAM: { Driver: "default", Config: [{ Subnet: "198.18.71.0/24" }] },
        Options: { "com.docker.network.bridge.name": bridges.sandboxes },
      })
      // Another test file created it meanwhile.
      .catch((error: { readonly statusCode?: number }) => {
        if (error.statusCode !== 409 && error.statusCode !== 403) throw error;
      });
  }
  return name;
}
