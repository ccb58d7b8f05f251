import {
  type ComponentProps,
  cloneElement,
  type ReactElement,
  type ReactNode,
  useEffect,
  useState,
} from "react";

const tones = {
  good: "text-good",
  bad: "text-bad",
  wait: "text-wait",
  accent: "text-accent",
  muted: "text-muted",
} as const;

export type Tone = keyof typeof tones;
export const toneClass = (tone: Tone) => tones[tone];

const buttonLooks = {
  primary: "bg-accent text-on-accent border-transparent hover:opacity-90",
  plain: "border-line hover:bg-hover",
  quiet: "border-transparent text-muted hover:bg-hover hover:text-ink",
  good: "border-good text-good hover:bg-good-wash",
  bad: "border-bad text-bad hover:bg-bad-wash",
} as const;

export const buttonClass = (look: keyof typeof buttonLooks = "plain") =>
  `inline-flex items-center gap-2 rounded-md border px-3 py-1 text-sm font-medium whitespace-nowrap disabled:opacity-50 ${buttonLooks[look]}`;

export function Button({
  look = "plain",
  className = "",
  ...props
}: ComponentProps<"button"> & { readonly look?: keyof typeof buttonLooks }) {
  return <button type="button" className={`${buttonClass(look)} ${className}`} {...props} />;
}

export const inputClass =
  "w-full rounded-md border border-strong-line bg-ground px-3 py-1 text-sm placeholder:text-muted";

/** A sentence in place of what isn't there, with a next step. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="mx-auto max-w-md px-6 py-12 text-center">
      <p className="font-medium">{title}</p>
      <div className="mt-2 text-sm text-muted">{children}</div>
    </div>
  );
}

export function ErrorNote({
  error,
  retry,
  children,
}: {
  readonly error: unknown;
  readonly retry?: () => void;
  /** Where to go on. */
  readonly children?: ReactNode;
}) {
  const message = error instanceof Error ? error.message : String(error);
  return (
    <div role="alert" className="mx-auto max-w-xl px-6 py-12 text-center">
      <p className="font-medium text-bad">That didn't work</p>
      <p className="mt-2 text-sm break-words text-muted">{message}</p>
      {retry && (
        <Button className="mt-4" onClick={retry}>
          Try again
        </Button>
      )}
      {children && <div className="mt-4 text-sm">{children}</div>}
    </div>
  );
}

export function Spinner({ label }: { readonly label: string }) {
  return (
    <div role="status" className="flex items-center justify-center gap-3 px-6 py-12 text-sm text-muted">
      <span className="size-4 animate-spin rounded-full border-2 border-line border-t-accent" />
      {label}
    </div>
  );
}

/** The time, looked at again and again, for "5 min ago". */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** A term with what it is. */
export function Fact({ term, children }: { readonly term: string; readonly children: ReactNode }) {
  return (
    <div className="flex justify-between gap-4 py-1">
      <dt className="shrink-0 text-muted">{term}</dt>
      <dd className="numeric min-w-0 truncate text-right">{children}</dd>
    </div>
  );
}

/** Whether its keyboard has Command and Option. */
export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function Kbd({ children }: { readonly children: ReactNode }) {
  return <kbd className="rounded border border-line px-1 text-xs text-muted">{children}</kbd>;
}

/** An icon of one size, which a screen reader passes over. */
export function Icon({ of }: { readonly of: ReactElement<{ className?: string; "aria-hidden"?: boolean }> }) {
  return cloneElement(of, { className: "size-4 shrink-0", "aria-hidden": true });
}
