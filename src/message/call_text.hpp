// The fixed text at the head of a request or notification, and of rpc.credit all: the one place that writes it.
// reply_text.hpp has that of replies.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/decimal.hpp"

namespace wirecall::message {

/// Appends {"jsonrpc":"2.0","method":…,"params":… to a Buffer or std::string; both given are JSON text. Without params
/// the member is left out.
template <class Text>
void begin_call(Text& out, std::string_view method_json, std::string_view params_json = {}) {
  out.append(std::string_view{R"({"jsonrpc":"2.0","method":)"});
  out.append(method_json);
  if (params_json.empty()) return;
  out.append(std::string_view{R"(,"params":)"});
  out.append(params_json);
}

/// Appends an rpc.credit: who sends the stream of the call of that id may send so many items more.
inline void append_credit(Buffer& out, std::string_view id_json, std::uint64_t more) {
  begin_call(out, R"("rpc.credit")", R"({"id":)");
  out.append(id_json);
  out.append(R"(,"n":)");
  append_number(out, more);
  out.append("}}");
}

}  // namespace wirecall::message
