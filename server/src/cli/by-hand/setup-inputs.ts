import { globsOf } from "@ambit/workspace";
import { ConfigurationInvalid } from "../../configuration/problems.js";

/** Names, in any folder, of what says which packages a project needs. */
const manifests = [
  "{package,package-lock,npm-shrinkwrap,deno,jsr,composer,bower}.json",
  "{.npmrc,.yarnrc,.yarnrc.yml,yarn.lock,pnpm-lock.yaml,pnpm-workspace.yaml,.pnpmfile.cjs,bun.lock,bun.lockb,bunfig.toml,deno.jsonc,deno.lock}",
  "{.nvmrc,.node-version,.python-version,.ruby-version,.tool-versions,mise.toml,.mise.toml,rust-toolchain,rust-toolchain.toml,global.json}",
  "{pyproject.toml,setup.py,setup.cfg,tox.ini,Pipfile,Pipfile.lock,poetry.lock,uv.lock,uv.toml,pdm.lock,environment.{yml,yaml}}",
  "{*requirements*,*constraints*}.{txt,in}",
  "requirements/**/*.{txt,in}",
  "{go.mod,go.sum,go.work,go.work.sum,Cargo.toml,Cargo.lock,Gemfile,Gemfile.lock,*.gemspec,composer.lock,mix.exs,mix.lock}",
  "{pom.xml,build.gradle,build.gradle.kts,settings.gradle,settings.gradle.kts,gradle.properties,gradle.lockfile,libs.versions.toml,build.sbt}",
  "{*.csproj,*.fsproj,*.sln,packages.lock.json,packages.config,{nuget,NuGet,Nuget}.{config,Config},Directory.{Build,Packages}.props}",
].map((glob) => `**/${glob}`);

export interface SetupInputs {
  readonly globs: readonly string[];
  /** Those of the folder that they name. */
  readonly paths: readonly string[];
}

/**
 * What a setup depends on: manifests, lockfiles, and files that its commands name. Undefined where the folder has none: then on
 * every file. Pure.
 *
 * @param paths of the folder's files
 * @param wanted globs that the user names instead
 * @throws ConfigurationInvalid for globs that name no file
 */
export function setupInputsOf(
  paths: readonly string[],
  commands: readonly string[],
  wanted: readonly string[] | undefined,
): SetupInputs | undefined {
  const globs = wanted ?? [...manifests, ...namedFiles(paths, commands)];
  const { matches } = globsOf(globs);
  const inputs = paths.filter(matches);
  if (inputs.length > 0) return { globs, paths: inputs };
  if (wanted === undefined) return undefined;
  throw new ConfigurationInvalid("--setup-inputs", [
    `names no file of the folder: ${wanted.join(", ")}: leave it out, or name what is there`,
  ]);
}

/** Such as `sh tools/setup.sh` and `make`'s Makefile. */
function namedFiles(paths: readonly string[], commands: readonly string[]): readonly string[] {
  const words = new Set(
    commands.flatMap((command) =>
      command.split(/[\s"'`;&|()<>=]+/).map((word) => word.replace(/^(?:\.\/)+/, "")),
    ),
  );
  const implied = words.has("make") ? ["Makefile", "makefile", "GNUmakefile"] : [];
  return (
    paths
      .filter((path) => words.has(path) || implied.includes(path))
      .slice(0, maxNamed)
      // Literally: its name may have characters of a glob.
      .map((path) => path.replaceAll(/[\\*?[\]{}()!+@|]/g, "?"))
  );
}

/** Files that commands name. */
const maxNamed = 32;
