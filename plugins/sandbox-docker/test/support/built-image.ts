import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { dockerEngine } from "@ambit/docker-engine";
import Docker from "dockerode";
import { archiveOf } from "../../src/open/container.js";

/** Builds an image from the default one on the test run's engine, without a network. @param lines of its Dockerfile. */
export async function buildImage(name: string, lines: readonly string[]): Promise<Docker.Image> {
  const { socket, image } = dockerEngine();
  const docker = new Docker({ socketPath: socket });
  const archive = archiveOf("Dockerfile", Buffer.from([`FROM ${image}`, ...lines].join("\n")));
  const progress = await docker.buildImage(Readable.from([archive]), {
    t: name,
    networkmode: "none",
  });
  const said = await text(progress);
  if (said.includes('"error"')) throw new Error(said);
  return docker.getImage(name);
}
