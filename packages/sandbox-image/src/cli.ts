import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildSandboxImage } from "./build.js";
import { hasSandboxImage, loadSandboxImage, socketOf } from "./engine.js";
import { sandboxImageName } from "./recipe.js";

const usage = `ambit-sandbox-image: the default image of container sandboxes, built without a container registry

  ambit-sandbox-image build [--engine unix:///run/docker.sock] [--include PACKAGE]… [--force]
  ambit-sandbox-image build --output image.tar [--include PACKAGE]…
  ambit-sandbox-image name [--include PACKAGE]…

build    builds it and loads it into the engine (DOCKER_HOST, else Docker's own), if it isn't there yet
name     prints its name: a hash of what it is made of
--include, -i   one more Debian package
--output, -o    writes the root file system as a tar archive, and loads nothing
--force         builds it although the engine has it: newer Debian packages
`;

const options = {
  engine: { type: "string" },
  output: { type: "string", short: "o" },
  include: { type: "string", short: "i", multiple: true },
  force: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

const say = (message: string) => process.stderr.write(`ambit-sandbox-image: ${message}\n`);

/** Runs the command line. Resolves with the exit code: 2 for wrong usage. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true });
    const [command, ...rest] = positionals;
    if (values.help === true || rest.length > 0 || (command !== "build" && command !== "name")) {
      process.stderr.write(usage);
      return values.help === true ? 0 : 2;
    }
    const packages = values.include ?? [];
    if (command === "build") await build({ ...values, packages });
    process.stdout.write(`${sandboxImageName({ packages })}\n`);
    return 0;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    return error instanceof TypeError ? 2 : 1;
  }
}

interface BuildCommand {
  readonly packages: readonly string[];
  readonly engine?: string | undefined;
  readonly output?: string | undefined;
  readonly force?: boolean | undefined;
}

async function build({ packages, engine, output, force }: BuildCommand): Promise<void> {
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort(new Error("interrupted"));
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, interrupt);
  if (output !== undefined) {
    await buildSandboxImage(output, { packages, signal: interrupted.signal });
    return;
  }
  const unixEngine = `unix://${socketOf(engine)}`;
  // Asked before the long part, so that an engine that doesn't answer costs no build.
  if ((await hasSandboxImage({ packages, engine: unixEngine })) && force !== true) {
    say("the engine already has it");
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), "ambit-sandbox-image-"));
  try {
    say("building; this takes half a minute");
    const archive = join(folder, "image.tar");
    await buildSandboxImage(archive, { packages, signal: interrupted.signal });
    await loadSandboxImage(archive, { packages, engine: unixEngine });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
