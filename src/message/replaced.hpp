// A message with another id: what stays of it is copied as it stands. Pure.
#pragma once

#include <cstring>

#include "message/reply_text.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::message {

/// Appends `text` with `part`, a view into it, replaced by `by`.
inline void append_replaced(Buffer& out, std::string_view text, std::string_view part, std::string_view by) {
  const auto before = static_cast<std::size_t>(part.data() - text.data());
  const std::size_t after = text.size() - before - part.size();
  char* to = out.reserve(text.size() - part.size() + by.size());
  std::memcpy(to, text.data(), before);
  to += before;
  to = put_id(to, by);
  std::memcpy(to, part.data() + part.size(), after);
  out.set_end(to + after);
}

}  // namespace wirecall::message
