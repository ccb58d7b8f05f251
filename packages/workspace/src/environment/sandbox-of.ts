import { normaliseBoundary, type OwnSandbox } from "@ambit/core";
import { type EnvironmentRequest, hasSetup, type Issue, type RunRequest } from "@ambit/core/contract";
import type { Boundary } from "@ambit/core/plugin";

/** What asks for the sandbox of setup commands, in gaps and issues. */
export const environmentSubject = "environment";

type Asked = Pick<RunRequest, "environment" | "sandboxPermission" | "workspace">;

/** The sandbox of the request's setup commands; undefined without any. Pure. */
export function setupSandbox(request: Asked): OwnSandbox | undefined {
  const { environment } = request;
  if (!hasSetup(environment)) return undefined;
  return {
    subject: environmentSubject,
    backend: "run",
    boundary: boundaryOf(request).boundary,
    secrets: environment.credentials,
  };
}

/** Why such an environment can't be prepared, by path. Pure. */
export function environmentIssues(request: Asked): readonly Issue[] {
  const { environment, sandboxPermission, workspace } = request;
  if (environment === undefined) return [];
  if (!hasSetup(environment)) return withoutSetup(environment);
  const issues: Issue[] = [...boundaryOf(request).issues];
  const { mode, readable, writable, denied } = normaliseBoundary(sandboxPermission).boundary.filesystem;
  if (!isWritten(mode) || readable.length + writable.length + denied.length > 0)
    issues.push({
      path: "environment",
      message:
        'needs sandboxPermission.filesystem to be "workspace", without lists, or "on": what was prepared is written by the agent\'s user, to the paths that it was prepared at',
    });
  const repositories = (workspace?.sources ?? []).filter(({ type }) => type === "git");
  if (environment.devcontainer !== undefined && repositories.length !== 1)
    issues.push({
      path: "environment.devcontainer",
      message: "needs exactly one git source in workspace.sources, whose file it is",
    });
  if (environment.inputs !== undefined && (workspace?.sources ?? []).some(({ type }) => type !== "files"))
    issues.push({
      path: "environment.inputs",
      message:
        "needs all of workspace.sources to be of type files: a git source counts by its commit, and an archive by its digest. Leave it out",
    });
  const setupFilesystem = environment.boundary?.filesystem;
  if (
    setupFilesystem !== undefined &&
    (typeof setupFilesystem === "object"
      ? JSON.stringify(setupFilesystem) !== JSON.stringify({ mode })
      : setupFilesystem !== mode)
  )
    issues.push({
      path: "environment.boundary.filesystem",
      message: "must be the same as sandboxPermission.filesystem, or left out",
    });
  const seen = new Set(Object.keys(environment.env));
  for (const [index, { name }] of environment.credentials.entries()) {
    if (seen.has(name))
      issues.push({
        path: `environment.credentials[${index}].name`,
        message: "is the name of another credential, or of a variable in env: every name must be unique",
      });
    seen.add(name);
  }
  return issues;
}

/** An image alone is all that such an environment may have. */
function withoutSetup({
  image,
  env,
  credentials,
  boundary,
  inputs,
  prepareOnly,
}: EnvironmentRequest): readonly Issue[] {
  const isForCommands =
    Object.keys(env).length > 0 ||
    credentials.length > 0 ||
    boundary !== undefined ||
    inputs !== undefined ||
    prepareOnly;
  if (image !== undefined && !isForCommands) return [];
  const message =
    "must have a command, unless there is a devcontainer or nothing but an image: the other fields are for commands";
  return [{ path: "environment.setup", message }];
}

type Mode = Boundary["filesystem"]["mode"];

const isWritten = (mode: Mode) => mode === "workspace" || mode === "on";

function boundaryOf({ environment, sandboxPermission }: Asked): {
  readonly boundary: Boundary;
  readonly issues: readonly Issue[];
} {
  const permission = environment?.boundary ?? sandboxPermission;
  const { mode } = normaliseBoundary(sandboxPermission).boundary.filesystem;
  // What isn't written is an issue, and the boundary isn't used.
  const filesystem = isWritten(mode) ? mode : "workspace";
  const { boundary, issues } = normaliseBoundary({ ...permission, filesystem });
  const hides = (environment?.credentials ?? []).length > 0;
  return {
    boundary: { ...boundary, secrets: hides ? "hidden" : boundary.secrets, enforcement: "strict" },
    // The issues of the run's own boundary are reported with that boundary.
    issues:
      environment?.boundary === undefined
        ? []
        : issues.map(({ path, message }) => ({
            path: path.replace(/^sandboxPermission/, "environment.boundary"),
            message,
          })),
  };
}
