// The fixed text at the head of a request or notification: the one place that writes it. reply_text.hpp has that of
// replies.
#pragma once

#include <string_view>

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

}  // namespace wirecall::message
