// What the doctor finds.

export type Finding = {
  name: string;
  state: "ok" | "warn" | "fail";
  detail: string;
  /** What to do. */
  advice?: string;
};

export const ok = (name: string, detail: string): Finding => ({ name, state: "ok", detail });
export const warn = (name: string, detail: string, advice: string): Finding => ({
  name,
  state: "warn",
  detail,
  advice,
});
export const fail = (name: string, detail: string, advice: string): Finding => ({
  name,
  state: "fail",
  detail,
  advice,
});
