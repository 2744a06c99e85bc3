/**
 * What the log can contribute to which of the SOC 2 trust services criteria. Ids are those of the
 * 2017 criteria; every word beside them is ours. A mapping says "evidence supporting", never that
 * anything is met: that is the auditor's to judge.
 */

/** One criterion and what this log holds for it. */
export interface Criterion {
  /** `CC6.1` */
  readonly id: string
  /** What the criterion is about, in our words. */
  readonly topic: string
  /** Which evidence the log holds for it, as one sentence. */
  readonly evidence: string
  /** What has to come from elsewhere, as one sentence. */
  readonly elsewhere: string
  /**
   * Lower-case words: an event belongs here if one of them is a word of its action (`user.role-add`
   * has the words user, role, add). Empty: no single action is named.
   */
  readonly words: ReadonlyArray<string>
}

/** The mapping of reports that bring none of their own. */
export const defaultCriteria: ReadonlyArray<Criterion> = [
  {
    id: "CC6.1",
    topic: "Restricting logical access to information and systems",
    evidence: "Who signed in, which access was allowed or refused, and to what.",
    elsewhere: "Design of the access controls; population of the systems that are to be covered.",
    words: ["auth", "login", "logout", "signin", "signout", "session", "access", "mfa", "key"]
  },
  {
    id: "CC6.2",
    topic: "Registering users before they get access, and withdrawing it when they leave",
    evidence: "When accounts and credentials were made, changed and withdrawn, and by whom.",
    elsewhere: "Approvals of requests; the list of joiners and leavers to compare with.",
    words: ["user", "account", "member", "invite", "credential", "provision", "deprovision"]
  },
  {
    id: "CC6.3",
    topic: "Granting rights by role, with least privilege and separated duties",
    evidence: "Each recorded change of a role, group, permission or policy with its author.",
    elsewhere: "The role model, and the periodic review of who holds what.",
    words: ["role", "permission", "grant", "revoke", "group", "policy", "scope", "privilege"]
  },
  {
    id: "CC6.4",
    topic: "Restricting physical access to facilities",
    evidence: "None by itself: this log records what systems report.",
    elsewhere: "Visitor records, badge systems, reports of the data centre's operator.",
    words: ["badge", "door", "facility"]
  },
  {
    id: "CC6.5",
    topic: "Disposing of data and equipment so that nothing can be recovered",
    evidence: "Recorded deletions and erasures with time, author and object.",
    elsewhere: "Disposal certificates of media and equipment.",
    words: ["delete", "deleted", "erase", "erased", "purge", "destroy", "wipe", "dispose"]
  },
  {
    id: "CC6.6",
    topic: "Defending the boundary against threats from outside",
    evidence: "Refused requests and recorded changes of boundary protection.",
    elsewhere: "Network design, rules of firewalls, results of penetration tests.",
    words: ["firewall", "network", "ip", "waf", "vpn", "block", "blocked", "gateway"]
  },
  {
    id: "CC6.7",
    topic: "Protecting information while it moves and when it leaves",
    evidence: "Recorded exports, downloads, shares and transfers, with who received what.",
    elsewhere: "Encryption in transit and on removable media.",
    words: ["export", "download", "share", "transfer", "upload", "send", "sync", "copy"]
  },
  {
    id: "CC6.8",
    topic: "Preventing and detecting unauthorised or harmful software",
    evidence: "Recorded installations, executions and findings of scanners.",
    elsewhere: "Coverage and configuration of endpoint protection.",
    words: ["malware", "virus", "scan", "quarantine", "install", "execute", "package"]
  },
  {
    id: "CC7.1",
    topic: "Noticing changes of configuration and new weaknesses",
    evidence: "Recorded changes of settings, with time and author.",
    elsewhere: "Baselines, vulnerability scans and their follow-up.",
    words: ["config", "configuration", "setting", "settings", "vulnerability", "scan"]
  },
  {
    id: "CC7.2",
    topic: "Watching systems for anomalies that may be incidents",
    evidence: "A complete, ordered and tamper-evident record; its failures and errors are listed.",
    elsewhere: "Rules and alerts that read the record, and proof that somebody answers them.",
    words: ["alert", "monitor", "anomaly", "detect", "detected", "alarm"]
  },
  {
    id: "CC7.3",
    topic: "Judging whether an event is a security incident",
    evidence: "What happened around a moment, in which order, by whom; linked and dated.",
    elsewhere: "The assessments themselves and who made them.",
    words: ["incident", "triage", "investigate", "finding", "case"]
  },
  {
    id: "CC7.4",
    topic: "Responding to incidents in a defined way",
    evidence: "Recorded steps of containment, such as locks, revocations and rollbacks.",
    elsewhere: "The response plan, communication, and lessons learned.",
    words: ["incident", "lock", "suspend", "disable", "contain", "rollback", "revoke"]
  },
  {
    id: "CC7.5",
    topic: "Recovering from incidents",
    evidence: "Recorded restores, failovers and rotations with their outcome.",
    elsewhere: "Recovery tests and measured recovery times.",
    words: ["restore", "recover", "backup", "failover", "rotate"]
  },
  {
    id: "CC8.1",
    topic: "Making changes only after approval and test",
    evidence: "Recorded deployments, releases, merges and approvals with author and outcome.",
    elsewhere: "The change process, test results, and the separation of author and approver.",
    words: ["deploy", "release", "change", "approve", "approved", "merge", "migrate", "publish"]
  }
]

/** Lower-case words of an action. */
export const wordsOf = (action: string): ReadonlyArray<string> =>
  action.toLowerCase().split(/[._-]+/)

/** Events of the named actions, by criterion id; one action may count for several. */
export const countByCriterion = (
  criteria: ReadonlyArray<Criterion>,
  actions: ReadonlyArray<{ readonly key: string; readonly count: number }>
): ReadonlyMap<string, number> => {
  const counts = new Map(criteria.map(({ id }) => [id, 0]))
  for (const { count, key } of actions) {
    const words = new Set(wordsOf(key))
    for (const { id, words: wanted } of criteria) {
      if (wanted.some((word) => words.has(word))) counts.set(id, (counts.get(id) ?? 0) + count)
    }
  }
  return counts
}
