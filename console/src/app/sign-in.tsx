import { type FormEvent, useState } from "react";
import { Button, inputClass } from "../parts/basic.js";
import { type Session, signIn } from "../server/session.js";
import { Logo } from "./logo.js";

export function SignInScreen({
  reason,
  onSignedIn,
}: {
  readonly reason: string | undefined;
  readonly onSignedIn: (session: Session) => void;
}) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState(reason);
  const [isBusy, setIsBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setIsBusy(true);
    try {
      onSignedIn(await signIn({ token: token.trim() }));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <main className="grid min-h-full place-items-center p-6">
      <div className="w-full max-w-sm">
        <Logo />
        <h1 className="mt-6">Sign in</h1>
        <p className="mt-2 text-muted">
          Run <code className="rounded bg-hover px-1 text-sm text-ink">ambit console</code> where the server
          runs: it prints a link that signs you in. Or paste a token of this server.
        </p>
        {problem !== undefined && (
          <p role="alert" className="mt-4 text-sm text-bad">
            {problem}
          </p>
        )}
        <form className="mt-6 space-y-3" onSubmit={(event) => void submit(event)}>
          <label className="block text-sm font-medium" htmlFor="token">
            Token
          </label>
          <input
            id="token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            required
            className={inputClass}
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
          <Button look="primary" type="submit" disabled={isBusy || token.trim() === ""}>
            Sign in
          </Button>
        </form>
      </div>
    </main>
  );
}
