import { dockerEngine } from "@ambit/docker-engine";
import Docker from "dockerode";

const run = /^RUN /;
/** Not a change that a commit takes: a container's own is the image's. */
const stop = /^STOPSIGNAL /;

/**
 * Builds an image from the default one on the test run's engine, without a network. In one step: the engine's own build takes
 * a container and a layer for each line.
 *
 * @param lines of its Dockerfile. All `RUN` come first.
 */
export async function buildImage(name: string, lines: readonly string[]): Promise<Docker.Image> {
  const { socket, image } = dockerEngine();
  const docker = new Docker({ socketPath: socket });
  const scripts = lines.filter((line) => run.test(line)).map((line) => line.replace(run, ""));
  const signals = lines.filter((line) => stop.test(line)).map((line) => line.replace(stop, ""));
  const others = lines.filter((line) => !run.test(line) && !stop.test(line));
  const container = await docker.createContainer({
    Image: image,
    Entrypoint: ["/bin/sh", "-c"],
    Cmd: [scripts.join(" && ")],
    ...(signals[0] === undefined ? {} : { StopSignal: signals[0] }),
    HostConfig: { NetworkMode: "none" },
  });
  try {
    if (scripts.length > 0) {
      await container.start();
      const { StatusCode } = await container.wait();
      if (StatusCode !== 0) throw new Error(`${scripts.join(" && ")} ended with ${StatusCode}`);
    }
    const [repo, tag = "latest"] = name.split(":");
    // Not the container's own command.
    const changes = ["ENTRYPOINT []", "CMD []", ...others].join("\n");
    await container.commit({ repo, tag, changes });
    return docker.getImage(name);
  } finally {
    await container.remove({ force: true, v: true });
  }
}
