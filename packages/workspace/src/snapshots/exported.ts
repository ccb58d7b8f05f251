import { messageOf, SnapshotFailed } from "@ambit/core";
import { type ExportHeader, exportSchema, maxHeaderBytes } from "./manifest.js";

/** The header of an exported snapshot, and its archive, which is read once. @throws SnapshotFailed */
export async function readExported(
  content: AsyncIterable<Uint8Array>,
): Promise<{ readonly header: ExportHeader; readonly archive: AsyncIterable<Uint8Array> }> {
  const iterator = content[Symbol.asyncIterator]();
  const begin: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await iterator.next();
    const end = done === true ? -1 : value.indexOf(10);
    if (done === true || length > maxHeaderBytes) throw notExported("its first line is missing or too long");
    if (end === -1) {
      begin.push(value);
      length += value.length;
      continue;
    }
    const line = Buffer.concat([...begin, value.subarray(0, end)]).toString();
    const rest = value.subarray(end + 1);
    const archive = async function* () {
      yield rest;
      yield* { [Symbol.asyncIterator]: () => iterator };
    };
    return { header: headerIn(line), archive: archive() };
  }
}

function headerIn(line: string): ExportHeader {
  try {
    return exportSchema.parse(JSON.parse(line));
  } catch (cause) {
    throw notExported(messageOf(cause).slice(0, 200), cause);
  }
}

function notExported(why: string, cause?: unknown): SnapshotFailed {
  return new SnapshotFailed(
    `The body isn't a snapshot that this version of Ambit can read (${why}): send what GET /snapshots/{snapshotId}/archive gives.`,
    { cause },
  );
}
