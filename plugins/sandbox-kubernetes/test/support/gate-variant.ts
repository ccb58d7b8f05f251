import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { build, type Plugin } from "esbuild";

/** One guard of the built proxy taken out: a piece of its code, and its replacement. */
export interface Patch {
  /** In `dist` of @ambit/egress. */
  readonly file: string;
  /** Must occur exactly once: no test would catch a variant that changes nothing. */
  readonly find: string;
  readonly replace: string;
}

const built = dirname(createRequire(import.meta.url).resolve("@ambit/egress"));

/** The gate's program without some of its guards. Made here, so that the product has no switch that weakens it. */
export async function gateVariant(patches: readonly Patch[]): Promise<Buffer> {
  const texts = await patchedTexts(patches);
  const patched: Plugin = {
    name: "patched",
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.js$/ }, ({ path }) => {
        const contents = texts.get(path);
        return contents === undefined ? undefined : { contents };
      }),
  };
  const { outputFiles } = await build({
    entryPoints: [join(built, "remote", "gate-program.js")],
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node22",
    write: false,
    plugins: [patched],
  });
  const [program] = outputFiles;
  if (program === undefined) throw new Error("the variant wasn't bundled");
  return Buffer.from(program.contents);
}

async function patchedTexts(patches: readonly Patch[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of patches) {
    const path = join(built, file);
    const text = texts.get(path) ?? (await readFile(path, "utf8"));
    const found = text.split(find).length - 1;
    if (found !== 1)
      throw new Error(`${file} has ${found} times: ${find}: the variant must follow the code it changes`);
    texts.set(
      path,
      text.replace(find, () => replace),
    );
  }
  return texts;
}
