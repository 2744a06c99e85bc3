/**
 * The styles of all pages, after those that every page has: a few KB, which are there before a page
 * is. The files are beside their pages.
 */
import "./base.css"
import "./style.css"
import "./palette.css"
import "./pages/chain/chain.css"
import "./pages/events/events.css"
import "./pages/evidence/evidence.css"
import "./pages/evidence/share-links.css"
import "./pages/executions/executions.css"
import "./pages/health/health.css"
import "./pages/keys/keys.css"
import "./pages/receipts/receipts.css"
import "./pages/settings/settings.css"
import "./pages/share/share.css"
