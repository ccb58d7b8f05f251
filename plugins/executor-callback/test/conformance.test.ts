import { describeToolExecutor } from "@ambit/testkit/vitest";
import { CallbackExecutor, configSchema } from "../src/index.js";

const succeeded = {
  body: JSON.stringify({ call: { data: { status: { code: "STATUS_CODE_OK" }, content: '{"found":1}' } } }),
};
const failed = {
  body: JSON.stringify({ call: { status: { code: "STATUS_CODE_ERROR", message: "no such thing" } } }),
};
describeToolExecutor(
  () => new CallbackExecutor(configSchema.parse({})),
  (world) => {
    const tool = { name: "find", kind: "callback", callRef: "tools.find" };
    const request = { toolCallback: { endpoint: `${world.url}/tools/call` } };
    const common = { tool, request, arguments: { query: "x" } };
    return [
      { ...common, name: "a result", prepare: () => world.answer(succeeded), status: "completed" },
      { ...common, name: "a failure", prepare: () => world.answer(failed), status: "failed" },
      {
        ...common,
        name: "a bare answer",
        prepare: () => world.answer({ body: "<p>" }),
        status: "completed",
        output: "<p>",
      },
      {
        ...common,
        name: "a status",
        prepare: () => world.answer({ status: 500, body: "oops" }),
        status: "failed",
      },
      { ...common, name: "no answer", prepare: () => world.answer("never"), status: "never" },
    ];
  },
);
