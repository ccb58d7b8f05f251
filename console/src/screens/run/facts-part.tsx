import type { ReactNode } from "react";

export function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section>
      <h2 className="mb-1 text-sm">{title}</h2>
      {children}
    </section>
  );
}
