import { createContext, use } from "react";
import type { Session } from "../server/session.js";

export const SessionContext = createContext<Session>({ role: "viewer" });

/** What the person who is signed in may do. */
export function useMay() {
  const { role, terminals = false } = use(SessionContext);
  const operate = role === "operator";
  return { answer: role !== "viewer", operate, openTerminals: operate && terminals };
}

export const useSession = () => use(SessionContext);
