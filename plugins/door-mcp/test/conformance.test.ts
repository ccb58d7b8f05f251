import { describeDoor } from "@ambit/testkit/vitest";
import { configSchema } from "../src/config.js";
import { McpDoor } from "../src/door.js";
import { callOf } from "./support/call-of.js";

describeDoor(() => new McpDoor(configSchema.parse({ request: { harness: "gemini" } })), {
  say: (prompt) => callOf("run_agent", { prompt }),
  widened: (fields) => callOf("run_agent", { prompt: "hello" }, { "ambit/request": fields }),
  forged: {
    "an answer to a question": (id) =>
      callOf("continue_run", { runId: "r", answers: [{ id, approved: true }] }),
  },
  finished: /"status":"completed"/,
  failed: /"isError":true/,
  answersAtEnd: true,
});
