import type { EventGroup, NewRun, RunEnd, Store } from "@ambit/durable/store";

export function newRun(id: string, more: Partial<NewRun> = {}): NewRun {
  return {
    id,
    project: undefined,
    session: undefined,
    state: "running",
    replica: "one",
    digest: "d",
    harness: "demo",
    sandbox: "local",
    ...more,
  };
}

/** Events of a run, numbered in their text. */
export function groupOf(runId: string, first: number, count: number, fence = 1): EventGroup {
  const lines = Array.from({ length: count }, (_, index) => `{"n":${first + index}}\n`);
  return { runId, fence, first, count, text: lines.join("") };
}

export const ending = (text = "{}"): RunEnd => ({
  result: text,
  outcome: "completed",
  summary: "{}",
  session: undefined,
});

/** The numbers of all events of a run, as a reader finds them page by page. */
export async function numbersOf(store: Store, runId: string, after = 0, page = 4_096): Promise<number[]> {
  const numbers: number[] = [];
  for (let last = after; ; ) {
    const chunks = await store.read(runId, last, page);
    if (chunks.length === 0) return numbers;
    for (const { first, count, text } of chunks) {
      const lines = text.split("\n").filter((line) => line !== "");
      if (lines.length !== count) throw new Error(`a chunk of ${count} events has ${lines.length} lines`);
      for (const [index, line] of lines.entries()) {
        if (first + index <= last) continue;
        numbers.push(JSON.parse(line).n);
      }
      last = first + count - 1;
    }
  }
}

/** 1 to `last`. */
export const upTo = (last: number, first = 1) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);
