import { dirname, join } from "node:path/posix";
import { relativePathsOf, type SourceFile } from "./source-file.js";

/**
 * Paths from a package into another one: it imports the other by its name, which offers only its entry points. Files
 * that belong to no package, such as `docs`, `scripts` and `test/golden`, are everyone's.
 *
 * @param folders of the packages
 */
export function pathsIntoPackages(files: readonly SourceFile[], folders: readonly string[]): string[] {
  return files.flatMap((file) => {
    const own = packageOf(file.path, folders);
    if (own === undefined) return [];
    return relativePathsOf(file).flatMap((path) => {
      const other = packageOf(join(dirname(file.path), path), folders);
      return other === undefined || other === own
        ? []
        : [`${file.path} reaches into ${other}: "${path}": import the package by its name`];
    });
  });
}

/** The folder of the package that a file or folder belongs to. */
export function packageOf(path: string, folders: readonly string[]): string | undefined {
  return folders.find((folder) => `${path}/`.startsWith(`${folder}/`));
}

/** `test` is a package too: its tests are in `test/e2e`, and beside them are other packages. */
export function packageFolders(manifests: readonly SourceFile[]): string[] {
  return manifests
    .map(({ path }) => dirname(path))
    .filter((folder) => !folder.startsWith("scripts/"))
    .map((folder) => (folder === "test" ? "test/e2e" : folder));
}
