// A call from inside the process: code of ours calls a method as a peer would (a tool of MCP, GET /rpc/NAME, a
// console), and so passes the same limits, rates, grants, middleware and deadlines. The dispatcher is the caller's: it
// answers into its sink, and Dispatcher::identify says as whom it calls. One thread (the loop's).
#pragma once

#include "rpc/dispatcher.hpp"

namespace wirecall::rpc {

struct InternalCall {
  std::string_view method;
  std::string_view id = "1";                  ///< a JSON string or number: the answer has it, and `cancel` names it
  std::optional<std::uint32_t> timeout_ms{};  ///< none for Limits::call_timeout_ms alone
  std::uint64_t credit = 0;  ///< of a stream, so many items come before the answer; 0 gathers them there
};

/// Calls the method with `params_json`, empty for none (to_json of a Value or struct), and answers as to a request that
/// has come: at the sink when this returns, or later. Params that are no JSON are answered -32700. Throws Error for a
/// method that is not UTF-8.
void invoke(Dispatcher& caller, const InternalCall& call, std::string_view params_json);
/// Ends all calls of that id, -32800, as $/cancelRequest does.
void cancel(Dispatcher& caller, std::string_view id);

}  // namespace wirecall::rpc
