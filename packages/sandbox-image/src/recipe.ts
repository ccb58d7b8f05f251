import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** Where the exact Node and npm of the image are pinned, with their hashes. */
export const nodeManifests = new URL("../node/", import.meta.url);

/** What an image is made of. */
export interface Recipe {
  /** Debian's release, by its code name. */
  readonly suite: string;
  /** Debian packages beyond the essential ones. */
  readonly packages: readonly string[];
}

/** Options of a recipe. */
export interface RecipeOptions {
  /** More Debian packages, by name. Default: none. */
  readonly packages?: readonly string[];
}

/** TLS, Node's own libraries, what agents and code tools call, and what sandboxes within a sandbox are built with. */
const basePackages = [
  "ca-certificates",
  "libatomic1",
  "libstdc++6",
  "curl",
  "git",
  "mount",
  "procps",
  "python3",
  "bubblewrap",
  "socat",
];

/** Debian policy 5.6.7. */
const packageName = /^[a-z\d][a-z\d+.-]+$/;

/**
 * The recipe with these packages.
 *
 * @throws Error for a name that can't be a Debian package's.
 */
export function recipeOf({ packages = [] }: RecipeOptions = {}): Recipe {
  const wrong = packages.find((name) => !packageName.test(name));
  if (wrong !== undefined) throw new Error(`"${wrong}" can't be the name of a Debian package`);
  return { suite: "bookworm", packages: [...new Set([...basePackages, ...packages])].sort() };
}

/** Documentation and translations: nothing in a sandbox reads them. */
const excludedPaths = ["/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*"];

/** In seconds since 1970: the time of every file that the build writes, so that two builds agree. */
export const sourceDate = 1_780_272_000;

/** The arguments of mmdebstrap. `folder` holds `bin` and `lib` of the Node to be copied in. */
export function debianArguments({ suite, packages }: Recipe, folder: string, archive: string): string[] {
  return [
    "--quiet",
    "--format=tar",
    "--variant=essential",
    `--include=${packages.join(",")}`,
    ...excludedPaths.map((path) => `--dpkgopt=path-exclude=${path}`),
    `--customize-hook=sync-in ${folder} /usr/local`,
    suite,
    archive,
  ];
}

/** The image's settings, in a Dockerfile's words. */
export function imageSettings(recipe: Recipe): string[] {
  return [
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV LANG=C.UTF-8",
    `LABEL org.opencontainers.image.title=ambit-sandbox org.opencontainers.image.version=${hashOf(recipe)}`,
    'CMD ["/bin/sh"]',
  ];
}

/** `ambit-sandbox:<hash of the recipe>`: another recipe is another image. */
export function sandboxImageName(options: RecipeOptions = {}): string {
  return `ambit-sandbox:${hashOf(recipeOf(options))}`;
}

function hashOf(recipe: Recipe): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([debianArguments(recipe, "", ""), sourceDate]));
  hash.update(readFileSync(new URL("package-lock.json", nodeManifests)));
  return hash.digest("hex").slice(0, 12);
}
