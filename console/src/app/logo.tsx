export function Logo() {
  return (
    <span className="inline-flex items-center gap-2 font-semibold tracking-tight">
      <svg viewBox="0 0 32 32" className="size-6" aria-hidden="true">
        <rect width="32" height="32" rx="8" className="fill-accent" />
        <circle
          cx="16"
          cy="16"
          r="8.5"
          fill="none"
          className="stroke-on-accent"
          strokeWidth="3"
          strokeDasharray="43 11"
          strokeLinecap="round"
          transform="rotate(-60 16 16)"
        />
        <circle cx="16" cy="16" r="3" className="fill-on-accent" />
      </svg>
      Ambit
    </span>
  );
}
