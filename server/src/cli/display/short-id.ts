/** Characters of an id that are shown, beyond a prefix that says what it is. */
const shownCharacters = 8;

const ofQuestion = "ask_";

/** Where the part of a question's id begins that differs between the questions of one turn. */
const ownPart = ofQuestion.length + 22;

const isRunOfAmbit = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;
const isQuestion = /^ask_[\w-]{32,}$/;

/**
 * As few characters of the id as tell it from the others of the list, but eight at least: commands take them. Ids that callers choose
 * are whole, since their ends tell them apart. Pure.
 */
export function shortId(id: string, all: readonly string[] = []): string {
  const typeable = typeableOf(id);
  if (typeable === undefined) return id;
  const begin = id.startsWith(ofQuestion) ? ofQuestion.length : 0;
  for (let length = begin + shownCharacters; length < typeable.length; length += 1) {
    const short = typeable.slice(0, length);
    // The same id stands in several rows: a run of two projects.
    if (!all.some((other) => other !== id && (typeableOf(other) ?? other).startsWith(short))) return short;
  }
  return id;
}

/** What of an id that Ambit made tells it from others, from the beginning; undefined for other ids. */
function typeableOf(id: string): string | undefined {
  if (isQuestion.test(id)) return ofQuestion + id.slice(ownPart);
  return isRunOfAmbit.test(id) ? id : undefined;
}

/** Those that begin with what was typed. The whole id is meant alone, even if others begin with it. Pure. */
export function idsMeant(typed: string, all: readonly string[]): readonly string[] {
  if (all.includes(typed)) return [typed];
  const starts = [typed, `${ofQuestion}${typed}`];
  return [...new Set(all)].filter((id) =>
    starts.some((start) => id.startsWith(start) || typeableOf(id)?.startsWith(start) === true),
  );
}
