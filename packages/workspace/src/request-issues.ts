import { type GitSource, hasSetup, type Issue, type RunRequest } from "@ambit/core/contract";
import { environmentIssues } from "./environment/sandbox-of.js";
import { whyNoPullRequest } from "./forge/pull-request.js";
import { type OperatorReach, whyNotReached } from "./git/sandbox-of.js";

/** What workspaces need of a request. */
export type Needed = Pick<
  RunRequest,
  "workspace" | "outputs" | "sandboxPermission" | "environment" | "fork" | "sessionId" | "harnessFiles"
>;

export interface IssueOptions {
  readonly reach: OperatorReach;
  /** Whether a plugin keeps files. */
  readonly hasBlobs: boolean;
}

/** Why this server can't give a request its workspace, environment or outputs. */
export function requestIssues(request: Needed, { reach, hasBlobs }: IssueOptions): readonly Issue[] {
  const { outputs, workspace } = request;
  const issues = [...environmentIssues(request)];
  const unreached = (workspace?.sources ?? []).flatMap((source, index): Issue[] => {
    if (source.type === "files" || source.url === undefined) return [];
    const { url, credential } = source;
    const message = whyNotReached({ url, credential }, reach);
    return message === undefined ? [] : [{ path: `workspace.sources[${index}].url`, message }];
  });
  issues.push(...unreached);
  issues.push(...forkIssues(request, hasBlobs));
  const repository = repositoryOf({ workspace });
  const wish = outputs?.git?.pullRequest;
  if (wish !== undefined && repository !== undefined) {
    const problem = whyNoPullRequest(repository.url, wish);
    if (problem !== undefined)
      issues.push({ path: `outputs.git.pullRequest.${problem.field}`, message: problem.message });
  }
  if (outputs?.git !== undefined && repository === undefined) {
    const message = "needs exactly one git source in workspace.sources, whose repository it is pushed to";
    issues.push({ path: "outputs.git", message });
  }
  if (outputs === undefined || hasBlobs) return issues;
  const message =
    "can't be kept: no plugin for files is loaded. Add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins";
  return [...issues, { path: "outputs", message }];
}

function forkIssues({ fork, workspace, environment, sessionId }: Needed, isKept: boolean): readonly Issue[] {
  if (fork === undefined) return [];
  const issues: Issue[] = [];
  if (workspace !== undefined || hasSetup(environment))
    issues.push({ path: "fork", message: "already has files: leave workspace and environment.setup out" });
  if (fork.session !== undefined && fork.session === sessionId)
    issues.push({ path: "fork.session", message: "is this request's own session: send another sessionId" });
  if (fork.snapshot !== undefined && !isKept) {
    const message =
      "can't be kept here: add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins";
    issues.push({ path: "fork.snapshot", message });
  }
  return issues;
}

/** The request's one git source. */
export function repositoryOf({ workspace }: Pick<RunRequest, "workspace">): GitSource | undefined {
  const [first, second] = (workspace?.sources ?? []).filter((source) => source.type === "git");
  return second === undefined ? first : undefined;
}
