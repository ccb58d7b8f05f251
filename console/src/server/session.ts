/** Who is signed in, as the server says. */
export interface Session {
  readonly role: "viewer" | "answerer" | "operator";
  /** The person, where the sign-in link names one. */
  readonly user?: string;
  /** Milliseconds since 1970; undefined where no session is needed. */
  readonly expiresAt?: number;
  /** Whether the server opens terminals in sessions. */
  readonly terminals?: boolean;
  /** The only project that is seen; undefined for the operator. */
  readonly project?: string;
}

export type SignIn = { readonly code: string } | { readonly token: string };

/** The header that shows that this page, and no other origin's, sends a request. */
const proofHeader = "x-ambit-console";
/** Kept by this origin alone, for all of its tabs. */
const proofPlace = "ambit.proof";

const path = "/console/session";

/** Called when the server no longer knows the session. */
let onEnded = () => {};

export function whenSessionEnds(listener: () => void): void {
  onEnded = listener;
}

/** The page's own `fetch`: with the session's proof, and with an eye on its end. */
export const sessionFetch: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set(proofHeader, localStorage.getItem(proofPlace) ?? "none");
  const response = await fetch(input, { ...init, headers });
  if (response.status === 401) onEnded();
  return response;
};

/** Undefined while no one is signed in. */
export async function currentSession(): Promise<Session | undefined> {
  const response = await sessionFetch(path);
  if (!response.ok) return undefined;
  const { signedIn, ...session } = await response.json();
  return signedIn ? session : undefined;
}

/** @throws Error with what the server says */
export async function signIn(body: SignIn): Promise<Session> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(String(answer.error));
  const { proof, ...session } = answer;
  localStorage.setItem(proofPlace, proof);
  return session;
}

export async function signOut(): Promise<void> {
  await sessionFetch(path, { method: "DELETE" });
  localStorage.removeItem(proofPlace);
  onEnded();
}

/** The code of a one-time link, taken out of the address so that it stays in no history. */
export function takeCode(): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? undefined;
  if (code !== undefined) history.replaceState(null, "", location.pathname + location.search);
  return code;
}
