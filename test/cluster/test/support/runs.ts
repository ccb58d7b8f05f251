import { z } from "zod";

/** One record of a run's events, as a stream of server-sent events carries it. */
export interface Record {
  readonly id: number;
  readonly text: string;
}

const resultSchema = z.looseObject({
  ok: z.boolean(),
  output: z.string().optional(),
  failure: z.looseObject({ code: z.string(), retryable: z.boolean() }).optional(),
  receipt: z.looseObject({ evidence: z.record(z.string(), z.unknown()) }).optional(),
});
export type Result = z.output<typeof resultSchema>;
const lastSchema = z.looseObject({ kind: z.literal("result"), result: resultSchema });

/** A caller of the chart's runners. */
export class Caller {
  readonly #headers: Readonly<{ authorization: string; "content-type": string }>;

  constructor(token: string) {
    this.#headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  }

  #request(prompt: string): string {
    return JSON.stringify({
      harness: "demo",
      sandbox: "kubernetes",
      messages: [{ role: "user", content: prompt }],
      sandboxPermission: { network: "off", filesystem: "workspace", enforcement: "strict" },
    });
  }

  async run(url: string, prompt: string): Promise<Result> {
    const response = await fetch(`${url}/run`, {
      method: "POST",
      headers: this.#headers,
      body: this.#request(prompt),
    });
    return resultSchema.parse(await response.json());
  }

  /** Begins a run that outlives its connection. @returns its id. */
  async begin(url: string, prompt: string): Promise<string> {
    const headers = { ...this.#headers, prefer: "respond-async" };
    const response = await fetch(`${url}/run`, { method: "POST", headers, body: this.#request(prompt) });
    if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
    return (response.headers.get("location") ?? "").replace("/runs/", "");
  }

  /** The run's records after that one, until one matches or the run ends. */
  async follow(url: string, runId: string, after: number, until?: RegExp): Promise<readonly Record[]> {
    const response = await fetch(`${url}/runs/${runId}/events`, {
      headers: { ...this.#headers, accept: "text/event-stream", "last-event-id": String(after) },
    });
    if (response.body === null || !response.ok)
      throw new Error(`${response.status} ${await response.text()}`);
    const records: Record[] = [];
    let held = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      held += text;
      const blocks = held.split("\n\n");
      held = blocks.pop() ?? "";
      for (const block of blocks) {
        const id = /^id: ?(\d+)$/m.exec(block)?.[1];
        const data = /^data: ?(.*)$/m.exec(block)?.[1];
        if (id === undefined || data === undefined) continue;
        records.push({ id: Number(id), text: data });
        if (until?.test(data)) return records;
      }
    }
    return records;
  }
}

/** The result that a run's last record holds. */
export function resultOf(records: readonly Record[]): Result {
  return lastSchema.parse(JSON.parse(records.at(-1)?.text ?? "")).result;
}
