import { createContext, use } from "react";
import type { Session } from "../server/session.js";

export const SessionContext = createContext<Session>({ role: "viewer" });

/** What the person who is signed in may do. */
export function useMay(): { readonly answer: boolean; readonly operate: boolean } {
  const { role } = use(SessionContext);
  return { answer: role !== "viewer", operate: role === "operator" };
}

export const useSession = () => use(SessionContext);
