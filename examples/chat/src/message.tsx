import type { useChat } from "@ai-sdk/react";
import { isToolUIPart, type UIMessage } from "ai";
import { Call } from "./call.js";

type Part = UIMessage["parts"][number];
export type Chat = ReturnType<typeof useChat>;

export function Message({ message, chat, isLive }: { message: UIMessage; chat: Chat; isLive: boolean }) {
  if (message.role === "user")
    return (
      <article className="user">
        <pre>{message.parts.map((part) => (part.type === "text" ? part.text : "")).join("")}</pre>
      </article>
    );
  return (
    <article className="assistant">
      {shownParts(message).map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a part never moves.
        <PartView key={index} part={part} chat={chat} isLive={isLive} />
      ))}
    </article>
  );
}

/** Each run that wrote to the message has a receipt: the latest is shown, at its end. */
function shownParts({ parts }: UIMessage): readonly Part[] {
  const receipt = parts.findLast(({ type }) => type === "data-receipt");
  return [
    ...parts.filter(({ type }) => type !== "data-receipt"),
    ...(receipt === undefined ? [] : [receipt]),
  ];
}

function PartView({ part, chat, isLive }: { part: Part; chat: Chat; isLive: boolean }) {
  if (isToolUIPart(part)) return <Call part={part} chat={chat} isLive={isLive} />;
  switch (part.type) {
    case "text":
      return <p className="text">{part.text.trim()}</p>;
    case "reasoning":
      return <p className="thought">{part.text}</p>;
    case "file":
      return part.mediaType.startsWith("image/") ? (
        <img src={part.url} alt="" />
      ) : (
        <a href={part.url} download>
          A file ({part.mediaType})
        </a>
      );
    case "data-plan":
      return <Plan data={part.data} />;
    case "data-receipt":
      return <Receipt data={part.data} />;
    default:
      return null;
  }
}

/** Data comes from Ambit's contract; what this page doesn't know of it is left out. */
const list = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value : [];

function Plan({ data }: { data: unknown }) {
  return (
    <ol className="plan">
      {list(Object(data).entries).map(({ content, status }) => (
        <li key={String(content)} className={String(status)}>
          {String(content)}
        </li>
      ))}
    </ol>
  );
}

function Receipt({ data }: { data: unknown }) {
  const { sandbox, confinement, guarantees } = Object(data);
  const promises = list(guarantees);
  return (
    <details className="receipt">
      <summary>
        {confinement === "confined" ? `${promises.length} guarantees held` : "without a boundary"}
        <span>sandbox {String(sandbox)}</span>
      </summary>
      <ul>
        {promises.map(({ capability, how }) => (
          <li key={String(capability)}>
            <code>{String(capability)}</code> {String(how)}
          </li>
        ))}
      </ul>
    </details>
  );
}
