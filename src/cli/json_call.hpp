// A call whose params are wanted, and which is answered, as JSON, whatever its encoding. For commands that provide
// methods.
#pragma once

#include <string>

#include "wirecall/call.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

/// Its params; empty for none.
[[nodiscard]] std::string json_params(const Call& call);

/// Answers with a value that is JSON, in the encoding of the call.
template <class Sink>
void answer_in(Encoding encoding, Sink& sink, const std::string& json) {
  if (encoding == Encoding::json) return sink.encoded_result(json, {});
  const auto value = Value::parse(json);
  if (Writer* const writer = sink.begin_result()) encode(*writer, *value);
  sink.end_result();
}

}  // namespace wirecall::cli
