import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  isToolUIPart,
  type UIMessage,
} from "ai";

/** A chat's state without a user interface. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined;
  messages: UIMessage[];

  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }

  pushMessage = (message: UIMessage) => void this.messages.push(message);
  popMessage = () => void this.messages.pop();
  replaceMessage = (index: number, message: UIMessage) => void this.messages.splice(index, 1, message);
  snapshot = <Thing>(thing: Thing): Thing => structuredClone(thing);
}

/** What every other part of the package is built on: the chat of `useChat`, in Node. */
export class NodeChat extends AbstractChat<UIMessage> {
  constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
    super({ ...init, state: new PlainState([...messages]) });
  }
}

/** The requests of a chat, each with its body. */
export interface Sent {
  readonly url: string;
  readonly body: unknown;
}

/** An unmodified transport to a server's door, whose requests are seen. */
export function transportTo(url: string, token: string, sent: Sent[] = []): DefaultChatTransport<UIMessage> {
  return new DefaultChatTransport({
    api: `${url}/ai-sdk/chat`,
    headers: { authorization: `Bearer ${token}` },
    fetch: (input, init) => {
      sent.push({
        url: String(input),
        body: typeof init?.body === "string" ? JSON.parse(init.body) : undefined,
      });
      return fetch(input, init);
    },
  });
}

/** What a part says, in one word or text. */
export function shown(message: UIMessage | undefined): string[] {
  return (message?.parts ?? []).flatMap((part) => {
    if (part.type === "text" || part.type === "reasoning") return [`${part.type}: ${part.text}`];
    if (!isToolUIPart(part)) return [];
    const name = part.type === "dynamic-tool" ? part.toolName : part.type;
    const output = part.state === "output-available" ? ` ${JSON.stringify(part.output)}` : "";
    return [`${name}: ${part.state}${output}`];
  });
}
