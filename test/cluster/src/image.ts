import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { cp, mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

export interface ImageSource {
  /** With a tag: `ambit.local/tests:1`. Pods name it so, with `imagePullPolicy: Never`. */
  readonly name: string;
  /** Its root file system: a folder, or a tar archive of one. */
  readonly root: { readonly folder: string } | { readonly archive: string };
  readonly command: readonly string[];
  /** Archives of the layers below it, the lowest first. One that the cluster has already isn't unpacked again. */
  readonly below?: readonly string[];
  /** Further settings by the names of its configuration: `{Entrypoint: […], User: "1"}`. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

/** The archive of an image, as containerd and Docker load it. Each layer is read once. */
export async function* imageArchiveOf(source: ImageSource): AsyncGenerator<Buffer> {
  const { name, root, command, below = [], settings = {} } = source;
  if ("folder" in root) {
    const folder = await mkdtemp(join(tmpdir(), "ambit-image-"));
    try {
      const archive = join(folder, "layer.tar");
      const same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
      await execute("tar", [...same, "-C", root.folder, "-cf", archive, "."]);
      yield* imageArchiveOf({ ...source, root: { archive } });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    return;
  }
  const digests: string[] = [];
  for (const [index, archive] of [...below, root.archive].entries()) {
    const { size } = await stat(archive);
    const hash = createHash("sha256");
    yield entryHeader(layerName(index), size);
    for await (const bytes of createReadStream(archive, { highWaterMark: 1024 * 1024 })) {
      hash.update(bytes);
      yield bytes;
    }
    yield padding(size);
    digests.push(`sha256:${hash.digest("hex")}`);
  }
  const config = JSON.stringify({
    architecture: process.arch === "x64" ? "amd64" : process.arch,
    os: "linux",
    config: { Cmd: command, Env: [systemPath], ...settings },
    rootfs: { type: "layers", diff_ids: digests },
  });
  const configFile = `${createHash("sha256").update(config).digest("hex")}.json`;
  yield entry(configFile, config);
  yield entry(
    "manifest.json",
    JSON.stringify([
      { Config: configFile, RepoTags: [name], Layers: digests.map((_, index) => layerName(index)) },
    ]),
  );
  yield Buffer.alloc(2 * blockBytes);
}

/** What an image without settings of its own has. */
export const systemPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const layerName = (index: number) => `layer-${index}.tar`;
const blockBytes = 512;

function entry(name: string, text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([entryHeader(name, bytes.length), bytes, padding(bytes.length)]);
}

const padding = (size: number) => Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);

/** A header of POSIX's ustar format, for a file of root's. */
function entryHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  header.write(name, 0);
  header.write(
    `${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0`,
    100,
  );
  header.write(`${" ".repeat(8)}0`, 148);
  header.write("ustar\0" + "00", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}

/** Copies programs of this host and the libraries that they load to the same paths below a folder. */
export async function copyPrograms(programs: readonly string[], folder: string): Promise<void> {
  for (const program of programs) {
    const { stdout } = await execute("ldd", [program]);
    const libraries = [...stdout.matchAll(/(?:=> |^\s+)(\/\S+)/gm)].flatMap(([, path]) => path ?? []);
    for (const path of [program, ...libraries]) {
      await mkdir(join(folder, dirname(path)), { recursive: true });
      await cp(path, join(folder, path), { dereference: true });
    }
  }
}
