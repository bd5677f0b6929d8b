// The contract as the database knows it.
import { HEADER_NAME, NEEDS, NotificationRequest, RESERVED_HEADERS } from "#domain/notification.ts";

const contract = () =>
  JSON.stringify({
    request: NotificationRequest,
    needs: NEEDS,
    headers: { name: HEADER_NAME, reserved: RESERVED_HEADERS },
  });

export const contractMigration =
  (): string => `-- Generated from src/domain/notification.ts by scripts/contract.ts: what carillon.send() accepts.
create or replace function carillon.contract() returns jsonb
language sql immutable parallel safe as $contract$ select '${contract().replaceAll("'", "''")}'::jsonb $contract$;
`;
