/** What of the things that a key has made is offered to be taken away. Pure. */
import { mayTakeAway } from "../../domain/registry/OwnThings.ts"
import type { SignedIn } from "../state/Session.ts"

/** True for what the session's own key has made, and for everything if that may write. */
export const mayBeTakenAway = (
  { created_by }: { readonly created_by: string },
  signedIn: SignedIn
): boolean =>
  signedIn.is === "in" && mayTakeAway(signedIn.session.key_id, signedIn.session.scopes, created_by)
