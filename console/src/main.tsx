import "./styles.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { router } from "./app/router.js";
import { SignInScreen } from "./app/sign-in.js";
import { applyTheme } from "./app/theme.js";
import { SessionContext } from "./parts/session-context.js";
import { queryClient } from "./server/queries.js";
import { currentSession, type Session, signIn, takeCode, whenSessionEnds } from "./server/session.js";

type State =
  | { readonly kind: "looking" }
  | { readonly kind: "signed-out"; readonly reason: string | undefined }
  | { readonly kind: "signed-in"; readonly session: Session };

function App() {
  const [state, setState] = useState<State>({ kind: "looking" });
  useEffect(() => {
    void begin().then(setState);
    whenSessionEnds(() => {
      queryClient.clear();
      setState((before) =>
        before.kind === "signed-in" ? { kind: "signed-out", reason: "Your session has ended." } : before,
      );
    });
  }, []);
  if (state.kind === "looking") return null;
  if (state.kind === "signed-out")
    return (
      <SignInScreen
        reason={state.reason}
        onSignedIn={(session) => setState({ kind: "signed-in", session })}
      />
    );
  return (
    <SessionContext value={state.session}>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </SessionContext>
  );
}

/** A link's code is used once, also where React renders twice. */
const code = takeCode();
const beginning = (async (): Promise<State> => {
  try {
    if (code !== undefined) return { kind: "signed-in", session: await signIn({ code }) };
    const session = await currentSession();
    return session === undefined ? { kind: "signed-out", reason: undefined } : { kind: "signed-in", session };
  } catch (error) {
    return { kind: "signed-out", reason: error instanceof Error ? error.message : String(error) };
  }
})();
const begin = () => beginning;

applyTheme();
const root = document.getElementById("root");
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
