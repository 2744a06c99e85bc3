/** Populations whose texts are hard to set: other scripts, and texts that mean harm. */
import type { AuditEvent } from "../../../../src/domain/events/AuditEvent.ts"
import { type EventAt, plausible } from "./SyntheticStore.ts"

const withTexts = (
  texts: ReadonlyArray<string>,
  sequence: number,
  changed: Partial<AuditEvent> = {}
): AuditEvent => {
  const text = texts[sequence % texts.length]!
  const event = plausible(sequence)
  return {
    ...event,
    id: `${sequence} ${text}`.slice(0, 250),
    actor: { ...event.actor, id: text.slice(0, 250), email: text.slice(0, 300) },
    resource: { id: text.slice(0, 250), type: text.slice(0, 250), name: text.slice(0, 1_000) },
    metadata: { [text]: text, list: [text, { nested: text }] },
    ...changed
  }
}

export const SCRIPTS = [
  "محمد عبد الله ٢٠٢٦ (تقرير)",
  "דוח רבעוני 2026 – חשבון",
  "季度报告 二〇二六年 北京",
  "四半期報告書 カタカナ ひらがな",
  "Ελληνικά Жёлтый Çağdaş Łódź Việt Nam",
  "mixed العربية and English, then עברית 123",
  "हिन्दी रिपोर्ट",
  "한국어 보고서 ผู้ใช้ กำ",
  "naïve café 😀 ✓"
]

const erased = (event: AuditEvent): AuditEvent => {
  const { email: _email, ...actor } = event.actor
  const { name: _name, ...resource } = event.resource
  const { metadata: _metadata, ...kept } = event
  return { ...kept, actor, resource, erased_at: "2026-06-01T12:00:00.000000Z" }
}

export const scripts: EventAt = (sequence) => {
  const event = withTexts(SCRIPTS, sequence)
  if (sequence % 13 === 0) return erased(event)
  return sequence % 20 !== 0
    ? event
    : {
        ...event,
        action: "alk.event.erased",
        outcome: "success",
        actor: { id: "key_1", type: "system" },
        resource: { id: `evt-${sequence - 1}`, type: "audit_event" },
        metadata: { reason: "طلب المستخدم", sequence_number: sequence - 1 }
      }
}

/** `BASE` stands for an address that a test listens at. */
export const hostileTexts = (base: string): ReadonlyArray<string> => [
  `<img src="${base}img.png" onerror="document.title='SCRIPT'">`,
  `</bdi></td></table><iframe src="file:///etc/passwd"></iframe>`,
  `<script>fetch("${base}script")</script>`,
  `</style><style>@import url("${base}import.css"); body{display:none}</style>`,
  `"><svg onload=alert(1)><use href="${base}x.svg#a"/></svg>`,
  `url(${base}css) expression(alert(1)) ; background:url('${base}bg')`,
  "<!-- comment --> ]]> <![CDATA[ x ]]> &lt;b&gt; &amp;amp; &#60;",
  "admin\u202Etxt.exe\u202C \u2066isolate\u2069 \u200Fmark",
  "zero\u200Bwidth\u200Djoin\uFEFFbom\u00ADsoft\u2060word \u{E0041}tag",
  "line\nfeed\r\ttab \u0007bell \u001B[31mred\u001B[0m \u2028para",
  "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301zalgo",
  "W".repeat(600),
  "http://169.254.169.254/latest/meta-data/ gopher://127.0.0.1:6379/_FLUSHALL",
  "${7*7} {{7*7}} #{7*7} <%= 7*7 %> `id` '$(id)'",
  "   leading,   inner   and trailing   ",
  `javascript:alert(1) data:text/html,<script>alert(1)</script>`
]

export const hostileAt = (base: string): EventAt => {
  const texts = hostileTexts(base)
  return (sequence) => withTexts(texts, sequence)
}

export const hostile: EventAt = hostileAt("http://127.0.0.1:9/")
