// A provider's response as its caller may see it: `data.origin` of an error says which side made it, and that of a
// provider's own error would speak of another connection than the caller's. Pure.
#pragma once

#include <string_view>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

struct CleanResponse {
  std::string_view text;
  std::string_view id;     ///< a view into it
  std::string_view error;  ///< likewise; empty for a result
  int code = 0;            ///< of its error; 0 for a result
};

/// The response without `data.origin`; `changed` holds its text where there was one. `response` is well formed.
[[nodiscard]] CleanResponse without_origin(const Received& response, Reader& reader, Buffer& changed);

}  // namespace wirecall::broker
