import type { AmbitClient } from "@ambit/client";
import { idsMeant } from "./display/short-id.js";
import { CommandRefused, isMissing } from "./server-client.js";

/** Ids that a refusal lists. */
const maxListed = 5;

/** Does something with the run that was typed: see `withIdMeant`. @throws AmbitError, CommandRefused */
export async function withRunMeant<Result>(
  client: AmbitClient,
  typed: string,
  act: (runId: string) => Promise<Result>,
): Promise<Result> {
  return withIdMeant("run", typed, act, async () => {
    const runs = await Array.fromAsync(client.eachRun());
    return runs.map(({ runId }) => runId);
  });
}

/**
 * Does something with what was typed: with this id, or where the server has none, with the only one whose id begins so.
 * @throws CommandRefused where several do
 */
export async function withIdMeant<Result>(
  what: string,
  typed: string,
  act: (id: string) => Promise<Result>,
  listIds: () => Promise<readonly string[]>,
): Promise<Result> {
  try {
    return await act(typed);
  } catch (error) {
    if (!isMissing(error)) throw error;
    const id = theOneMeant(what, typed, await listIds());
    if (id === undefined || id === typed) throw error;
    return await act(id);
  }
}

/** Undefined where none begins so. Pure. @throws CommandRefused where several do */
export function theOneMeant(what: string, typed: string, all: readonly string[]): string | undefined {
  const [first, ...others] = idsMeant(typed, all);
  if (others.length === 0 || first === undefined) return first;
  const listed = [first, ...others].slice(0, maxListed).join(", ");
  const more = others.length >= maxListed ? ", …" : "";
  throw new CommandRefused(
    `${others.length + 1} ${what}s begin with '${typed}': type more of it: ${listed}${more}`,
  );
}
