import { layerServer } from "../../src/http/Server.ts"
const x: number = layerServer
