import type { UIMessage } from "ai";

/** A chat is kept by its page: Ambit has its runs, and no messages. */
const key = "ambit-chat";

interface StoredChat {
  readonly id: string;
  readonly messages: readonly UIMessage[];
}

export function newChat(): StoredChat {
  return { id: crypto.randomUUID(), messages: [] };
}

export function storedChat(): StoredChat {
  const text = localStorage.getItem(key);
  if (text === null) return newChat();
  const chat: StoredChat = JSON.parse(text);
  return chat;
}

export function storeChat(chat: StoredChat): void {
  localStorage.setItem(key, JSON.stringify(chat));
}
