import { dirname, join } from "node:path/posix";
import { relativePathsOf, type SourceFile } from "./source-file.js";

/**
 * Paths from a package into another one: it imports the other by its name, which offers only its entry points. Files
 * that belong to no package, such as `docs`, `scripts` and `test/golden`, are everyone's.
 *
 * @param folders of the packages
 */
export function pathsIntoPackages(files: readonly SourceFile[], folders: readonly string[]): string[] {
  const packageOf = (path: string) =>
    folders
      .filter((folder) => `${path}/`.startsWith(`${folder}/`))
      .sort((one, other) => other.length - one.length)[0];
  return files.flatMap((file) => {
    const own = packageOf(file.path);
    if (own === undefined) return [];
    return relativePathsOf(file).flatMap((path) => {
      const other = packageOf(join(dirname(file.path), path));
      return other === undefined || other === own
        ? []
        : [`${file.path} reaches into ${other}: "${path}": import the package by its name`];
    });
  });
}

/** `test` is a package too: its tests are in `test/e2e`, and beside them are other packages. */
export function packageFolders(manifests: readonly SourceFile[]): string[] {
  return manifests
    .map(({ path }) => dirname(path))
    .filter((folder) => !folder.startsWith("scripts/"))
    .map((folder) => (folder === "test" ? "test/e2e" : folder));
}
