/** A page with assistant-ui's own runtime and parts, as its documentation has them. */
import {
  AssistantRuntimeProvider,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  type ToolCallMessagePartProps,
} from "@assistant-ui/react";
import { AssistantChatTransport, useChatRuntime } from "@assistant-ui/react-ai-sdk";
import { lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { createRoot } from "react-dom/client";

function Tool({ toolName, status, result, approval, respondToApproval }: ToolCallMessagePartProps) {
  const isAsking = approval !== undefined && approval.approved === undefined;
  return (
    <section aria-label={toolName}>
      {status.type} {JSON.stringify(result)}
      {isAsking && (
        <button type="button" onClick={() => respondToApproval?.({ approved: true })}>
          Allow
        </button>
      )}
    </section>
  );
}

const Message = () => (
  <MessagePrimitive.Root>
    <MessagePrimitive.Parts components={{ tools: { Fallback: Tool } }} />
  </MessagePrimitive.Root>
);

function Page() {
  const runtime = useChatRuntime({
    transport: new AssistantChatTransport({ api: "/ai-sdk/chat" }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
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
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

const root = document.getElementById("root");
if (root !== null) createRoot(root).render(<Page />);
