// A platform's tool endpoint, to try the callback examples with: node examples/platform.mjs
import { createServer } from "node:http";

const answers = {
  tools__find_trains: ({ from, to }) =>
    JSON.stringify([
      { from, to, at: "9:02", euros: 38 },
      { from, to, at: "9:32", euros: 29 },
    ]),
  tools__book: () => JSON.stringify({ booked: true }),
  tools__weather: ({ city }) => `It is 18 °C and dry in ${city}.`,
};

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { id, function: called } = JSON.parse(Buffer.concat(chunks).toString()).data;
  console.log(`called: ${called.name} ${JSON.stringify(called.arguments)}`);
  const answer = answers[called.name];
  const status = answer ? { code: "STATUS_CODE_OK" } : { code: "STATUS_CODE_ERROR", message: "no such tool" };
  const content = answer ? answer(called.arguments) : status.message;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ call: { id, status, data: { role: "tool", tool_call_id: id, content } } }));
}).listen(8767, "127.0.0.1", () => console.log("tools at http://127.0.0.1:8767/tools/call"));
