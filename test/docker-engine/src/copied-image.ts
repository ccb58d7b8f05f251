import Docker from "dockerode";
import { dockerEngine } from "./shared.js";

/**
 * The engine's image for sandboxes under another name, with a change in the form of a Dockerfile's line: `ENV A=1`.
 * @returns removes it.
 */
export async function copyImage(repo: string, tag: string, changes: string): Promise<() => Promise<void>> {
  const { socket, image } = dockerEngine();
  const docker = new Docker({ socketPath: socket });
  const container = await docker.createContainer({ Image: image, Entrypoint: ["/bin/true"] });
  try {
    await container.commit({ repo, tag, changes });
  } finally {
    await container.remove();
  }
  return async () => {
    await docker.getImage(`${repo}:${tag}`).remove({ force: true });
  };
}
