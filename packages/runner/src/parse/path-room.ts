import { type Issue, isJsonObject } from "@ambit/core/contract";

/** Characters of the paths of all files that a request brings: how long it takes to compare them depends on that. */
const maxCharacters = 2_097_152;

/** Where a request has files. */
const places = ["harnessFiles", "skills", "workspace"] as const;

/** The request without its files where their paths are too long together: nothing else is checked of them then. Pure. */
export function withinPathRoom(request: unknown): { readonly body: unknown; readonly issues: Issue[] } {
  if (!isJsonObject(request)) return { body: request, issues: [] };
  let characters = 0;
  const path = places.find((place) => {
    for (const file of filesIn(request, place)) characters += pathLength(file);
    return characters > maxCharacters;
  });
  if (path === undefined) return { body: request, issues: [] };
  const { harnessFiles: _files, skills: _skills, workspace: _workspace, ...body } = request;
  const message = `makes the paths of all files longer than ${maxCharacters.toLocaleString("en")} characters together: send fewer or shorter ones`;
  return { body, issues: [{ path, message }] };
}

function filesIn(request: Readonly<Record<string, unknown>>, place: (typeof places)[number]): unknown[] {
  if (place === "harnessFiles") return listOf(request.harnessFiles);
  const owners =
    place === "skills"
      ? request.skills
      : isJsonObject(request.workspace)
        ? request.workspace.sources
        : undefined;
  return listOf(owners).flatMap((owner) => (isJsonObject(owner) ? listOf(owner.files) : []));
}

function pathLength(file: unknown): number {
  return isJsonObject(file) && typeof file.path === "string" ? file.path.length : 0;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
