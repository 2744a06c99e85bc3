/** What is shown for a link that opens nothing, and what can be done about it. */
import type { Shared } from "../../state/Shared.ts"

type Why = Extract<Shared, { readonly is: "closed" }>["why"]

interface Words {
  readonly title: string
  readonly text: string
}

export const closedWords: Readonly<Record<Why, Words>> = {
  missing: {
    title: "This address has no share link in it",
    text:
      "A share link has its token behind a # in the address. Some programs cut that off when they "
      + "pass an address on: open the link where you received it, or copy it whole."
  },
  malformed: {
    title: "This share link is not complete",
    text:
      "What is behind the # is no token: it may have been cut off or changed on its way. Copy the "
      + "link whole from where you received it. Nothing was sent to the service."
  },
  unknown: {
    title: "This share link is not known",
    text:
      "The service has no link with this token. It may have been changed on its way, or it ended "
      + "over 30 days ago. Ask the person who sent it to you for a new one."
  },
  expired: {
    title: "This share link has expired",
    text: "Its time is over. Ask the person who sent it to you for a new one."
  },
  revoked: {
    title: "This share link was revoked",
    text:
      "Its maker, or the administrator of the log, has ended it. Ask the person who sent it to you "
      + "whether you can have a new one."
  },
  used_up: {
    title: "This share link is used up",
    text:
      "It could be used a limited number of times, and each document counts as a use. Ask the "
      + "person who sent it to you for a new one."
  }
}

export const ShareClosed = ({ why }: { readonly why: Why }) => {
  const { text, title } = closedWords[why]
  return (
    <section class="card closed">
      <h2>{title}</h2>
      <p>{text}</p>
      <p class="faint">
        Packs and reports that you have downloaded stay valid: they can be checked without this
        service and without a link.
      </p>
    </section>
  )
}
