// What MCP's conformance suite starts as the client: it hands the scenario to the test's own process, whose code is loaded already.
const [control, url] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = "{}" } = process.env;
const response = await fetch(control, {
  method: "POST",
  body: JSON.stringify({ url, scenario, context: JSON.parse(context) }),
});
if (!response.ok) throw new Error(await response.text());
