/**
 * The mapping of reports that bring none of their own, published as `schemas/criteria.json`. Ids
 * are those of the 2017 trust services criteria; every other word is ours.
 */
import type { CriteriaMapping } from "./Criteria.ts"

/** Every noun with every verb: `user.create*`. */
const each = (nouns: ReadonlyArray<string>, verbs: ReadonlyArray<string>): ReadonlyArray<string> =>
  nouns.flatMap((noun) => verbs.map((verb) => `${noun}.${verb}`))

const IDENTITIES = ["user", "account", "member", "service-account", "service_account"]
const CREDENTIALS = ["key", "api-key", "api_key", "apikey", "credential", "token", "certificate"]
const JOINED_OR_LEFT = [
  "create*",
  "register*",
  "invite*",
  "onboard*",
  "provision*",
  "activate*",
  "enable*",
  "delete*",
  "remove*",
  "offboard*",
  "deprovision*",
  "deactivate*",
  "disable*"
]
const BOUNDARY = ["firewall.**", "security-group.**", "security_group.**", "waf.**", "network.**"]
const SETTINGS = [
  "config.**",
  "configuration.**",
  "**.config.**",
  "setting.**",
  "settings.**",
  "**.settings.**",
  "**.settings",
  "**.configure*"
]
const CHANGES_OF_ROLES = [
  "role.**",
  "permission.**",
  "privilege.**",
  "**.role*",
  "**.role.**",
  "**.permission*",
  "**.permission.**",
  "group.**",
  "iam.**",
  "access.grant*",
  "access.revoke*",
  "access-policy.**",
  "access_policy.**"
]

