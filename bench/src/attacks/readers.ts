import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { HttpCaller } from "../http.js";
import { demoRequest } from "../subjects/server/requests.js";
import { count, type LoadAttack, repeatedly } from "./attack.js";
import { readRun } from "./runs.js";

/** Stored runs, and the readers of each that don't read. */
const logs = 10;
const readers = 32;

/** Readers that ask for a long log and take nothing of it. Each leaves after a while and asks again. */
export const readersThatDontRead: LoadAttack = {
  run: async (target, tally, signal) => {
    const caller = new HttpCaller(target.url, target.token);
    const runs: string[] = [];
    for (let turn = 0; turn < logs && !signal.aborted; turn += 1) {
      const runId = `unread-${process.pid}-${turn}`;
      await readRun(caller, demoRequest("stream 30000 abcdefghijklmnopqrstuvwxyz", { runId }), tally, signal);
      runs.push(runId);
    }
    const step = async (lane: number) => {
      const url = new URL(`/runs/${runs[lane % runs.length]}/events`, target.url);
      const headers = { accept: "application/x-ndjson", authorization: `Bearer ${target.token}` };
      const sent = get(url, { agent: false, headers });
      const [response]: IncomingMessage[] = await once(sent, "response");
      if (response === undefined) throw new Error("there is no response");
      response.pause();
      count(tally, response.statusCode === 200 ? "readers" : "refused");
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, 1_000 + 10 * lane);
        signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
      });
      response.destroy();
    };
    if (runs.length > 0) await repeatedly(logs * readers, step, tally, signal);
    caller.close();
  },
};
