import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds that a replica gets to accept a run. */
const submitMs = 3_000;

type Pick = () => string;

/** Starts a run with an id, and repeats the request until a replica has accepted it. */
export async function submit(anyReplica: Pick, id: string, steps: number): Promise<void> {
  for (;;) {
    const body = JSON.stringify({ messages: [{ role: "user", content: `count to ${steps}` }] });
    const response = await fetch(`${anyReplica()}/run`, {
      method: "POST",
      body,
      headers: { "idempotency-key": id, prefer: "respond-async" },
      signal: AbortSignal.timeout(submitMs),
    }).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.status === 202) return;
    await sleep(50);
  }
}

/**
 * The lines of a run that one reader received, in order.
 * @param patienceMs milliseconds without a byte after which it tries another replica; agents send events more often.
 */
export async function readAll(anyReplica: Pick, id: string, patienceMs: number): Promise<readonly string[]> {
  const lines: string[] = [];
  while (!isResult(lines.at(-1))) {
    const url = `${anyReplica()}/runs/${id}/events?after=${lines.length}`;
    const status = await readSome(url, lines, patienceMs).catch(() => undefined);
    // The replica reports the end, but there was no result: the log has less than this reader received.
    if (status === 204) return lines;
    await sleep(20);
  }
  return lines;
}

async function readSome(url: string, lines: string[], patienceMs: number): Promise<number> {
  const leave = new AbortController();
  let timer = setTimeout(() => leave.abort(), patienceMs);
  try {
    const response = await fetch(url, { signal: leave.signal });
    if (response.status !== 200 || response.body === null) return response.status;
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(() => leave.abort(), patienceMs);
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts);
    }
    return response.status;
  } finally {
    clearTimeout(timer);
    leave.abort();
  }
}

const isResult = (line: string | undefined) => line?.startsWith('{"kind":"result"') === true;
