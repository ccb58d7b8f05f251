import type { ContentBlock } from "@agentclientprotocol/sdk/unstable";
import type { DemoTurn } from "../turn.js";

/** The whole environment of this process as one JSON object, which shows what a boundary passed on. */
export async function sayEnvironment(turn: DemoTurn): Promise<void> {
  await turn.sayLine(JSON.stringify(process.env));
}

/** The tools of all connected MCP servers, as a JSON array of `server/tool`. */
export async function sayTools(turn: DemoTurn): Promise<void> {
  const { tools } = await turn.session.tools.survey();
  await turn.sayLine(JSON.stringify(tools));
}

/** One line per block of the prompt that isn't text. */
export async function sayAttachments(turn: DemoTurn): Promise<void> {
  const lines = turn.prompt.filter((block) => block.type !== "text").map(described);
  await turn.sayLine(lines.length === 0 ? "no attachments" : lines.join("\n"));
}

/** The earlier prompts of this session as a JSON array: proof that its history survived. */
export async function sayRecalled(turn: DemoTurn): Promise<void> {
  const prompts = turn.session.history.entries.flatMap((entry) =>
    entry.kind === "user" ? [entry.text] : [],
  );
  await turn.sayLine(JSON.stringify(prompts.slice(0, -1)));
}

function described(block: ContentBlock): string {
  switch (block.type) {
    case "image":
    case "audio":
      return `${block.type} ${block.mimeType} ${Buffer.byteLength(block.data, "base64")} bytes`;
    case "resource_link":
      return `resource_link ${block.uri}`;
    case "resource":
      return `resource ${block.resource.uri}`;
    case "text":
      return "text";
  }
}