export const defaultMapping: CriteriaMapping = {
  criteria: [
    {
      id: "CC6.1",
      topic: "Restricting logical access to information and systems",
      evidence: "Sign-ins, refused sign-ins, second factors, sessions and rotated keys.",
      elsewhere: "Design of the access controls; the list of systems that are to be covered.",
      rules: [
        {
          actions: [
            "**.login*",
            "**.login.**",
            "login.**",
            "**.logout*",
            "**.signin*",
            "**.sign-in*",
            "**.signout*",
            "**.sign-out*",
            "**.mfa*",
            "**.mfa.**",
            "mfa.**",
            "auth.**",
            "authentication.**",
            "sso.**",
            "session.**",
            "**.password*",
            "**.password.**",
            "password.**",
            "access.denied",
            "access.deny",
            ...each([...CREDENTIALS, "secret"], ["rotate*"])
          ]
        }
      ]
    },
    {
      id: "CC6.2",
      topic: "Registering users before they get access, and removing them when they leave",
      evidence: "Users, accounts and credentials that were registered, issued and removed.",
      elsewhere: "Approvals of requests; the list of joiners and leavers to compare with.",
      rules: [
        {
          actions: [
            ...each(IDENTITIES, JOINED_OR_LEFT),
            "invitation.**",
            ...each(CREDENTIALS, ["create*", "issue*", "revoke*", "delete*", "expire*"])
          ]
        }
      ]
    },
    {
      id: "CC6.3",
      topic: "Granting rights by role, with least privilege and separated duties",
      evidence: "Changes of roles, permissions, groups and access policies, with their author.",
      elsewhere: "The role model, and the periodic review of who holds which right.",
      rules: [{ actions: [...CHANGES_OF_ROLES, "access-review.**", "access_review.**"] }]
    },
    {
      id: "CC6.4",
      topic: "Restricting physical access to facilities",
      evidence: "Events of badge and visitor systems, where these report to this log.",
      elsewhere: "Visitor records, badge systems, reports of the data centre's operator.",
      rules: [{ actions: ["badge.**", "door.**", "facility.**", "visitor.**"] }]
    },
    {
      id: "CC6.5",
      topic: "Disposing of data and equipment so that nothing can be recovered",
      evidence: "Erasures, purges and disposals with time, author and object.",
      elsewhere: "Disposal certificates of media and equipment.",
      rules: [
        {
          actions: [
            "**.erase*",
            "**.purge*",
            "**.destroy*",
            "**.shred*",
            "device.wipe*",
            "device.dispose*",
            "media.dispose*"
          ]
        }
      ]
    },
    {
      id: "CC6.6",
      topic: "Defending the boundary against threats from outside",
      evidence: "Changes of firewalls, networks and gateways, and what they blocked.",
      elsewhere: "Network design, rules of firewalls, results of penetration tests.",
      rules: [
        {
          actions: [
            ...BOUNDARY,
            "vpn.**",
            "gateway.**",
            "ddos.**",
            "ip-allowlist.**",
            "ip_allowlist.**",
            "ip.allow*",
            "ip.block*"
          ]
        }
      ]
    },
    {
      id: "CC6.7",
      topic: "Protecting information while it moves and when it leaves",
      evidence: "Exports, downloads, shares and transfers of data, with who did them.",
      elsewhere: "Encryption in transit and on removable media.",
      rules: [
        {
          actions: [
            "export.**",
            "**.export*",
            "**.export.**",
            "download.**",
            "**.download*",
            "share.**",
            "**.share*",
            "share-link.**",
            "share_link.**",
            ...each(["file", "data", "document"], ["transfer*", "send*", "upload*"])
          ]
        }
      ]
    },
    {
      id: "CC6.8",
      topic: "Preventing and detecting unauthorised or harmful software",
      evidence: "Installations, quarantines and findings of malware scanners.",
      elsewhere: "Coverage and configuration of endpoint protection.",
      rules: [
        {
          actions: [
            "malware.**",
            "antivirus.**",
            "virus.**",
            "endpoint.**",
            "**.quarantine*",
            ...each(["software", "package", "agent"], ["install*", "uninstall*"])
          ]
        }
      ]
    },
    {
      id: "CC7.1",
      topic: "Noticing changes of configuration and new weaknesses",
      evidence: "Changes of settings, firewalls and infrastructure; findings of scans.",
      elsewhere: "Baselines, vulnerability scans and their follow-up.",
      rules: [
        {
          actions: [
            ...SETTINGS,
            ...BOUNDARY,
            "vulnerability.**",
            "scan.**",
            "security.scan*",
            "baseline.**",
            "drift.**",
            "infrastructure.**",
            "feature-flag.**",
            "feature_flag.**",
            "logging.**"
          ]
        }
      ]
    },
    {
      id: "CC7.2",
      topic: "Watching systems for anomalies that may be incidents",
      evidence: "Every refused and failed action; alerts, anomalies and detections.",
      elsewhere: "Rules and alerts that read the record, and proof that they are followed up.",
      rules: [
        { actions: ["**"], outcomes: ["failure", "error"] },
        {
          actions: [
            "alert.**",
            "**.alert*",
            "alarm.**",
            "anomaly.**",
            "detection.**",
            "intrusion.**",
            "threat.**",
            "monitor.**",
            "monitoring.**",
            "**.denied*",
            "**.blocked*"
          ]
        }
      ]
    },
    {
      id: "CC7.3",
      topic: "Judging whether an event is a security incident",
      evidence: "Incidents and investigations that were opened, assessed and closed.",
      elsewhere: "The assessments themselves and who made them.",
      rules: [{ actions: ["incident.**", "triage.**", "investigation.**", "finding.**"] }]
    },
    {
      id: "CC7.4",
      topic: "Responding to incidents in a defined way",
      evidence: "Containment: locks, suspensions, revoked credentials and sessions, rollbacks.",
      elsewhere: "The response plan, communication, and lessons learned.",
      rules: [
        {
          actions: [
            "incident.**",
            "containment.**",
            "**.rollback*",
            "**.isolate*",
            "**.quarantine*",
            ...each(IDENTITIES, ["lock*", "suspend*"]),
            ...each(CREDENTIALS, ["revoke*"]),
            ...each(["session"], ["revoke*", "terminate*"])
          ]
        }
      ]
    },
    {
      id: "CC7.5",
      topic: "Recovering from incidents",
      evidence: "Backups, restores and failovers with their outcome.",
      elsewhere: "Recovery tests and measured recovery times.",
      rules: [
        {
          actions: [
            "backup.**",
            "**.backup*",
            "restore.**",
            "**.restore*",
            "recovery.**",
            "**.recover*",
            "failover.**",
            "**.failover*"
          ]
        }
      ]
    },
    {
      id: "CC8.1",
      topic: "Making changes only after approval and test",
      evidence: "Deployments, releases, merges, migrations and approved changes.",
      elsewhere: "The change process, test results, separation of author and approver.",
      rules: [
        {
          actions: [
            "deploy.**",
            "deployment.**",
            "**.deploy*",
            "release.**",
            "rollout.**",
            "change.**",
            "change-request.**",
            "change_request.**",
            "pull-request.**",
            "pull_request.**",
            "merge.**",
            ...each(["branch", "pr", "repo", "repository", "code"], ["merge*"]),
            "migration.**",
            "schema.migrate*",
            "database.migrate*",
            "pipeline.**",
            ...each(["config", "configuration"], ["approve*", "change.approve*"])
          ]
        }
      ]
    }
  ],
  privileged_actions: [
    ...CHANGES_OF_ROLES,
    ...each(IDENTITIES, JOINED_OR_LEFT),
    ...each(CREDENTIALS, ["create*", "issue*", "revoke*", "delete*", "rotate*"]),
    ...SETTINGS,
    ...BOUNDARY,
    "admin.**",
    "sudo.**",
    "**.impersonate*",
    "**.erase*",
    "**.purge*",
    "backup.delete*",
    "backup.restore*",
    "logging.**",
    "deploy.**",
    "deployment.**",
    "**.deploy*",
    "migration.**"
  ]
}
