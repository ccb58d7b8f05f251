import { messageOf, SnapshotFailed } from "@ambit/core";
import { type JsonLimits, parseBoundedJson } from "@ambit/core/contract";
import { KeptPieces } from "@ambit/core/plugin";
import { type ExportHeader, exportSchema, maxHeaderBytes } from "./manifest.js";

/** Of the header: 1,000 digests. What has more is refused before it is parsed, since its complaint would be as long. */
const headerLimits: JsonLimits = { maxLength: maxHeaderBytes, maxValues: 2_000, maxDepth: 4 };

/** The header of an exported snapshot, and its archive, which is read once. @throws SnapshotFailed */
export async function readExported(
  content: AsyncIterable<Uint8Array>,
): Promise<{ readonly header: ExportHeader; readonly archive: AsyncIterable<Uint8Array> }> {
  const iterator = content[Symbol.asyncIterator]();
  const begin = new KeptPieces();
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
    begin.push(value.subarray(0, end));
    const line = begin.take().toString();
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
    return exportSchema.parse(parseBoundedJson(line, headerLimits));
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
