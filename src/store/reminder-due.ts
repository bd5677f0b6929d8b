// The line of the record that tells of which reminder a notification is.

/** A part of the statement that says what was sent: `due` are its rows, each with sent, tenant, key, at and before. */
export const TELL_DUE = `
  insert into carillon.events (notification_id, tenant, type, from_status, to_status, detail)
  select sent, tenant, 'reminder.due', 'queued', 'queued', json_build_object('key', key, 'at', at, 'before', before) from due`;
