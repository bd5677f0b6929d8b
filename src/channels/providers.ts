// Makes the providers that the configuration names.

import type { Channel } from "../domain/notification.ts";
import type { Provider } from "./channel.ts";
import { consoleProvider } from "./console.ts";
import { fileProvider } from "./file.ts";
import { type TestProviderOptions, testProvider } from "./test.ts";

type Settings = { type: "console" } | { type: "file"; path?: string } | ({ type: "test" } & TestProviderOptions);

export type Providers = { route: (channel: string) => Provider | undefined; close(): Promise<void> };

export function openProviders(options: {
  providers: { readonly [name: string]: Settings };
  routes: { readonly [channel in Channel]: string };
  /** Where the provider `file` writes unless told otherwise. */
  outbox: string;
  print: (line: string) => void;
}): Providers {
  const { providers, routes, outbox, print } = options;
  const byName = new Map<string, Provider>();
  const open = (name: string): Provider | undefined => {
    const settings = providers[name];
    const known = byName.get(name);
    if (known || !settings) return known;
    const made = { ...make(settings, outbox, print), name };
    byName.set(name, made);
    return made;
  };
  const byChannel = new Map(Object.entries(routes).map(([channel, name]) => [channel, open(name)]));
  return {
    route: (channel) => byChannel.get(channel),
    async close() {
      await Promise.all([...byName.values()].map((provider) => provider.close?.()));
    },
  };
}

function make(settings: Settings, outbox: string, print: (line: string) => void): Provider {
  switch (settings.type) {
    case "console":
      return consoleProvider(print);
    case "file":
      return fileProvider(settings.path ?? outbox);
    case "test":
      return testProvider(settings);
  }
}
