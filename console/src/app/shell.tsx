import { Menu } from "@base-ui/react/menu";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import { LogOut, Monitor, Moon, Search, Settings, Sun } from "lucide-react";
import { lazy, type ReactElement, Suspense, useEffect, useState } from "react";
import { Icon, isMac, Kbd } from "../parts/basic.js";
import { useSession } from "../parts/session-context.js";
import { openQuestions } from "../server/queries.js";
import { signOut } from "../server/session.js";
import { Logo } from "./logo.js";
import { places } from "./places.js";
import { setTheme, type Theme, themes, useTheme } from "./theme.js";

const Palette = lazy(() => import("./palette.js"));

/** Whether the palette is open, which a key opens on every screen. */
function usePalette() {
  const [isOpen, setIsOpen] = useState(false);
  const [wasOpened, setWasOpened] = useState(false);
  const open = (next: boolean) => {
    setIsOpen(next);
    if (next) setWasOpened(true);
  };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.metaKey || event.ctrlKey) || event.altKey) return;
      event.preventDefault();
      setWasOpened(true);
      setIsOpen((isShown) => !isShown);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return { isOpen, wasOpened, open };
}

/** The menu, at the side or, on a phone, at the bottom; and the screen. */
export function Shell() {
  const { data: questions = [], isError } = useQuery(openQuestions);
  const palette = usePalette();
  return (
    <div className="flex h-full flex-col-reverse md:flex-row">
      <a
        href="#screen"
        className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-ground focus:p-3"
      >
        Skip to the screen
      </a>
      <nav
        aria-label="Screens"
        className="flex shrink-0 gap-1 border-t border-line bg-raised px-3 py-1 md:w-52 md:flex-col md:border-t-0 md:border-r md:px-3 md:py-4"
      >
        <div className="mb-4 hidden px-2 md:block">
          <Logo />
        </div>
        <button
          type="button"
          className="mb-2 hidden items-center gap-3 rounded-md border border-line px-2 py-1 text-sm text-muted hover:bg-hover hover:text-ink md:flex"
          onClick={() => palette.open(true)}
        >
          <Icon of={<Search />} />
          Find or do
          <span className="ml-auto">
            <Kbd>{isMac ? "⌘" : "Ctrl"} K</Kbd>
          </span>
        </button>
        {places.map(({ to, label, icon }) => (
          <Link
            key={to}
            to={to}
            className="relative flex flex-1 flex-col items-center gap-1 rounded-md px-2 py-1 text-xs text-muted hover:bg-hover hover:text-ink aria-[current=page]:bg-hover aria-[current=page]:font-medium aria-[current=page]:text-ink md:flex-none md:flex-row md:gap-3 md:text-base"
          >
            <Icon of={icon} />
            <span>{label}</span>
            {to === "/questions" && questions.length > 0 && (
              <span className="numeric absolute top-0 left-1/2 ml-2 rounded-full bg-wait px-1 text-xs font-medium text-ground md:static md:ml-auto md:px-2">
                {questions.length}
                <span className="sr-only"> open</span>
              </span>
            )}
          </Link>
        ))}
        <div className="hidden flex-1 md:block" />
        <Account />
      </nav>
      <main id="screen" tabIndex={-1} className="flex min-h-0 min-w-0 flex-1 flex-col outline-none">
        {isError && (
          <p role="alert" className="bg-bad-wash px-4 py-2 text-sm text-bad md:px-8">
            The server can't be reached. What you see may be old; it is tried again.
          </p>
        )}
        <Outlet />
      </main>
      {palette.wasOpened && (
        <Suspense>
          <Palette isOpen={palette.isOpen} onOpenChange={palette.open} />
        </Suspense>
      )}
    </div>
  );
}

const themeIcons: Readonly<Record<Theme, ReactElement<{ className?: string }>>> = {
  system: <Monitor />,
  light: <Sun />,
  dark: <Moon />,
};

function Account() {
  const { role, user, project, expiresAt } = useSession();
  const theme = useTheme();
  return (
    <Menu.Root>
      <Menu.Trigger className="flex flex-1 flex-col items-center gap-1 rounded-md px-2 py-1 text-xs text-muted hover:bg-hover hover:text-ink md:flex-none md:flex-row md:gap-3 md:text-base">
        <Icon of={<Settings />} />
        <span className="truncate">
          <span className="md:hidden">Settings</span>
          <span className="hidden capitalize md:inline">{role}</span>
        </span>
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner side="top" align="start" sideOffset={4} className="z-40">
          <Menu.Popup className="min-w-52 rounded-lg border border-line bg-ground p-1 text-sm shadow-lg outline-none">
            <p className="px-3 py-2 text-xs text-muted">
              Signed in as {user === undefined ? role : `${user}, ${role}`}
              {project === undefined ? "" : ` of ${project}`}
              {expiresAt === undefined ? "" : `, until ${new Date(expiresAt).toLocaleTimeString()}`}
            </p>
            <Menu.RadioGroup value={theme} onValueChange={(value: Theme) => setTheme(value)}>
              {themes.map((name) => (
                <Menu.RadioItem key={name} value={name} className={itemClass} closeOnClick={false}>
                  <Icon of={themeIcons[name]} />
                  <span className="capitalize">{name}</span>
                  <Menu.RadioItemIndicator className="ml-auto text-accent">✓</Menu.RadioItemIndicator>
                </Menu.RadioItem>
              ))}
            </Menu.RadioGroup>
            {expiresAt !== undefined && (
              <Menu.Item className={itemClass} onClick={() => void signOut()}>
                <Icon of={<LogOut />} />
                Sign out
              </Menu.Item>
            )}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

const itemClass =
  "flex cursor-pointer items-center gap-3 rounded-md px-3 py-1 outline-none data-highlighted:bg-hover";
