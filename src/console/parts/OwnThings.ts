/** Who may take away what a key has made, as the service decides it. Pure. */
import type { SignedIn } from "../state/Session.ts"

/** True for what the session's own key has made, and for everything if that may write. */
export const mayTakeAway = (
  { created_by }: { readonly created_by: string },
  signedIn: SignedIn
): boolean =>
  signedIn.is === "in"
  && (signedIn.session.key_id === created_by || signedIn.session.scopes.includes("write"))
