// What worker and api share of the channels: the providers, tenants' own accounts with them, and templates.

import type { Providers } from "#channels/providers.ts";
import { openProviders } from "#channels/providers.ts";
import { readAccounts } from "#steps/manage/accounts.ts";
import { credentialsVersion } from "#store/credentials.ts";
import { takeFault } from "#store/dev-faults.ts";
import { keepDevMessages } from "#store/dev-messages.ts";
import { storeItems } from "#store/inbox.ts";
import { createNoticeTexts, type NoticeTexts } from "#templates/inline.ts";
import { createTemplates, type Templates } from "#templates/load.ts";
import { createRenderer } from "#templates/renderer.ts";
import { createPublicHttp, type PublicHttp } from "#wire/public-only.ts";
import type { Base } from "./base.ts";

export type Channels = {
  providers: Providers;
  templates: Templates;
  noticeTexts: NoticeTexts;
  /** For URLs that tenants gave, asked past the providers. */
  publicHttp: PublicHttp;
  /** Reads tenants' accounts again, now: something changed here. */
  reload(): Promise<void>;
  close(): Promise<void>;
};

/** After a change elsewhere an old account may be used for this long. */
const RELOAD_MS = 5_000;

export async function openChannels(
  { config, database, clock, hints, metrics, facts }: Base,
  print: (line: string) => void,
): Promise<Channels> {
  const { providers: settings, routes, limits, home, allowAddresses: allow, secretKeys } = config;
  const db = database.own;
  const providers = openProviders({
    providers: settings,
    routes,
    limits,
    home,
    allow,
    print,
    keep: async (messages) => {
      await keepDevMessages(db, messages);
      hints.mailboxes(messages.map(({ tenant }) => tenant));
    },
    ...(config.development && {
      takeFault: ({ tenant, request: { channel } }, provider) => takeFault(db, { tenant, provider, channel }),
    }),
    store: async (items) => {
      await storeItems(db, items);
      hints.inboxes(items);
    },
    now: clock.trueMs,
    clock: clock.nowMs,
  });
  metrics.watchDisabledAccounts(providers.disabledCount);
  const publicHttp = createPublicHttp({ allow: [...allow] });
  const renderer = createRenderer();
  const templates = createTemplates({ db, asked: database.small, renderer, now: () => performance.now() });

  let seen = "";
  async function reload(): Promise<void> {
    const version = await credentialsVersion(db);
    if (version === seen) return;
    const disabled = providers.setOwn(await readAccounts(db, secretKeys));
    for (const account of disabled) facts.accountDisabled(account);
    seen = version;
  }
  await reload();
  const reloading = setInterval(() => {
    reload().catch((error: unknown) => facts.accountsUnread(error));
  }, RELOAD_MS);

  return {
    providers,
    templates,
    noticeTexts: createNoticeTexts(renderer),
    publicHttp,
    reload,
    async close() {
      clearInterval(reloading);
      await renderer.close();
      await providers.close();
      await publicHttp.close();
    },
  };
}
