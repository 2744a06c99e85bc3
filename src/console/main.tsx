/** Starts the console in the page's only element. */
import { render } from "preact"
import "./AllStyles.ts"
import { App } from "./App.tsx"

render(<App />, document.getElementById("app")!)
