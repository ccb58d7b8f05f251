import { Menu } from "@base-ui/react/menu";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import {
  ChartColumn,
  CircleQuestionMark,
  List,
  LogOut,
  Monitor,
  Moon,
  Play,
  Server,
  Settings,
  Sun,
} from "lucide-react";
import type { ReactElement } from "react";
import { Icon } from "../parts/basic.js";
import { useSession } from "../parts/session-context.js";
import { openQuestions } from "../server/queries.js";
import { signOut } from "../server/session.js";
import { Logo } from "./logo.js";
import { setTheme, type Theme, themes, useTheme } from "./theme.js";

const places = [
  { to: "/runs", label: "Runs", icon: <List /> },
  { to: "/questions", label: "Questions", icon: <CircleQuestionMark /> },
  { to: "/start", label: "Start", icon: <Play /> },
  { to: "/usage", label: "Use", icon: <ChartColumn /> },
  { to: "/host", label: "Host", icon: <Server /> },
] as const;

/** The menu, at the side or, on a phone, at the bottom; and the screen. */
export function Shell() {
  const { data: questions = [], isError } = useQuery(openQuestions);
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
    </div>
  );
}

const themeIcons: Readonly<Record<Theme, ReactElement<{ className?: string }>>> = {
  system: <Monitor />,
  light: <Sun />,
  dark: <Moon />,
};

function Account() {
  const { role, project, expiresAt } = useSession();
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
              Signed in as {role}
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
