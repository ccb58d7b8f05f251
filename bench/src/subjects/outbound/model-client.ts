/** A thread: an agent's model client, which parses each event of a streamed response. */
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { parentPort } from "node:worker_threads";
import type { ResponseTimes, RoutedModel } from "./routed.js";

const agent = new Agent({ keepAlive: true });
const body = JSON.stringify({ model: "bench", messages: [{ role: "user", content: "x".repeat(2_000) }] });

parentPort?.on("message", async (asked: RoutedModel) => {
  parentPort?.postMessage(await post(asked).catch((error: unknown) => error));
});

async function post({ baseUrl, key, events }: RoutedModel): Promise<ResponseTimes> {
  const begun = performance.now();
  const headers = { "x-api-key": key, "content-type": "application/json", "user-agent": events };
  const sending = httpRequest(`${baseUrl}/v1/messages`, { method: "POST", headers, agent });
  sending.end(body);
  const [answer]: IncomingMessage[] = await once(sending, "response");
  if (answer?.statusCode !== 200) throw new Error(`the model answered ${answer?.statusCode}`);
  let firstByteMs: number | undefined;
  let rest = "";
  let parsed = 0;
  for await (const chunk of answer.setEncoding("utf8")) {
    firstByteMs ??= performance.now() - begun;
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data: ") && typeof JSON.parse(line.slice(6)).type === "string") parsed += 1;
    }
  }
  // One more event has the usage.
  if (parsed !== Number.parseInt(events, 10) + 1) throw new Error(`${parsed} of ${events} events arrived`);
  return { firstByteMs: firstByteMs ?? Number.NaN, totalMs: performance.now() - begun };
}
