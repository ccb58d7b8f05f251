/** A page with assistant-ui's own runtime and parts, as its documentation has them. */
import {
  AssistantRuntimeProvider,
  ComposerPrimitive,
  ErrorPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
} from "@assistant-ui/react";
import { AssistantChatTransport, useChatRuntime } from "@assistant-ui/react-ai-sdk";
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import { createRoot } from "react-dom/client";

declare global {
  interface Window {
    /** Set by the test before the page loads. */
    readonly ambit?: object;
  }
}

function Tool(part: ToolCallMessagePartProps) {
  const { toolName, status, result, addResult, approval, respondToApproval } = part;
  const isAsking = approval !== undefined && approval.approved === undefined;
  return (
    <section aria-label={toolName}>
      {status.type} {JSON.stringify(result)}
      {isAsking &&
        [true, false].map((approved) => (
          <button key={`${approved}`} type="button" onClick={() => respondToApproval?.({ approved })}>
            {approved ? "Allow" : "Deny"}
          </button>
        ))}
      {toolName === "choose_seat" && result === undefined && (
        <button type="button" onClick={() => addResult({ seat: "12A" })}>
          Seat 12A
        </button>
      )}
    </section>
  );
}

const Message = () => (
  <MessagePrimitive.Root>
    <MessagePrimitive.Parts components={{ tools: { Fallback: Tool } }} />
    <MessagePrimitive.Error>
      <ErrorPrimitive.Root>
        <ErrorPrimitive.Message />
      </ErrorPrimitive.Root>
    </MessagePrimitive.Error>
  </MessagePrimitive.Root>
);

const isAnswered = (chat: { messages: UIMessage[] }) =>
  lastAssistantMessageIsCompleteWithApprovalResponses(chat) ||
  lastAssistantMessageIsCompleteWithToolCalls(chat);

function Page() {
  const runtime = useChatRuntime({
    // The door takes what a platform adds to its request as `ambit`.
    transport: new AssistantChatTransport({ api: "/ai-sdk/chat", body: { ambit: window.ambit } }),
    sendAutomaticallyWhen: isAnswered,
  });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Viewport>
          <ThreadPrimitive.Messages components={{ Message }} />
        </ThreadPrimitive.Viewport>
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

const root = document.getElementById("root");
if (root !== null) createRoot(root).render(<Page />);
