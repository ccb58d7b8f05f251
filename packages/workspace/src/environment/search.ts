import { SetupFailed } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import { Automaton, formsOf } from "@ambit/secret-forms";
import { ArchiveContents } from "./archive-contents.js";

/** Shorter ones occur in any data. */
const minSecretLength = 8;

/** The credentials that setup commands and sources used, which were never inside. Pure. */
export function usedSecrets({
  environment,
  workspace,
}: Pick<RunRequest, "environment" | "workspace">): readonly string[] {
  const values = [
    ...(environment?.credentials ?? []).map(({ value }) => value),
    ...(workspace?.sources ?? []).flatMap((source) =>
      source.type !== "files" && source.credential !== undefined ? [source.credential.value] : [],
    ),
  ];
  // `user:password`: the password is secret by itself.
  const parts = values.flatMap((value) => [value, value.slice(value.indexOf(":") + 1)]);
  return [...new Set(parts)].filter((text) => text.length >= minSecretLength);
}

/**
 * The same bytes, searched for secrets in every form in which a run's output is searched for them. What is compressed or
 * encrypted can't be searched.
 * @param archive of a snapshot.
 * @throws SetupFailed in place of the bytes that have one; SnapshotFailed for what is no such archive
 */
export async function* withoutSecrets(
  archive: AsyncIterable<Uint8Array>,
  secrets: readonly string[],
): AsyncGenerator<Uint8Array, void, undefined> {
  if (secrets.length === 0) return yield* archive;
  const automaton = new Automaton(secrets.flatMap(formsOf));
  const contents = new ArchiveContents();
  let state = 0;
  for await (const piece of archive) {
    for (const { bytes, begins } of contents.in(piece)) {
      if (begins) state = 0;
      for (const byte of bytes) {
        state = automaton.step(state, byte);
        if (automaton.ending(state) >= 0)
          throw new SetupFailed(
            "What environment.setup prepared has a credential in it, so it isn't used: a command wrote one that came in by another way than environment.credentials or a source's credential. Remove it from the commands, environment.env and the sources.",
          );
      }
    }
    yield piece;
  }
}
