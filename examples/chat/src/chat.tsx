import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Message } from "./message.js";
import { newChat, storeChat, storedChat } from "./stored-chat.js";
import { suggestions } from "./suggestions.js";

const api = "/ai-sdk/chat";
const transport = new DefaultChatTransport({ api });

/** All that the last message asks is answered, so that the answers go back. */
function isAnswered({ messages }: { messages: UIMessage[] }): boolean {
  const parts = messages.at(-1)?.parts ?? [];
  const isOpen = parts.some(
    (part) =>
      isToolUIPart(part) &&
      (part.state === "approval-requested" || (part.state === "input-available" && !part.providerExecuted)),
  );
  return (
    !isOpen &&
    (lastAssistantMessageIsCompleteWithApprovalResponses({ messages }) ||
      lastAssistantMessageIsCompleteWithToolCalls({ messages }))
  );
}

export function Chat() {
  const [stored, setStored] = useState(storedChat);
  return <Conversation key={stored.id} stored={stored} onNew={() => setStored(newChat())} />;
}

function Conversation({ stored, onNew }: { stored: ReturnType<typeof storedChat>; onNew: () => void }) {
  const chat = useChat({
    id: stored.id,
    messages: [...stored.messages],
    transport,
    resume: true,
    sendAutomaticallyWhen: isAnswered,
  });
  const { messages, status, error } = chat;
  const [draft, setDraft] = useState("");
  const end = useRef<HTMLDivElement>(null);
  const isBusy = status === "submitted" || status === "streaming";

  useEffect(() => storeChat({ id: stored.id, messages }), [stored.id, messages]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each new piece is scrolled to.
  useEffect(() => void end.current?.scrollIntoView({ block: "end" }), [messages, status, error]);

  const send = (text: string) => {
    if (text.trim() === "") return;
    setDraft("");
    void chat.sendMessage({ text });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send(draft);
  };
  // stop() of the AI SDK only closes this page's connection.
  const stop = () => void fetch(`${api}/${stored.id}/stop`, { method: "POST" });

  return (
    <div className="page">
      <header>
        <h1>
          Ambit <span>chat</span>
        </h1>
        <button type="button" className="quiet" onClick={onNew} disabled={messages.length === 0}>
          New chat
        </button>
      </header>
      <main>
        {messages.length === 0 && <Welcome onChoose={send} />}
        {messages.map((message) => (
          <Message
            key={message.id}
            message={message}
            chat={chat}
            isLive={isBusy && message === messages.at(-1)}
          />
        ))}
        {status === "submitted" && <output className="waiting" aria-label="The agent starts" />}
        {error !== undefined && (
          <p className="error" role="alert">
            {error.message}
            <button type="button" className="quiet" onClick={() => void chat.regenerate()}>
              Try again
            </button>
          </p>
        )}
        <div ref={end} />
      </main>
      <form onSubmit={submit}>
        <textarea
          aria-label="Message"
          placeholder="say hello"
          rows={Math.min(6, draft.split("\n").length)}
          value={draft}
          onChange={({ target }) => setDraft(target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) submit(event);
          }}
        />
        {isBusy ? (
          <button type="button" className="stop" onClick={stop}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={draft.trim() === ""}>
            Send
          </button>
        )}
      </form>
    </div>
  );
}

function Welcome({ onChoose }: { onChoose: (script: string) => void }) {
  return (
    <section className="welcome">
      <h2>An agent in a sandbox</h2>
      <p>
        It has no network, writes only in its workspace, and asks before it books. The demo agent has no
        model: it follows a script, one instruction a line. Begin with one of these, or write your own.
      </p>
      <ul>
        {suggestions.map(({ title, about, script }) => (
          <li key={title}>
            <button type="button" onClick={() => onChoose(script)}>
              <strong>{title}</strong>
              <span>{about}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
