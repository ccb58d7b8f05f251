import type { ContentBlock as AcpBlock, ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import type { ContentBlock as McpBlock } from "@modelcontextprotocol/client";
import type { DemoTurn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

/** Calls an MCP tool. A tool that can't be found is a failed call under the name that the script gave. */
export async function callMcpTool(instruction: InstructionOf<"call">, turn: DemoTurn): Promise<void> {
  const { tool, input, askFirst } = instruction;
  const ask = askFirst ? "remembering" : "never";
  let mcpTool: Awaited<ReturnType<typeof turn.session.tools.find>>;
  try {
    mcpTool = await turn.session.tools.find(tool);
  } catch (error) {
    await turn.callTool({ title: tool, kind: "other", rawInput: input, ask: "never" }, () =>
      Promise.reject(error),
    );
    return;
  }
  // The same name as in Claude.
  const name = `mcp__${mcpTool.server}__${mcpTool.tool}`;
  await turn.callTool({ title: name, name, kind: "other", rawInput: input, ask }, async (toolCallId) => {
    const result = await mcpTool.call(input, toolCallId, turn.signal);
    const text = result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
    return {
      failed: result.isError === true,
      text,
      content: result.content.map(acpContent),
      rawOutput: result,
    };
  });
}

function acpContent(block: McpBlock): ToolCallContent {
  return { type: "content", content: acpBlock(block) };
}

/** Text and images unchanged; anything else as its JSON, so that nothing is lost. */
function acpBlock(block: McpBlock): AcpBlock {
  if (block.type === "text") return { type: "text", text: block.text };
  if (block.type === "image") return { type: "image", mimeType: block.mimeType, data: block.data };
  return { type: "text", text: JSON.stringify(block) };
}
