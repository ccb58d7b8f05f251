import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "@ambit/core/plugin";
import type { Question, Reply, WorkerSettings } from "./messages.js";

// node:sqlite is stable enough on every supported Node; its warning would appear at each start.
process.removeAllListeners("warning");

const settings: WorkerSettings = workerData;
const reply = (message: Reply) => parentPort?.postMessage(message);
const reasonOf = (error: unknown) => messageOf(error);

try {
  const { SqliteFile } = await import("./sqlite-file.js");
  const file = new SqliteFile(settings);
  parentPort?.on("message", ({ id, statements }: Question) => {
    try {
      reply({ id, rows: file.run(statements) });
    } catch (error) {
      reply({ id, error: reasonOf(error) });
    }
  });
  reply({ id: 0, rows: [] });
} catch (error) {
  reply({ id: 0, error: reasonOf(error) });
  parentPort?.close();
}
