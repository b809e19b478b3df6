export type { Batch } from "./batch.js";
export type { CallOptions, Params } from "./call.js";
export type { CallContext } from "./call_context.js";
export {
  type Client,
  connect,
  type ConnectOptions,
  type Outcome,
  type Pending,
  type PublishOptions,
  type Registration,
  type Subscription,
} from "./client.js";
export { bytesOf } from "./json.js";
export type { Log } from "./log.js";
export type { AnyApi, AnyMethod, Method, Methods } from "./methods.js";
export type { Handler, ParamDescriptor, ProvideOptions } from "./provider.js";
export { type Delivered, ErrorCode, type ErrorObject, RpcError } from "./rpc_error.js";
export type { ConnectionEvent } from "./session.js";
export { Stream } from "./stream.js";
export type { EventHandler, SubscribeOptions } from "./subscriptions.js";
