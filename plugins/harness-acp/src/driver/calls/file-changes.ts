import type { FileChange, FileLocation } from "@ambit/core/plugin";
import { isRecord, numberAt, textAt } from "../json-reading.js";

/** Changes and locations of one call. Further ones are left out. */
const maxChanges = 64;
const maxLocations = 256;
/** Characters of a path; one that is longer isn't reported. */
const maxPathLength = 4_096;
/** Characters of the texts of one change, and of all changes of a call. A change beyond that has no texts. */
const maxChangeCharacters = 65_536;
const maxCallCharacters = 262_144;

/** The diffs in the content of a call. A text is whole or left out: a diff of shortened texts would be wrong. Pure. */
export function changesIn(content: readonly unknown[]): FileChange[] {
  let room = maxCallCharacters;
  const changes: FileChange[] = [];
  for (const part of content) {
    if (!isRecord(part) || part.type !== "diff" || changes.length >= maxChanges) continue;
    const path = pathAt(part);
    const newText = textAt(part, "newText");
    if (path === undefined || newText === undefined) continue;
    const oldText = textAt(part, "oldText");
    const length = newText.length + (oldText?.length ?? 0);
    if (length > Math.min(maxChangeCharacters, room)) {
      changes.push({ path, omitted: length });
      continue;
    }
    room -= length;
    changes.push({ path, oldText, newText });
  }
  return changes;
}

/** The files that a call names. Pure. */
export function locationsIn(locations: unknown): FileLocation[] {
  if (!Array.isArray(locations)) return [];
  return locations.slice(0, maxLocations).flatMap((location: unknown): FileLocation[] => {
    const path = isRecord(location) ? pathAt(location) : undefined;
    if (path === undefined) return [];
    const line = isRecord(location) ? numberAt(location, "line") : undefined;
    return [{ path, line: Number.isSafeInteger(line) ? line : undefined }];
  });
}

function pathAt(record: Readonly<Record<string, unknown>>): string | undefined {
  const path = textAt(record, "path");
  return path === undefined || path === "" || path.length > maxPathLength ? undefined : path;
}
