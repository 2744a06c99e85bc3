/** Interim */
export default ({ provide }: any) => { provide("bootstrap", "127.0.0.1:19092") }
declare module "vitest" { interface ProvidedContext { bootstrap: string; storeUrl: string } }
