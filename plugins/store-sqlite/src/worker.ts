import { parentPort, workerData } from "node:worker_threads";
import type { Reply, WorkerRequest, WorkerSettings } from "./open-sqlite.js";

const settings: WorkerSettings = workerData;
const reply = (message: Reply) => parentPort?.postMessage(message);
// Not core's `messageOf`: core takes 90 ms of CPU to load, at each start of this thread.
const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

try {
  const { isFull, SqliteFile } = await import("./sqlite-file.js");
  const file = new SqliteFile(settings);
  parentPort?.on("message", ({ id, statements, essential }: WorkerRequest) => {
    try {
      reply({ id, rows: file.run(statements, essential) });
    } catch (error) {
      reply({ id, error: reasonOf(error), isFull: isFull(error) });
    }
  });
  reply({ id: 0, rows: [] });
  setImmediate(() => file.reserve.isKept());
} catch (error) {
  reply({ id: 0, error: reasonOf(error), isFull: false });
  parentPort?.close();
}
