// The notification by which either side of a connection says that it waits for a call no more (docs/wire.md, Deadlines
// and cancelling).
#pragma once

#include <string>

#include "message/call_text.hpp"

namespace wirecall::message {

/// `id_json`: the call's id, as it was sent.
[[nodiscard]] inline std::string cancel_request(std::string_view id_json) {
  std::string text;
  begin_call(text, R"("$/cancelRequest")", R"({"id":)");
  text += id_json;
  text += "}}";
  return text;
}

}  // namespace wirecall::message
