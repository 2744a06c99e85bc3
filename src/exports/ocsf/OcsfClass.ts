/**
 * Which class and activity of OCSF an action is, by the names in it: the class by what the action
 * is done to and by its last word, the activity by its last word. What has no clear name is API
 * Activity and Other.
 * Source: OCSF 1.4.0, classes 3001, 3002, 3004 and 6003.
 */

/** A class of OCSF, as far as alk writes it. */
interface OcsfClass {
  readonly uid: 3001 | 3002 | 3004 | 6003
  readonly name: string
  readonly category: { readonly uid: 3 | 6; readonly name: string }
  /** Captions of OCSF's activities, and the last words of actions that mean them. */
  readonly activities: ReadonlyArray<
    readonly [id: number, caption: string, words: ReadonlyArray<string>]
  >
}

/** Each word as it is and as a fact, `created` too for `create`; `read/read` says the other itself. */
const verbs = (text: string): ReadonlyArray<string> =>
  text.split(" ").flatMap((word) => {
    const [order = "", fact = order.endsWith("e") ? `${order}d` : `${order}ed`] = word.split("/")
    return [order, fact]
  })

const IDENTITY = { uid: 3, name: "Identity & Access Management" } as const
const APPLICATION = { uid: 6, name: "Application Activity" } as const

const CREATE = verbs("create add insert register new/created upload import")
const READ = verbs(
  "read/read get/got view list search query/queried download export open access fetch"
)
const UPDATE = verbs("update edit change modify/modified set/set write/written patch rename")
const DELETE = verbs("delete remove destroy purge erase")

const account: OcsfClass = {
  uid: 3001,
  name: "Account Change",
  category: IDENTITY,
  activities: [
    [1, "Create", CREATE],
    [2, "Enable", verbs("enable activate reactivate unlock")],
    [3, "Password Change", verbs("password_change change_password/password_set")],
    [4, "Password Reset", verbs("password_reset/password_reset reset_password/reset_password")],
    [5, "Disable", verbs("disable deactivate suspend block")],
    [6, "Delete", DELETE],
    [7, "Attach Policy", verbs("grant assign attach")],
    [8, "Detach Policy", verbs("revoke unassign detach")],
    [9, "Lock", verbs("lock")],
    [10, "MFA Factor Enable", verbs("mfa_enable enable_mfa/mfa_add")],
    [11, "MFA Factor Disable", verbs("mfa_disable disable_mfa/mfa_remove")],
    [99, "Other", UPDATE]
  ]
}

const authentication: OcsfClass = {
  uid: 3002,
  name: "Authentication",
  category: IDENTITY,
  activities: [
    [1, "Logon", verbs("login/logged_in log_in/logon sign_in/signed_in authenticate")],
    [2, "Logoff", verbs("logout/logged_out log_out/logoff sign_out/signed_out")]
  ]
}

const entity: OcsfClass = {
  uid: 3004,
  name: "Entity Management",
  category: IDENTITY,
  activities: [
    [1, "Create", CREATE],
    [2, "Read", READ],
    [3, "Update", UPDATE],
    [4, "Delete", DELETE],
    [5, "Move", verbs("move")],
    [6, "Enroll", verbs("enroll")],
    [7, "Unenroll", verbs("unenroll")],
    [8, "Enable", verbs("enable")],
    [9, "Disable", verbs("disable")],
    [10, "Activate", verbs("activate")],
    [11, "Deactivate", verbs("deactivate")],
    [12, "Suspend", verbs("suspend")],
    [13, "Resume", verbs("resume")]
  ]
}

const api: OcsfClass = {
  uid: 6003,
  name: "API Activity",
  category: APPLICATION,
  activities: [
    [1, "Create", CREATE],
    [2, "Read", READ],
    [3, "Update", UPDATE],
    [4, "Delete", DELETE]
  ]
}

/** Types of resources that are accounts, and those that are managed like them. */
const ACCOUNTS = new Set(["user", "account", "member", "identity", "serviceaccount"])
const ENTITIES = new Set([
  ...["group", "role", "policy", "permission", "team", "organization", "organisation", "tenant"],
  ...["device", "apikey", "key", "token", "credential", "certificate", "secret"],
  ...["setting", "settings", "configuration"]
])

/** One spelling for `sign_in`, `sign-in`, `SignIn`. */
const plain = (word: string): string => word.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** What an activity is, and its number in its class. */
export interface OcsfActivity {
  readonly kind: OcsfClass
  readonly id: number
  readonly caption: string
}

const tables = new Map(
  [account, authentication, entity, api].map((kind) => [
    kind,
    new Map(
      kind.activities.flatMap(([id, caption, words]) =>
        words.map((word): [string, OcsfActivity] => [plain(word), { kind, id, caption }])
      )
    )
  ])
)

/** By the last two segments of the action together, as in `mfa.enable`, or else by the last. */
const activityIn = (kind: OcsfClass, action: string): OcsfActivity | undefined => {
  const [last = "", before = ""] = action.split(".").map(plain).reverse()
  const table = tables.get(kind)!
  return table.get(before + last) ?? table.get(last)
}

const otherOf = (kind: OcsfClass): OcsfActivity => ({ kind, id: 99, caption: "Other" })

/** The class and the activity of an action on a resource of this type. */
export const ocsfActivityOf = (action: string, resourceType: string): OcsfActivity => {
  const type = plain(resourceType)
  const entry = activityIn(authentication, action)
  if (entry !== undefined) return entry
  const change = ACCOUNTS.has(type) ? activityIn(account, action) : undefined
  if (change !== undefined) return change
  const kind = ENTITIES.has(type) ? entity : api
  return activityIn(kind, action) ?? otherOf(kind)
}
