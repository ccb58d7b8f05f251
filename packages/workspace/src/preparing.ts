import { createHash } from "node:crypto";
import type { Source } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import { prepareGit } from "./git/prepare.js";
import { archiveEntries } from "./sources/archive.js";
import type { Prepare } from "./sources/fill.js";
import type { PreparedSource } from "./sources/prepared.js";
import { sourceFailed } from "./sources/source-error.js";

export interface PrepareOptions {
  /** A sandbox of its own for the source of this index. */
  readonly open: (index: number) => Promise<Sandbox>;
  /** For files on their way. */
  readonly folder: string;
  /** Files and folders of a tree that are looked at. */
  readonly maxEntries: number;
  readonly signal: AbortSignal;
}

/** Puts the files of one source at hand, without any workspace. */
export function preparing({ open, ...options }: PrepareOptions): Prepare {
  return async (index, source, left) => {
    switch (source.type) {
      case "git":
        return prepareGit({ ...options, index, source, left, open: () => open(index) });
      case "archive":
        return fromData(index, source, left.bytes);
      case "files":
        return ofEntries(
          source.files.map(({ path, content, encoding, executable }) => ({
            path,
            content: Buffer.from(content, encoding),
            executable,
          })),
        );
    }
  };
}

function fromData(
  index: number,
  { data, sha256, format }: Extract<Source, { type: "archive" }>,
  maxBytes: number,
): PreparedSource {
  const bytes = Buffer.from(data, "base64");
  const digest = createHash("sha256").update(bytes).digest("hex");
  if (sha256 !== undefined && sha256 !== digest)
    throw sourceFailed(
      index,
      "digest_mismatch",
      `has the SHA-256 digest ${digest}, and not the one that the request names`,
    );
  return ofEntries(archiveEntries(bytes, format, maxBytes));
}

function ofEntries(entries: PreparedSource["entries"]): PreparedSource {
  return { facts: {}, entries, close: async () => {} };
}
