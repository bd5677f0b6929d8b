// Every word that the component says. A page in another language sets its own.

export type Texts = {
  label: string;
  bell: (label: string, unread: number) => string;
  readAll: string;
  read: string;
  archive: string;
  unread: string;
  empty: string;
  loading: string;
  failed: string;
  unauthorized: string;
  offline: string;
  lost: string;
  unsaved: string;
  retry: string;
  untitled: string;
  arrived: (count: number, title: string) => string;
};

export const ENGLISH: Texts = {
  label: "Notifications",
  bell: (label, unread) => (unread > 0 ? `${label}, ${unread} unread` : label),
  readAll: "Mark all as read",
  read: "Mark as read",
  archive: "Archive",
  unread: "Unread",
  empty: "Nothing here yet",
  loading: "Loading",
  failed: "Notifications could not be loaded",
  unauthorized: "Your session has ended",
  offline: "You are offline",
  lost: "Connection lost, trying again",
  unsaved: "That could not be saved",
  retry: "Try again",
  untitled: "Notification",
  arrived: (count, title) => (count === 1 ? `New notification: ${title}` : `${count} new notifications`),
};
