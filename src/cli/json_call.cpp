// See json_call.hpp.
#include "cli/json_call.hpp"

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"

namespace wirecall::cli {

std::string json_params(const Call& call) {
  if (call.message().is_json() || call.params().empty()) return std::string{call.params()};
  Value params;
  Buffer text;
  text.append(call.params());
  const std::unique_ptr<Reader> reader = call.codec().reader();
  reader->reset(text.padded());
  if (!decode(*reader, params)) throw Error{ErrorCode::invalid_params};
  return params.dump();
}

}  // namespace wirecall::cli
