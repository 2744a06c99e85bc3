/** What a page that the operator of the log serves can't prove, and the way that needs no such page. */
import { Card } from "../../parts/Basics.tsx"

export const Limits = () => (
  <Card title="What this page can’t prove">
    <p>
      This page and its program come from the operator of the log, as the pack does. A dishonest
      operator could serve a page that says “authentic” of anything. And a pack shows what is in it:
      events that were never recorded leave no trace in it.
    </p>
    <p>To depend on nobody’s word, check the pack offline:</p>
    <ol>
      <li>Download the evidence pack on this page.</li>
      <li>
        Take <code>verify.py</code> from a release of alk. The pack has one in it, too, but that one
        comes from the maker of the pack. It needs Python and nothing else.
      </li>
      <li>
        Get the public key of the service by another way than this page: from its operator in person
        or, if you trust that address, from the service (/.well-known/alk-keys.json). Keep it.
      </li>
      <li>
        Run <code>python3 verify.py pack.zip --public-key key.txt --require-origin</code>
      </li>
    </ol>
  </Card>
)
