// Markup as template strings, made into elements by preact: text in it is text, never HTML.

import htm from "htm";
import { type ComponentChildren, h, type VNode } from "preact";

export type { ComponentChildren, VNode };
export const html = htm.bind(h) as (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
